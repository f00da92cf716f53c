"""How evenly nodes are used, and how much of what is free is of no use."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from compare.scenes import node, pod
from hypothesis import given, settings
from kschedfw_lab.compare import Fragmentation, NodeAllocation, RequestMix, fragmentation, imbalance_within

from kschedfw import Pod, make_node, make_pod
from kschedfw.api import OwnerReference
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


def allocated(*infos: NodeInfo) -> list[NodeAllocation]:
    return list(map(NodeAllocation.of, infos))


def holding(name: str, *pods: Pod, cpu: int = 4, memory: str = "8Gi") -> NodeInfo:
    return NodeInfo.of(node(name, cpu, memory), pods)


class TestAllocation:
    def test_counts_what_is_requested_of_what_there_is(self) -> None:
        (found,) = allocated(holding("n1", pod("a"), pod("b")))
        assert (found.requested["cpu"], found.allocatable["cpu"], found.pods) == (2000, 4000, 2)
        assert (found.share("cpu"), found.free("cpu")) == (0.5, 2000)

    def test_a_node_with_pods_of_daemon_sets_alone_could_go(self) -> None:
        owner = OwnerReference("DaemonSet", "agent", "uid", "apps/v1", controller=True)
        plain = pod("agent-1")
        daemon = plain.with_metadata(attrs.evolve(plain.metadata, owner_references=(owner,)))
        alone, beside, empty = allocated(
            holding("n1", daemon), holding("n2", daemon, pod("a")), holding("n3")
        )
        assert (alone.has_only_its_own, beside.has_only_its_own, empty.has_only_its_own) == (
            True,
            False,
            False,
        )

    def test_of_what_a_node_does_not_have_there_is_no_share(self) -> None:
        (found,) = allocated(holding("n1"))
        assert (found.share("nvidia.com/gpu"), found.free("nvidia.com/gpu")) == (None, 0)

    def test_an_overcommitted_node_has_nothing_free(self) -> None:
        (found,) = allocated(holding("n1", pod("a", cpu=5)))
        assert (found.share("cpu"), found.free("cpu")) == (1.25, 0)


class TestWorkload:
    def test_is_what_waits_for_a_place(self) -> None:
        gpu = make_pod("gpu").requests({"nvidia.com/gpu": 1}).node("n1").build()
        workload = RequestMix.of([pod("a"), pod("b"), pod("c", cpu=2), gpu])
        assert sorted(workload.pending.values()) == [1, 2]
        assert workload.resources == ("cpu", "memory", "nvidia.com/gpu")


@pytest.mark.slow
class TestFragmentation:
    def test_what_no_pod_fits_beside_is_lost(self) -> None:
        # n1 has 1 CPU left, and pods want 2; n2 is empty.
        nodes = allocated(holding("n1", pod("a", cpu=3)), holding("n2"))
        cpu, memory = fragmentation(nodes, RequestMix.of([pod("x", cpu=2)]))
        assert cpu == Fragmentation("cpu", 1000, 5000)
        assert cpu.share == 0.2
        assert memory == Fragmentation("memory", 6 << 30, 14 << 30)  # lost for want of CPU

    def test_each_pod_of_the_workload_has_a_vote(self) -> None:
        nodes = allocated(holding("n1", pod("a", cpu=3)))
        workload = RequestMix.of([pod("small"), pod("small-too"), pod("small-again"), pod("big", cpu=2)])
        assert fragmentation(nodes, workload)[0].share == 0.25

    def test_pods_that_do_not_ask_for_a_resource_have_no_vote_on_it(self) -> None:
        gpus = make_node("g").capacity({"cpu": 1, "nvidia.com/gpu": 4, "pods": 10}).build()
        train = make_pod("train").requests({"cpu": 1, "nvidia.com/gpu": 2}).build()
        found = fragmentation(allocated(NodeInfo.of(gpus)), RequestMix.of([train, pod("web", cpu=2)]))
        assert {each.resource: each.share for each in found} == {"cpu": 0.5, "nvidia.com/gpu": 0.0}

    def test_a_node_without_room_for_another_pod_is_lost(self) -> None:
        full = make_node("n").capacity(cpu=4, pods=1).build()
        nodes = allocated(NodeInfo.of(full, [make_pod("a").requests(cpu=1).build()]))
        assert fragmentation(nodes, RequestMix.of([make_pod("x").requests(cpu=1).build()]))[0].share == 1.0

    def test_nothing_is_said_where_nobody_asks_or_nobody_has(self) -> None:
        assert fragmentation(allocated(holding("n1")), RequestMix.of([])) == []
        assert fragmentation([], RequestMix.of([pod("a")])) == []

    @given(clusters(most_pending=4))
    @settings(max_examples=examples(25))
    def test_is_a_share_of_what_is_free(self, cluster: DrawnCluster) -> None:
        nodes = [
            NodeAllocation.of(NodeInfo.of(each, [pod for pod in cluster.bound if pod.node_name == each.name]))
            for each in cluster.nodes
        ]
        for found in fragmentation(nodes, RequestMix.of(cluster.pending)):
            assert 0 <= found.unusable <= found.free * (1 + 1e-12)
            assert found.free == sum(each.free(found.resource) for each in nodes)

    @given(clusters(most_pending=4))
    @settings(max_examples=examples(25))
    def test_is_total_exactly_where_no_pod_fits_and_none_where_each_fits_everywhere(
        self, cluster: DrawnCluster
    ) -> None:
        nodes = [NodeAllocation.of(NodeInfo.of(each)) for each in cluster.nodes]
        workload = RequestMix.of(cluster.pending)
        for found in fragmentation(nodes, workload):
            votes = [
                fits(each, waiting)
                for each in nodes
                if each.free(found.resource)
                for waiting in cluster.pending
                if asks(waiting, found.resource)
            ]
            if found.free and not any(votes):
                assert found.share == pytest.approx(1)
            if all(votes):
                assert found.share == 0


def asks(waiting: Pod, resource: str) -> bool:
    return amounts(waiting)[resource] > 0


def fits(allocation: NodeAllocation, waiting: Pod) -> bool:
    needs = {**amounts(waiting), "pods": 1}
    return all(amount <= allocation.free(name) for name, amount in needs.items())


def amounts(waiting: Pod) -> Counter[str]:
    asked = waiting.requests.amounts
    found = {"cpu": asked.milli_cpu, "memory": asked.memory, "ephemeral-storage": asked.ephemeral_storage}
    return Counter({**found, **asked.scalar_resources})


class TestImbalanceWithin:
    def test_compares_the_resources_of_each_node(self) -> None:
        nodes = allocated(holding("n1", pod("a", cpu=4, memory="4Gi")), holding("n2"))
        found = imbalance_within(nodes, RequestMix.of([pod("x")]))
        assert (found.min, found.mean, found.max) == (0, 0.125, 0.25)  # 100 % of CPU, 50 % of memory

    def test_what_nobody_asks_for_does_not_count(self) -> None:
        disk = make_node("n").capacity({"cpu": 4, "ephemeral-storage": "100Gi", "pods": 10}).build()
        nodes = allocated(NodeInfo.of(disk, [make_pod("a").requests(cpu=4).build()]))
        assert imbalance_within(nodes, RequestMix.of([make_pod("x").requests(cpu=1).build()])).max == 0
