"""Through the whole scheduler, with a clock that is moved by hand."""

from __future__ import annotations

from random import Random

from kschedfw_topoaware import NodeResourceTopology, NodeResourceTopologyMatch
from kschedfw_topoaware.testing import make_topology

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    Pod,
    Profile,
    Registry,
    Scheduler,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock

HALF: dict[str, str | int] = {"cpu": 4, "memory": "8Gi"}


class Stage:
    """Nodes of eight CPUs in two zones each."""

    def __init__(self, *node_names: str) -> None:
        self.cluster = InMemoryCluster()
        for name in node_names:
            self.cluster.add(make_node(name).capacity(cpu=8, memory="16Gi").build())
            self.cluster.add(make_topology(name, HALF, HALF))
        self.clock = FakeClock()
        registry = Registry()
        registry.register(NodeResourceTopologyMatch)
        base = default_profile()
        profile = Profile(
            [*base.multi_point, EnabledPlugin("NodeResourceTopologyMatch", weight=100)], args=base.args
        )
        self.scheduler = Scheduler(
            self.cluster, [profile], registry=registry, clock=self.clock, random=Random(0)
        )

    def place(self, name: str, *, cpu: int) -> str:
        """Where the pod goes; nowhere is the empty string."""
        amounts: dict[str, str | int] = {"cpu": cpu, "memory": "1Gi"}
        self.cluster.add(make_pod(name).requests(amounts).limits(amounts).build())
        return self.where(name)

    def where(self, name: str) -> str:
        self.scheduler.run_until_idle()
        pod = self.cluster.get(Pod, f"default/{name}")
        assert pod is not None
        return pod.node_name

    def why(self, name: str) -> str:
        pod = self.cluster.get(Pod, f"default/{name}")
        assert pod is not None
        return pod.status.conditions[0].message


def test_two_pods_in_a_row_dont_take_the_same_zone() -> None:
    stage = Stage("a", "b")
    assert {stage.place("first", cpu=4), stage.place("second", cpu=4)} == {"a", "b"}
    assert stage.place("third", cpu=4) == ""
    assert stage.why("third") == (
        "0/2 nodes are available: 2 cannot align container. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )
    stage.scheduler.close()


def test_a_pod_that_was_refused_is_tried_again_when_the_node_tells_of_a_free_zone() -> None:
    stage = Stage("a")
    assert [stage.place("first", cpu=4), stage.place("second", cpu=4)] == ["a", ""]
    stage.cluster.update(make_topology("a", {"cpu": 0, "memory": "7Gi"}, HALF))
    stage.clock.advance(10)
    assert stage.where("second") == "a"
    stage.scheduler.close()


def test_a_pod_that_is_deleted_before_the_node_tells_anew_takes_nothing() -> None:
    stage = Stage("a")
    assert [stage.place("first", cpu=4), stage.place("second", cpu=4)] == ["a", ""]
    first = stage.cluster.get(Pod, "default/first")
    assert first is not None
    stage.cluster.delete(first)
    stage.clock.advance(10)
    assert stage.where("second") == "a"
    stage.scheduler.close()


def test_without_a_topology_the_whole_node_counts() -> None:
    stage = Stage("a")
    topology = stage.cluster.get(NodeResourceTopology, "a")
    assert topology is not None
    stage.cluster.delete(topology)
    assert stage.place("first", cpu=7) == "a"
    stage.scheduler.close()
