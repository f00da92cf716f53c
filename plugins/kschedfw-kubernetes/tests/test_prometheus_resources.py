"""What pods request and are limited to, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from kschedfw_kubernetes.prometheus_resources import PodResources
from prometheus_client.parser import text_string_to_metric_families

from kschedfw import make_pod
from kschedfw.api.objects import object_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster

REQUEST, LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"


def pod(spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> Pod:
    metadata = {"name": "web", "namespace": "shop", "uid": "web"}
    manifest = {"kind": "Pod", "metadata": metadata, "spec": dict(spec), "status": dict(status or {})}
    found = object_from_manifest({"apiVersion": "v1", **manifest}, check=False)
    assert isinstance(found, Pod)
    return found


def container(
    requests: Mapping[str, str] | None = None, limits: Mapping[str, str] | None = None, **more: str
) -> dict[str, Any]:
    resources = {"requests": dict(requests or {}), "limits": dict(limits or {})}
    return {"image": "app:1", "resources": resources, **more}


def scrape(*pods: Pod) -> dict[str, dict[str, float]]:
    """The values by metric and resource."""
    text = PodResources(InMemoryCluster(pods)).exposition().decode()
    return {
        family.name: {sample.labels["resource"]: sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_a_series_has_everything_about_its_pod() -> None:
    spec = {
        "nodeName": "n",
        "schedulerName": "batch",
        "priority": 7,
        "containers": [container({"cpu": "250m"})],
    }
    (family, _) = text_string_to_metric_families(
        PodResources(InMemoryCluster([pod(spec)])).exposition().decode()
    )
    (sample,) = family.samples
    assert (sample.name, family.type, sample.value) == (REQUEST, "gauge", 0.25)
    assert sample.labels == {
        "namespace": "shop",
        "pod": "web",
        "node": "n",
        "scheduler": "batch",
        "priority": "7",
        "resource": "cpu",
        "unit": "cores",
    }


@pytest.mark.parametrize(
    ("resource", "amount", "unit", "value"),
    [
        ("cpu", "1500m", "cores", 1.5),
        ("memory", "1Gi", "bytes", 1 << 30),
        ("ephemeral-storage", "1k", "bytes", 1000),
        ("storage", "1k", "bytes", 1000),
        ("hugepages-2Mi", "4Mi", "bytes", 4 << 20),
        ("attachable-volumes-ebs", "3", "integer", 3),
        ("nvidia.com/gpu", "2", "", 2),
    ],
)
def test_resources_have_units(resource: str, amount: str, unit: str, value: float) -> None:
    exposition = PodResources(
        InMemoryCluster([pod({"containers": [container({resource: amount})]})])
    ).exposition()
    (family, _) = text_string_to_metric_families(exposition.decode())
    (sample,) = family.samples
    assert (sample.labels["unit"], sample.value) == (unit, value)


def test_the_larger_of_containers_and_init_containers_counts_with_overhead() -> None:
    spec = {
        "containers": [container({"cpu": "1"}, {"cpu": "2"}), container({"memory": "1k"})],
        "initContainers": [container({"cpu": "3"}, {"memory": "5k"})],
        "overhead": {"cpu": "100m", "memory": "1k", "example.com/x": "1"},
    }
    found = scrape(pod(spec))
    assert found[REQUEST] == {"cpu": 3.1, "memory": 6000, "example.com/x": 1}
    assert found[LIMIT] == {"cpu": 2.1, "memory": 6000}, "overhead counts where there is a limit"


def test_a_sidecar_runs_beside() -> None:
    sidecar = container({"cpu": "1"}, {"cpu": "1"}, restartPolicy="Always")
    spec = {"containers": [container({"cpu": "1"}, {"cpu": "1"})], "initContainers": [sidecar]}
    assert scrape(pod(spec)) == {REQUEST: {"cpu": 2}, LIMIT: {"cpu": 2}}


def test_pod_level_resources_take_the_place_of_the_containers() -> None:
    spec = {
        "containers": [container({"cpu": "1", "ephemeral-storage": "1k"}, {"cpu": "1"})],
        "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "5", "memory": "1k"}},
    }
    found = scrape(pod(spec))
    assert found[REQUEST] == {"cpu": 4, "ephemeral-storage": 1000, "memory": 1000}
    assert found[LIMIT] == {"cpu": 5, "memory": 1000}


def test_what_is_nothing_is_left_out() -> None:
    assert scrape(pod({"containers": [container({"cpu": "0"})]})) == {REQUEST: {}, LIMIT: {}}


@pytest.mark.parametrize(
    ("node", "phase", "there"),
    [("n", "Running", True), ("n", "Succeeded", False), ("n", "Failed", False), ("", "Failed", True)],
)
def test_pods_that_have_ended_on_a_node_are_left_out(node: str, phase: str, there: bool) -> None:
    found = scrape(pod({"nodeName": node, "containers": [container({"cpu": "1"})]}, {"phase": phase}))
    assert bool(found[REQUEST]) is there


def test_pods_are_counted_when_somebody_asks() -> None:
    cluster = InMemoryCluster()
    resources = PodResources(cluster)
    before = resources.exposition()
    cluster.add(make_pod("late").requests(cpu=1).build())
    assert b'pod="late"' not in before
    assert b'kube_pod_resource_request{namespace="default"' in resources.exposition()


def test_a_pod_without_priority_has_none() -> None:
    bare = pod({"containers": [container({"cpu": "1"})]})
    bare = attrs.evolve(bare, spec=attrs.evolve(bare.spec, priority=None))
    assert b'priority=""' in PodResources(InMemoryCluster([bare])).exposition()
