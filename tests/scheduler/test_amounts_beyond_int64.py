"""Amounts whose sums leave int64: they wrap around as in Go, and one node's nonsense keeps no pod from other nodes."""

from __future__ import annotations

import pytest

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod
from kschedfw.api.manifests import node_from_manifest
from kschedfw.config import SchedulerConfiguration, parse_configuration, preset_configuration
from kschedfw.simulator import Outcome, Simulation

MOST = (1 << 63) - 1
IMAGE = {"names": ["app:1"], "sizeBytes": MOST}

GOOD = make_node("good").capacity(cpu=4, memory="8Gi", pods=110).build()


def huge_pods(number: int, resource: str = "memory") -> list[Pod]:
    return [make_pod(f"huge-{i}").node("bad").requests(**{resource: MOST}).build() for i in range(number)]


def bad(memory: object = "8Gi", **status: object) -> Node:
    capacity = {"cpu": "4", "memory": memory, "pods": "110"}
    return node_from_manifest({"metadata": {"name": "bad"}, "status": {"capacity": capacity, **status}})


NONSENSE: dict[str, list[Node | Pod]] = {
    "two of the largest amount": [bad(), *huge_pods(2)],
    "three of them": [bad(), *huge_pods(3)],
    "cpu": [bad(), *huge_pods(3, "cpu")],
    "storage": [bad(), *huge_pods(2, "ephemeral-storage")],
    "a capacity below zero": [bad((1 << 64) - 1)],
    "the lowest capacity": [bad(1 << 63), *huge_pods(1)],
    "the largest capacity": [bad(MOST), *huge_pods(2)],
    "images": [bad(images=[IMAGE, {"names": ["sidecar:1"], "sizeBytes": MOST}])],
}


PACKING = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
            ]
        }
    ],
}
CONFIGURATIONS = {
    "default": parse_configuration({**PACKING, "profiles": []}),
    "packing": parse_configuration(PACKING),
    "DefaultProvider": preset_configuration("DefaultProvider"),
    "ClusterAutoscalerProvider": preset_configuration("ClusterAutoscalerProvider"),
}


@pytest.mark.parametrize("configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_one_nodes_nonsense_never_stops_the_scheduling_of_others(
    nonsense: list[Node | Pod], configuration: SchedulerConfiguration
) -> None:
    pods = [make_pod(f"new-{i}").requests(cpu=1, memory="1Gi").image("app:1").build() for i in range(3)]
    profile = configuration.profiles[0]
    report = Simulation(InMemoryCluster([GOOD, *nonsense, *pods]), profiles=[profile]).run()
    outcomes = {decision.pod: decision.outcome for decision in report.decisions}
    assert outcomes == {pod.metadata.key: Outcome.PLACED for pod in pods}
