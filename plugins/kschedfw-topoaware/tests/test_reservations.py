"""Pods that were placed since the node last told what its zones have."""

from __future__ import annotations

import attrs
from kschedfw_topoaware import NodeResourceTopology, NodeResourceTopologyMatch
from kschedfw_topoaware.testing import make_topology

from kschedfw import FrozenDict, Pod, Quantity, make_node, make_pod
from kschedfw.testing import FrameworkHarness

ONE: dict[str, str | int] = {"cpu": 4, "memory": "8Gi"}


def guaranteed(name: str, cpu: int) -> Pod:
    amounts: dict[str, str | int] = {"cpu": cpu, "memory": "1Gi"}
    return make_pod(name).uid(name).requests(amounts).limits(amounts).build()


def harness(*pods: Pod) -> FrameworkHarness:
    """A node with two zones, and these pods on it."""
    return FrameworkHarness(
        NodeResourceTopologyMatch,
        nodes=[make_node("node").capacity(cpu=8, memory="16Gi").build()],
        pods=[pod.bound_to("node") for pod in pods],
        objects=[make_topology("node", ONE, ONE)],
    )


def fits(it: FrameworkHarness, cpu: int) -> bool:
    return it.filter(guaranteed("asking", cpu))["node"].is_success


def test_what_a_pod_took_is_missing_in_every_zone_since_nobody_knows_in_which() -> None:
    first = guaranteed("first", 3)
    it = harness(first)
    assert fits(it, 4)  # it has been there for long
    it.reserve(first, "node")
    assert fits(it, 1)
    assert not fits(it, 2)


def test_its_overhead_is_missing_too() -> None:
    first = guaranteed("first", 2)
    first = attrs.evolve(
        first, spec=attrs.evolve(first.spec, overhead=FrozenDict({"cpu": Quantity.parse(1)}))
    )
    it = harness(first)
    it.reserve(first, "node")
    assert fits(it, 1)
    assert not fits(it, 2)


def test_no_more_is_taken_than_there_is() -> None:
    pods = [guaranteed(name, 3) for name in ("first", "second")]
    it = harness(*pods)
    for pod in pods:
        it.reserve(pod, "node")
    assert not fits(it, 1)
    assert (
        it.score(guaranteed("asking", 1))["node"] == 41
    )  # of the CPU 0; of the memory 83, for 6 GiB are left


def test_a_pod_that_was_given_up_takes_nothing() -> None:
    first = guaranteed("first", 3)
    it = harness(first)
    it.unreserve(first, "node")
    for _ in range(2):
        it.reserve(first, "node")
    for _ in range(2):
        it.unreserve(first, "node")
    assert fits(it, 4)


def test_nor_does_one_that_is_gone() -> None:
    it = harness()
    it.reserve(guaranteed("first", 3), "node")
    assert fits(it, 4)


def test_what_the_node_tells_later_has_it_already() -> None:
    first, second = guaranteed("first", 3), guaranteed("second", 1)
    it = harness(first, second)
    it.reserve(first, "node")
    topology = it.cluster.get(NodeResourceTopology, "node")
    assert topology is not None
    it.cluster.update(make_topology("node", {"cpu": 1, "memory": "7Gi"}, ONE))
    assert fits(it, 4)
    it.reserve(second, "node")
    assert fits(it, 3)
    assert not fits(it, 4)


def test_a_node_that_tells_nothing_has_nothing_to_take() -> None:
    first = guaranteed("first", 3)
    it = harness(first)
    topology = it.cluster.get(NodeResourceTopology, "node")
    assert topology is not None
    it.cluster.delete(topology)
    it.reserve(first, "node")
    assert fits(it, 400)
    it.cluster.add(make_topology("node", ONE, ONE))
    assert fits(it, 4)
