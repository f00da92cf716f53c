"""The compiled forms of scores: the numbers of the scalar forms, and where they are used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import Normalizing, make_node, make_pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import LARGEST_EXACT, FloatArray
from kschedfw.plugins import _resources
from kschedfw.plugins.inter_pod_affinity.scoring import normalized
from kschedfw.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation, balance
from kschedfw.plugins.node_resources_fit import NodeResourcesFit, ScoringStrategy, ScoringStrategyType
from kschedfw.plugins.node_resources_fit.scoring import scorers_of
from kschedfw.plugins.pod_topology_spread.scoring import SoftSpread
from kschedfw.testing import FrameworkHarness
from tests.plugins.resource_clusters import ResourceCluster, resource_clusters

compiled = pytest.importorskip("kschedfw.plugins._compiled", reason="needs the extra fast")
loops = pytest.importorskip("kschedfw.framework.runtime.engine._pass", reason="needs the extra fast")

AMOUNT = st.sampled_from([0, 1, 3, 7, 100, 4000, 3 * 2**30, LARGEST_EXACT]) | st.integers(0, LARGEST_EXACT)


@st.composite
def usages(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, int]:
    """Of one resource: what five nodes have, what their pods use (more, too), and a pod's request."""
    allocatable = draw(st.lists(AMOUNT, min_size=5, max_size=5))
    used = [draw(st.integers(0, 2 * each)) for each in allocatable]
    return np.array(allocatable, float), np.array(used, float), draw(st.integers(0, max(allocatable)))


def per_node(*resources: tuple[FloatArray, FloatArray, int]) -> Sequence[Sequence[tuple[int, int, int]]]:
    """For each node, what it has, uses, and is requested of each resource of which it has something."""
    return [
        [
            (int(allocatable[node]), int(used[node]), request)
            for allocatable, used, request in resources
            if allocatable[node]
        ]
        for node in range(5)
    ]


@given(usages(), usages())
def test_least_allocated_is_the_scalar_form(
    first: tuple[FloatArray, FloatArray, int], second: tuple[FloatArray, FloatArray, int]
) -> None:
    score, _ = scorers_of(ScoringStrategy(ScoringStrategyType.LEAST_ALLOCATED))
    expected = [
        score([(used + request, allocatable, 1) for allocatable, used, request in node])
        for node in per_node(first, second)
    ]
    assert compiled.least_allocated(*first, *second).tolist() == expected


@given(usages(), usages())
def test_balanced_allocation_is_the_scalar_form(
    first: tuple[FloatArray, FloatArray, int], second: tuple[FloatArray, FloatArray, int]
) -> None:
    expected = []
    for node in per_node(first, second):
        before = balance([min(used / allocatable, 1.0) for allocatable, used, _ in node])
        after = balance([min((used + request) / allocatable, 1.0) for allocatable, used, request in node])
        expected.append(50 + (50 + after - before) // 2)
    assert compiled.balanced_allocation(*first, *second).tolist() == expected


@pytest.mark.parametrize("kind", [NodeResourcesFit, NodeResourcesBalancedAllocation])
@given(cluster=st.booleans().flatmap(lambda huge: resource_clusters(with_huge_amounts=huge)))
def test_batch_scores_by_the_loops_are_the_scalar_ones_on_any_cluster(
    kind: Any, cluster: ResourceCluster
) -> None:
    harness = FrameworkHarness(kind, nodes=cluster.nodes, pods=cluster.bound)
    plugin: Any = harness.framework.plugins[kind.name]
    table = harness.snapshot.table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_resources, "_FEWEST_COMPILED", 1)
        for pod in cluster.pending:
            state = CycleState()
            plugin.pre_score(state, pod)
            batch = plugin.score_batch(state, pod, table, table.all_rows)
            if batch is not None:
                assert batch.tolist() == [plugin.score(state, pod, info) for info in table.node_infos]


def scores_of_many_nodes(kind: Any, memory: str = "8Gi") -> tuple[list[int], list[int]]:
    """In the batch form and in the scalar form, of 300 nodes, one of which has this memory."""
    nodes = [
        make_node(f"node-{number}")
        .capacity(cpu=1 + number % 7, memory="16Gi" if number else memory, pods=110)
        .build()
        for number in range(300)
    ]
    pods = [
        make_pod(f"pod-{number}")
        .uid(f"pod-{number}")
        .requests(cpu=f"{100 + number}m", memory=f"{number}Mi")
        .node(f"node-{number}")
        .build()
        for number in range(0, 300, 2)
    ]
    harness = FrameworkHarness(kind, nodes=nodes, pods=pods)
    plugin: Any = harness.framework.plugins[kind.name]
    table, state = harness.snapshot.table, CycleState()
    pod = make_pod("new").requests(cpu="700m", memory="1Gi").build()
    plugin.pre_score(state, pod)
    batch = plugin.score_batch(state, pod, table, table.all_rows)
    return batch.tolist(), [plugin.score(state, pod, info) for info in table.node_infos]


@pytest.mark.parametrize("kind", [NodeResourcesFit, NodeResourcesBalancedAllocation])
@pytest.mark.parametrize("memory", ["8Gi", "0", "30Ti"])
@pytest.mark.parametrize("is_installed", [True, False])
def test_batch_forms_score_the_same_with_and_without_it(
    kind: Any, memory: str, is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def loops() -> Any:
        nonlocal asked
        asked += 1
        return compiled if is_installed else None

    monkeypatch.setattr(_resources, "_compiled_if_installed", loops)
    batch, scalar = scores_of_many_nodes(kind, memory)
    assert batch == scalar
    assert asked == (memory != "30Ti")  # there the loops would be wrong


def test_numba_is_not_loaded_for_a_few_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(_resources, "_compiled_if_installed", lambda: asked.append(compiled))
    monkeypatch.setattr(_resources, "_ROWS_SCORED", _resources._RowsScored())
    monkeypatch.setattr(_resources, "_ROWS_BEFORE_LOADING", 600)
    monkeypatch.delitem(sys.modules, "numba")
    for asked_after in (0, 0, 1, 2):
        batch, scalar = scores_of_many_nodes(NodeResourcesFit)  # of 300 nodes
        assert batch == scalar
        assert len(asked) == asked_after


@given(
    places=st.lists(
        st.tuples(st.integers(-1, 3), st.integers(-1, 1), st.booleans()), min_size=1, max_size=12
    ),
    values=st.lists(st.integers(0, 1000), min_size=8, max_size=8),
    start=st.integers(0, 11),
    looked_at=st.integers(1, 12),
    normalizing=st.sampled_from(Normalizing),
)
def test_scores_by_domain_are_normalised_as_by_the_hooks(
    places: list[tuple[int, int, bool]],
    values: list[int],
    start: int,
    looked_at: int,
    normalizing: Normalizing,
) -> None:
    """For nodes in domains of two keys, of which some are feasible, of those that were looked at."""
    count, weight = len(places), 3.0
    start, looked_at = start % count, min(looked_at, count)
    first, second, feasible = (np.array(column) for column in zip(*places, strict=True))
    raw = np.empty(count)
    of_first, of_second = np.array(values[:5]), np.array(values[5:])
    loops.gather(first.astype(np.int32), of_first, False, raw)
    loops.gather(second.astype(np.int32), of_second, True, raw)
    assert raw.tolist() == (of_first[first] + of_second[second]).tolist()
    totals, found = np.where(feasible, 7.0, -9.0), np.full(count, -1.0)
    assert loops.add_normalized(
        totals, start, looked_at, raw, normalizing is Normalizing.STRETCHED, weight, found
    )
    rows = [row % count for row in range(start, start + looked_at) if feasible[row % count]]
    if rows:
        hook = (
            normalized
            if normalizing is Normalizing.STRETCHED
            else partial(SoftSpread((), None).normalize, np.array(rows))
        )
        assert found[rows].tolist() == (7.0 + weight * hook(raw[rows].astype(np.int64))).tolist()
    assert all(found[row % count] < 0 for row in range(start, start + looked_at) if not feasible[row % count])


def test_scores_by_domain_that_are_inexact_in_float64_are_refused() -> None:
    raw, totals, found = np.array([0.0, LARGEST_EXACT + 1]), np.array([1.0, 1.0]), np.empty(2)
    assert not loops.add_normalized(totals, 0, 2, raw, True, 1.0, found)
    totals[1] = -1.0
    assert loops.add_normalized(totals, 0, 2, raw, True, 1.0, found), "the node with it isn't feasible"
