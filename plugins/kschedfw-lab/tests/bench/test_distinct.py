"""Variants of the workloads: pods that differ, but are about the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from kschedfw_lab.bench.distinct import LABEL, distinct, evenly, of_its_own
from kschedfw_lab.bench.shapes import made, name_of
from kschedfw_lab.bench.workload import Workload
from kschedfw_lab.bench.workloads import DISTINCT_WORKLOADS, SCHEDULER_PERF, find_workload

from kschedfw.api.pod import Pod

each = pytest.mark.parametrize("workload", SCHEDULER_PERF.values(), ids=lambda workload: workload.name)


def pod(workload: Workload, index: int) -> Pod:
    found = made(workload.measured_pod(index))
    assert isinstance(found, Pod)
    return found


@each
def test_every_workload_has_one(workload: Workload) -> None:
    variant = find_workload(f"{workload.name}-distinct")
    assert variant is DISTINCT_WORKLOADS[variant.name]
    assert (variant.nodes, variant.initial_pods, variant.pods) == (
        workload.nodes,
        workload.initial_pods,
        workload.pods,
    )
    assert variant.initial_pod is workload.initial_pod


@each
def test_no_two_pods_ask_for_the_same_amounts_and_none_for_more_than_before(workload: Workload) -> None:
    variant = distinct(workload)
    pods = [pod(variant, index) for index in range(200)]
    amounts = [each.requests.amounts for each in pods]
    assert len({(each.milli_cpu, each.memory) for each in amounts}) == len(pods)
    before = pod(workload, 0).requests.amounts
    assert all(each.milli_cpu <= before.milli_cpu for each in amounts)
    assert all(each.memory <= max(before.memory, 200) for each in amounts)
    assert all(4 * each.milli_cpu >= 3 * before.milli_cpu for each in amounts)


@each
def test_the_rest_differs_by_the_pod_s_name_alone(workload: Workload) -> None:
    variant = distinct(workload)

    def rest(index: int) -> str:
        manifest: dict[str, Any] = json.loads(json.dumps(variant.measured_pod(index)))
        for container in manifest["spec"]["containers"]:
            for kind in ("requests", "limits"):
                for name in ("cpu", "memory"):
                    container.get("resources", {}).get(kind, {}).pop(name, None)
        return json.dumps(manifest).replace(name_of(variant.measured_pod(index)), "NAME")

    # such as claims, and devices that only one of the nodes has
    if "claim" not in workload.name and workload.name != "extended-resource":
        assert rest(3) == rest(8)


def test_labels_get_one_more() -> None:
    labels = [pod(DISTINCT_WORKLOADS["pod-affinity-distinct"], index).labels for index in (4, 9)]
    assert labels == [{"color": "blue", LABEL: "pod-4"}, {"color": "blue", LABEL: "pod-9"}]
    assert not pod(DISTINCT_WORKLOADS["basic-distinct"], 4).labels


def test_selectors_take_a_value_of_their_own_besides() -> None:
    def selector(manifest: Mapping[str, Any]) -> Any:
        return manifest["spec"]["topologySpreadConstraints"][0]["labelSelector"]

    spreading = DISTINCT_WORKLOADS["topology-spreading-distinct"].measured_pod(6)
    assert selector(spreading) == {
        "matchExpressions": [{"key": "color", "operator": "In", "values": ["blue", "pod-6"]}]
    }
    nodes: Any = DISTINCT_WORKLOADS["node-affinity-distinct"].measured_pod(6)
    required = nodes["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["zone1", "zone2", "pod-6"]


def test_what_names_something_else_than_values_stays() -> None:
    exists = {"key": "color", "operator": "Exists"}
    spec = {
        "containers": [{"name": "c"}],
        "topologySpreadConstraints": [{"labelSelector": {"matchExpressions": [exists]}}],
    }
    own: Any = of_its_own({"metadata": {"name": "p"}, "spec": spec}, 0)
    assert own["spec"]["topologySpreadConstraints"] == spec["topologySpreadConstraints"]
    daemon: Any = DISTINCT_WORKLOADS["daemonset-distinct"].measured_pod(6)
    assert "pod-6" not in json.dumps(daemon["spec"]["affinity"])


def test_the_workload_s_own_pods_stay_as_they_are() -> None:
    workload = SCHEDULER_PERF["topology-spreading"]
    before = json.dumps(workload.measured_pod(1))
    distinct(workload).measured_pod(1)
    assert json.dumps(workload.measured_pod(1)) == before


@pytest.mark.parametrize("below", [1, 7, 1000])
def test_numbers_are_spread_evenly(below: int) -> None:
    found = [evenly(index, below) for index in range(10 * below)]
    assert min(found) == 0
    assert max(found) == below - 1
    counts = [found.count(number) for number in set(found)]
    assert min(counts) >= 8
    assert max(counts) <= 12
