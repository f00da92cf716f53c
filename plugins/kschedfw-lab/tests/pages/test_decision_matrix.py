"""The matrix says the same as the explanation that it is made from."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from kschedfw_lab.pages.columns import NONE, Column
from kschedfw_lab.pages.decision_matrix import TOP, DecisionMatrix, decision_matrix
from pages.clusters import cluster, pods

from kschedfw import InMemoryCluster
from kschedfw.explain import Explanation, explain_pod
from kschedfw.explain.sections import headline, overview
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


def at(column: Column, row: int) -> int:
    return column if isinstance(column, int) else column[row]


def agrees(matrix: DecisionMatrix, explanation: Explanation) -> None:
    places = {row: place for place, row in enumerate(matrix.feasible)}
    for row, node in enumerate(explanation.rows()):
        assert matrix.nodes[row] == node.node
        assert matrix.kinds[at(matrix.verdicts, row)] == node.verdict.value
        assert (row in matrix.tied) == node.is_tied
        code = at(matrix.refusals_of, row)
        assert (None if code == NONE else matrix.refusals[code].message) == (
            None if node.refusal is None else node.refusal.message
        )
        if node.total is not None:
            assert matrix.totals[places[row]] == node.total
        against = {plugin.name: at(plugin.refusals, row) for plugin in matrix.plugins}
        for plugin, status in node.also_refused_by.items():
            assert matrix.refusals[against[plugin]].message == status.message
        for column in matrix.plugins:
            assert column.evidence.get(row, ()) == tuple(map(str, node.evidence.get(column.name, ())))
            if (score := node.scores.get(column.name)) is not None:
                assert column.raw is not None
                assert column.normalized is not None
                assert (at(column.raw, places[row]), at(column.normalized, places[row]), column.weight) == (
                    score.raw,
                    score.normalized,
                    score.weight,
                )


@settings(max_examples=examples(30))
@given(clusters(most_nodes=5, most_pending=1))
def test_it_has_what_the_explanation_has_of_every_node(given: DrawnCluster) -> None:
    if not given.pending:
        return
    explanation = explain_pod(InMemoryCluster([*given.nodes, *given.bound]), given.pending[0])
    agrees(decision_matrix(explanation), explanation)


def test_it_has_the_text_of_explain() -> None:
    explanation = explain_pod(cluster(), pods()[3])
    matrix = decision_matrix(explanation)
    assert matrix.headline == headline(explanation)
    sections = list(overview(explanation, TOP))
    assert [(table.title, table.rows, table.lines) for table in matrix.text] == [
        (section.title, section.rows, section.lines) for section in sections
    ]
    assert matrix.closest, "none is feasible, so some are closest to it"


def test_it_is_json() -> None:
    matrix = decision_matrix(explain_pod(cluster(), pods()[2]))
    assert msgspec.json.decode(msgspec.json.encode(matrix), type=DecisionMatrix) == matrix


def test_a_gated_pod_has_a_decision_without_steps() -> None:
    matrix = decision_matrix(explain_pod(cluster(), pods()[4]))
    assert (matrix.result, matrix.feasible, matrix.totals) == ("gated", [], [])
