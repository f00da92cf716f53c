"""Clusters for the tests of the page."""

from __future__ import annotations

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod, make_pod_group
from kschedfw.config import SchedulerConfiguration, parse_configuration

HOSTILE = "</script><script>document.title = 'broken in'</script><img src=x onerror=alert(1)>"
"""A text that no label has in a real cluster; manifests from elsewhere may have it."""

PROFILE = "default-scheduler"


GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption")
"""What schedules the pods of a group together."""


def default_configuration(*gates: str) -> SchedulerConfiguration:
    document: dict[str, object] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    if gates:
        document["featureGates"] = dict.fromkeys(gates, True)
    return parse_configuration(document, "default")


def nodes() -> list[Node]:
    """Two that are half full of CPU or of memory, and an empty one that is cordoned."""
    return [
        make_node("cpu-taken")
        .capacity(cpu=4, memory="8Gi", pods=10)
        .labels(zone="a", note=HOSTILE)
        .build(check=False),
        make_node("memory-taken").capacity(cpu=4, memory="8Gi", pods=10).labels(zone="b").build(),
        make_node("shut").capacity(cpu=4, memory="8Gi", pods=10).labels(zone="b").unschedulable().build(),
    ]


def pods() -> list[Pod]:
    """One on each of the first two nodes, one that fits, one that never does, and one with a gate."""
    return [
        make_pod("busy").requests(cpu="2", memory="1Gi").node("cpu-taken").build(),
        make_pod("cache").requests(cpu="1", memory="4Gi").node("memory-taken").build(),
        make_pod("web").requests(cpu="1", memory="1Gi").annotations({"why": HOSTILE}).build(),
        make_pod("huge").requests(cpu="64").build(),
        make_pod("gated").requests(cpu="1").scheduling_gate("example.com/quota").build(),
    ]


def cluster() -> InMemoryCluster:
    return InMemoryCluster([*nodes(), *pods()])


def groups() -> InMemoryCluster:
    """Racks of two nodes each; a group that runs, one that fits, one that doesn't, one that does in part; a pod."""
    racks = [
        make_node(f"{rack}-{number}").labels(rack=rack).capacity(cpu=4, memory="16Gi", pods=10).build()
        for rack in "abc"
        for number in (1, 2)
    ]
    return InMemoryCluster(
        [
            *racks,
            make_pod_group("running").gang(min_count=2).build(),
            *(
                make_pod(f"running-{rack}").requests(cpu=1).node(f"{rack}-1").group("running").build()
                for rack in "ab"
            ),
            make_pod_group("small").gang(min_count=2).topology("rack").build(),
            *(make_pod(f"small-{number}").requests(cpu=1).group("small").build() for number in range(2)),
            make_pod_group("train").gang(min_count=4).topology("rack").build(),
            *(make_pod(f"train-{number}").requests(cpu=3).group("train").build() for number in range(4)),
            make_pod_group("loose").build(),
            make_pod("loose-0").requests(cpu=1).group("loose").build(),
            make_pod("loose-1").requests(cpu=64).group("loose").build(),
            make_pod("huge").requests(cpu=64).build(),
        ]
    )
