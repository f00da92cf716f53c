"""Answers by domain: what plugins get wrong in them is told, whichever way the framework asks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kschedfw import (
    ByDomain,
    CycleState,
    DomainScores,
    DomainVerdicts,
    NodeSelection,
    NodeTable,
    Normalizing,
    PluginByDomain,
    Snapshot,
    Status,
    make_node,
    make_pod,
)
from kschedfw.framework.runtime.calls import Evaluation
from tests.framework.support import make_framework

ZONE = "zone"
NO = Status.unschedulable("no")
NODES = [make_node(f"n{number}").labels(zone=f"z{number % 2}").build() for number in range(40)]

Verdicts = Callable[[NodeTable], DomainVerdicts]


def no_refusal(nodes: NodeTable) -> ByDomain:
    column = nodes.label(ZONE)
    return ByDomain(column, np.zeros(column.size + 1, dtype=np.bool_))


def too_few(nodes: NodeTable) -> DomainVerdicts:
    column = nodes.label(ZONE)
    return DomainVerdicts([ByDomain(column, np.zeros(column.size - 1, dtype=np.bool_))], [NO])


def too_many(nodes: NodeTable) -> DomainVerdicts:
    return DomainVerdicts([ByDomain(nodes.label(ZONE), np.zeros(len(nodes) + 9, dtype=np.bool_))], [NO])


def fractions(nodes: NodeTable) -> DomainVerdicts:
    column = nodes.label(ZONE)
    return DomainVerdicts([ByDomain(column, np.zeros(column.size + 1, dtype=np.float64))], [NO])  # type: ignore[arg-type]


def no_status(nodes: NodeTable) -> DomainVerdicts:
    return DomainVerdicts([no_refusal(nodes)], [])


def other_table(nodes: NodeTable) -> DomainVerdicts:
    del nodes
    return DomainVerdicts([no_refusal(NodeTable([]))], [NO])


@pytest.mark.parametrize("evaluation", Evaluation)
@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (too_few, "has 1 values for 2 domains; it must have 3"),
        (too_many, "has 49 values for 2 domains; it must have 3"),
        (fractions, "are float64; they must be bool or integer"),
        (no_status, "1 parts and 0 statuses"),
        (other_table, "0 nodes, the table 40"),
    ],
)
def test_wrong_verdicts_are_the_plugins_error(verdicts: Verdicts, told: str, evaluation: Evaluation) -> None:
    # The compiled loops would read beyond the end of an array.
    class ByZone(PluginByDomain):
        name = "ByZone"

        def domain_refusals(self, state: CycleState, nodes: NodeTable) -> DomainVerdicts:  # the hook's
            return verdicts(nodes)

    snapshot = Snapshot.of(NODES, ())
    framework = make_framework(ByZone, snapshot=snapshot, evaluation=evaluation)
    state, pod = CycleState(), make_pod().build()
    framework.run_pre_filter_plugins(state, pod)
    error = framework.filter_nodes(state, pod, NodeSelection.whole(snapshot.table)).error
    assert error is not None
    assert error.plugin == "ByZone"
    assert told in error.message


@pytest.mark.parametrize("evaluation", Evaluation)
def test_wrong_scores_are_the_plugins_error(evaluation: Evaluation) -> None:
    class ByZone(PluginByDomain):
        name = "ByZone"

        def domain_scores(self, state: CycleState, nodes: NodeTable) -> DomainScores:  # the hook's
            column = nodes.label(ZONE)
            values = np.zeros(column.size + 40, dtype=np.int64)
            return DomainScores([ByDomain(column, values)], Normalizing.STRETCHED)

    snapshot = Snapshot.of(NODES, ())
    framework = make_framework(ByZone, snapshot=snapshot, evaluation=evaluation)
    state, pod = CycleState(), make_pod().build()
    framework.run_pre_filter_plugins(state, pod)
    found = framework.filter_nodes(state, pod, NodeSelection.whole(snapshot.table))
    framework.run_pre_score_plugins(state, pod, found.feasible)
    totals, status = framework.total_scores(state, pod, found.feasible)
    assert totals is None
    assert status.plugin == "ByZone"
    assert "has 42 values for 2 domains; it must have 3" in status.message


@pytest.mark.parametrize("entries", [2, 3])
def test_the_entry_for_nodes_without_the_label_may_be_left_out_where_all_have_it(entries: int) -> None:
    table = Snapshot.of(NODES, ()).table
    ByDomain(table.label(ZONE), np.zeros(entries, dtype=np.bool_)).check(table)
    unlabelled = Snapshot.of([*NODES, make_node("n40").build()], ()).table
    part = ByDomain(unlabelled.label(ZONE), np.zeros(entries, dtype=np.bool_))
    if entries == 3:
        part.check(unlabelled)
    else:
        with pytest.raises(ValueError, match="it must have 3"):
            part.check(unlabelled)
