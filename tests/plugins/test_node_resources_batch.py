"""The batch forms of NodeResourcesFit and NodeResourcesBalancedAllocation: the scalar forms, for many nodes at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.manifests import node_from_manifest, pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.results import Verdicts
from kschedfw.plugins._resources import ResourceSpec, Usage
from kschedfw.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
    balances,
)
from kschedfw.plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)
from kschedfw.plugins.node_resources_fit.scoring import scorer_of
from kschedfw.testing import FrameworkHarness
from tests.plugins.resource_clusters import (
    GPU,
    LARGEST_SCORED,
    MAX_INT64,
    NIC,
    RESOURCES,
    ResourceCluster,
    resource_clusters,
)

FIT: Any = NodeResourcesFit
BALANCED: Any = NodeResourcesBalancedAllocation


def shapes() -> st.SearchStrategy[RequestedToCapacityRatio]:
    """Broken lines, falling or rising."""
    points = st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4)
    return points.map(
        lambda drawn: RequestedToCapacityRatio(
            tuple(UtilizationShapePoint(utilization, drawn[utilization]) for utilization in sorted(drawn))
        )
    )


def specs(weights: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[ResourceSpec, ...]]:
    spec = st.builds(ResourceSpec, st.sampled_from((*RESOURCES, "pods")), weights)
    return st.lists(spec, unique_by=lambda each: each.name, max_size=5).map(tuple)


def fit_args() -> st.SearchStrategy[NodeResourcesFitArgs]:
    strategies = st.builds(
        ScoringStrategy, st.sampled_from(ScoringStrategyType), specs(st.integers(1, 100)), shapes()
    )
    ignored = st.sampled_from([(), (GPU,), (GPU, NIC)])
    return st.builds(NodeResourcesFitArgs, ignored, st.sampled_from([(), ("example.com",)]), strategies)


def balanced_args() -> st.SearchStrategy[NodeResourcesBalancedAllocationArgs]:
    return specs(st.just(1)).map(NodeResourcesBalancedAllocationArgs)


class Asked:
    """A plugin over a cluster, asked in both ways about the same rows."""

    def __init__(self, kind: Any, cluster: ResourceCluster, args: object) -> None:
        harness = FrameworkHarness(kind, nodes=cluster.nodes, pods=cluster.bound, args={kind.name: args})
        self.plugin: Any = harness.framework.plugins[kind.name]
        self.table = harness.snapshot.table
        self.rows = np.array(cluster.rows, dtype=np.int64)
        self.infos: list[NodeInfo] = [self.table.node_infos[row] for row in cluster.rows]

    def verdicts(self, pod: Pod) -> tuple[Verdicts | None, list[object]]:
        state = CycleState()
        self.plugin.pre_filter(state, pod)
        batch = self.plugin.filter_batch(state, self.table, self.rows)
        return batch, [self.plugin.filter(state, info) for info in self.infos]

    def scores(self, pod: Pod, *, prepared: bool = True) -> tuple[list[int] | None, list[int]]:
        state = CycleState()
        if prepared:
            self.plugin.pre_score(state, pod)
        batch = self.plugin.score_batch(state, pod, self.table, self.rows)
        assert batch is None or (batch.dtype, batch.shape) == (np.int64, self.rows.shape)
        scalar = [self.plugin.score(state, pod, info) for info in self.infos]
        return None if batch is None else batch.tolist(), scalar


def filling(infos: Sequence[NodeInfo]) -> Iterator[Pod]:
    """Pods that take exactly what a node has left, and pods that want one byte more: amounts drawn hardly ever meet."""
    for info in infos:
        cpu = info.allocatable.milli_cpu - info.requested.milli_cpu
        memory = info.allocatable.memory - info.requested.memory
        if cpu >= 0 and 0 <= memory < MAX_INT64:
            for wanted in (memory, memory + 1):
                yield make_pod().requests(cpu=f"{cpu}m", memory=wanted).build()


def sharing(infos: Sequence[NodeInfo]) -> Iterator[Pod]:
    """Pods that take a third of a node's CPU and a seventh of its memory, so that shares have to be rounded."""
    for info in infos:
        cpu, memory = info.allocatable.milli_cpu // 3, info.allocatable.memory // 7
        yield make_pod().requests(cpu=f"{cpu}m", memory=memory).build()


@given(st.booleans().flatmap(lambda huge: resource_clusters(with_huge_amounts=huge)), fit_args())
def test_the_batch_filter_refuses_the_same_nodes_for_the_same_reasons(
    cluster: ResourceCluster, args: NodeResourcesFitArgs
) -> None:
    asked = Asked(FIT, cluster, args)
    for pod in (*cluster.pending, *filling(asked.infos)):
        batch, scalar = asked.verdicts(pod)
        assert batch is not None
        assert [batch.of(index) for index in range(len(scalar))] == scalar
        assert len(set(batch.statuses)) == len(batch.statuses)


@given(resource_clusters(), fit_args(), st.booleans())
def test_the_batch_scores_of_fit_are_the_scalar_ones(
    cluster: ResourceCluster, args: NodeResourcesFitArgs, prepared: bool
) -> None:
    asked = Asked(FIT, cluster, args)
    for pod in (*cluster.pending, *sharing(asked.infos)):
        batch, scalar = asked.scores(pod, prepared=prepared)
        assert batch == scalar


@given(resource_clusters(), balanced_args(), st.booleans())
def test_the_batch_scores_of_balanced_allocation_are_the_scalar_ones(
    cluster: ResourceCluster, args: NodeResourcesBalancedAllocationArgs, prepared: bool
) -> None:
    asked = Asked(BALANCED, cluster, args)
    for pod in (*cluster.pending, *sharing(asked.infos)):
        batch, scalar = asked.scores(pod, prepared=prepared)
        assert batch == scalar


def cluster_with_huge_amounts(capacity: dict[str, str], *, is_used: bool) -> ResourceCluster:
    """One node, and a pod whose overhead makes its CPU wrap around; with `is_used` such a pod is there already."""
    spec = {
        "containers": [{"name": "main", "image": "app:1"}],
        "resources": {"requests": {"cpu": f"{MAX_INT64}m"}},
        "overhead": {"cpu": "10m"},
    }
    pods = [
        pod_from_manifest(
            {
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {**spec, "nodeName": where},
            }
        )
        for name, where in (("new", ""), ("there", "node"))
    ]
    machine = {
        "kind": "Node",
        "metadata": {"name": "node"},
        "status": {"capacity": {**capacity, "pods": "9"}},
    }
    return ResourceCluster([node_from_manifest(machine)], pods[1:] if is_used else [], pods[:1], [0])


THREE_RESOURCES = NodeResourcesBalancedAllocationArgs(
    (ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec("ephemeral-storage"))
)
TINY = {"cpu": "1m", "memory": "1"}


@given(resource_clusters(with_huge_amounts=True), fit_args(), balanced_args())
@example(
    cluster_with_huge_amounts(TINY, is_used=False),
    NodeResourcesFitArgs(),
    NodeResourcesBalancedAllocationArgs(),
)
@example(cluster_with_huge_amounts(TINY, is_used=True), NodeResourcesFitArgs(), THREE_RESOURCES)
def test_batch_scores_of_huge_amounts_are_the_scalar_ones(
    cluster: ResourceCluster, fit: NodeResourcesFitArgs, balanced: NodeResourcesBalancedAllocationArgs
) -> None:
    for asked in (Asked(FIT, cluster, fit), Asked(BALANCED, cluster, balanced)):
        for pod in cluster.pending:
            batch, scalar = asked.scores(pod)
            assert batch == scalar
            assert all(0 <= score <= 100 for score in scalar)


def balanced_in_go(pod: Pod, info: NodeInfo, names: Sequence[str]) -> int:
    """Return kube-scheduler's score, in Go's arithmetic on int64 and float64, cut to 0–100."""

    def wrapped(number: int) -> int:
        return (number + 2**63) % 2**64 - 2**63

    def balance(amounts: dict[str, int]) -> int:
        shares = [
            min(float(amount) / float(info.allocatable.get(name)), 1.0)
            for name, amount in amounts.items()
            if info.allocatable.get(name)
        ]
        deviation = 0.0
        if len(shares) == 2:
            deviation = abs((shares[0] - shares[1]) / 2)
        elif len(shares) > 2:
            mean = reduce(add, shares, 0.0) / len(shares)
            squares = reduce(add, [(share - mean) * (share - mean) for share in shares], 0.0)
            deviation = math.sqrt(squares / len(shares))
        found = math.trunc((1 - deviation) * 100)
        return max(found, -(2**63))

    requests = {name: pod.requests.amounts.get(name) for name in names}
    if not any(requests.values()):
        return 0
    # An extended resource that the pod doesn't request doesn't count.
    counted = {
        name: each
        for name, each in requests.items()
        if each or name in ("cpu", "memory", "ephemeral-storage")
    }
    used = {name: info.requested.get(name) for name in counted}
    with_pod = {name: wrapped(used[name] + each) for name, each in counted.items()}
    gain = wrapped(50 + balance(with_pod) - balance(used))
    half = gain // 2 if gain >= 0 else -(-gain // 2)
    return min(max(50 + half, 0), 100)


@given(resource_clusters(with_huge_amounts=True), balanced_args())
@example(cluster_with_huge_amounts(TINY, is_used=False), NodeResourcesBalancedAllocationArgs())
@example(cluster_with_huge_amounts(TINY, is_used=True), THREE_RESOURCES)
@example(cluster_with_huge_amounts({"cpu": f"{MAX_INT64}m", "memory": "1"}, is_used=True), THREE_RESOURCES)
def test_balanced_allocation_of_huge_amounts_is_scored_in_gos_arithmetic(
    cluster: ResourceCluster, args: NodeResourcesBalancedAllocationArgs
) -> None:
    asked = Asked(BALANCED, cluster, args)
    names = [resource.name for resource in args.resources]
    for pod in cluster.pending:
        batch, scalar = asked.scores(pod)
        assert batch == scalar == [balanced_in_go(pod, info, names) for info in asked.infos]


SHARE = st.tuples(st.sampled_from([0, 1, 7, 100]), st.integers(0, 60), st.integers(0, 60))
"""Of one resource on one node: what there is, what is used, and what is requested."""
WEIGHTED = st.tuples(st.integers(1, 5), st.lists(SHARE, min_size=5, max_size=5))


@given(st.sampled_from(ScoringStrategyType), shapes(), st.lists(WEIGHTED, max_size=4))
def test_resources_that_a_node_has_not_got_do_not_count(
    kind: ScoringStrategyType,
    shape: RequestedToCapacityRatio,
    resources: list[tuple[int, list[tuple[int, int, int]]]],
) -> None:
    score = scorer_of(ScoringStrategy(kind, (), shape))
    for node in range(5):
        all_of_it = [Usage(*shares[node], weight) for weight, shares in resources]
        assert score(all_of_it) == score([usage for usage in all_of_it if usage.allocatable])


FRACTION = st.floats(0, 1) | st.integers(0, 10).map(lambda tenths: tenths / 10)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(st.none() | FRACTION, min_size=n, max_size=n), min_size=1)
    )
)
def test_the_balance_of_many_nodes_is_that_of_each(fractions: list[list[float | None]]) -> None:
    columns = np.array([[0.0 if share is None else share for share in node] for node in fractions]).T
    there = np.array([[share is not None for share in node] for node in fractions]).T
    expected = []
    for node in fractions:
        shares = np.array([share for share in node if share is not None]).reshape(-1, 1)
        expected += balances(shares, np.ones_like(shares, dtype=np.bool_)).tolist()
    assert balances(columns, there).tolist() == expected


def cluster_of(memory: int, requested: int) -> ResourceCluster:
    node = make_node("node").capacity(cpu=4, memory=memory).build()
    return ResourceCluster([node], [], [make_pod().requests(cpu=1, memory=requested).build()], [0])


@pytest.mark.parametrize(
    ("memory", "requested"),
    [
        (LARGEST_SCORED, LARGEST_SCORED),
        (LARGEST_SCORED + 1, 1),
        (1, LARGEST_SCORED + 1),
        (MAX_INT64, MAX_INT64),
        (MAX_INT64 + 1, 1),
    ],
)
def test_batch_forms_answer_beyond_int64(memory: int, requested: int) -> None:
    cluster = cluster_of(memory, requested)
    for kind, args in ((FIT, NodeResourcesFitArgs()), (BALANCED, NodeResourcesBalancedAllocationArgs())):
        batch, scalar = Asked(kind, cluster, args).scores(cluster.pending[0])
        assert batch == scalar
    verdicts, (status,) = Asked(FIT, cluster, NodeResourcesFitArgs()).verdicts(cluster.pending[0])
    assert verdicts is not None
    assert verdicts.of(0) == status


@pytest.mark.parametrize("count", [11, 12, 70])
def test_a_pod_may_have_more_resources_than_an_int_has_bits(count: int) -> None:
    wanted = {f"example.com/device-{index}": 1 for index in range(count)}  # beside pods, CPU and memory
    pod = make_pod().requests(cpu=1, memory=1, **wanted).limits(wanted).build()
    cluster = ResourceCluster([make_node("node").capacity(cpu=1).build()], [], [pod], [0])
    batch, (status,) = Asked(FIT, cluster, NodeResourcesFitArgs()).verdicts(pod)
    assert batch is not None
    assert batch.of(0) == status


def test_a_dry_run_needs_nothing_but_the_changed_node() -> None:
    machine = make_node("node").capacity(cpu=2).build()
    harness = FrameworkHarness(FIT, nodes=[machine])
    plugin: Any = harness.framework.plugins[FIT.name]
    state, info = CycleState(), NodeInfo.of(machine)
    plugin.pre_filter(state, make_pod().requests(cpu=1).build())
    assert plugin.filter(state.clone(), info) is None
    info = NodeInfo.of(machine, [make_pod("other").uid("other").requests(cpu=2).build()])
    assert plugin.filter(state.clone(), info).reasons == ("Insufficient cpu",)
    info.remove_pod(info.pods[0].pod)
    assert plugin.filter(state.clone(), info) is None
