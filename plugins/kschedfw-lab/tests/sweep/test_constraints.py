"""Constraints between factors."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab import SweepError
from kschedfw_lab.expressions import Scalar
from kschedfw_lab.sweep.constraints import Constraint

CELL: dict[str, Scalar] = {
    "nodes": 10,
    "share": 0.5,
    "strategy": "MostAllocated",
    "plugins.CostAware": 0,
    "profiles[0].percentageOfNodesToScore": 50,
    "arrivals": False,
    "rate": None,
}


def holds(text: str) -> bool:
    return Constraint.parse(text, CELL).holds(CELL)


@pytest.mark.parametrize(
    "text",
    [
        "nodes == 10",
        "nodes > 9.5 and nodes <= 10",
        "strategy == 'MostAllocated'",
        'strategy != "LeastAllocated"',
        "not plugins.CostAware",
        "plugins.CostAware > 0 or strategy == 'MostAllocated'",
        "profiles[0].percentageOfNodesToScore * 2 == nodes * 10",
        "nodes - 4 + share * 2 == 7",
        "not (nodes < 5 or nodes > 20)",
        "arrivals == false and rate == null",
        "strategy",
        "share <= 50%",
        "share + 0.1 + 0.2 == 0.8",
    ],
)
def test_what_holds(text: str) -> None:
    assert holds(text)
    assert not holds(f"not ({text})")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a factor, a number or a text is missing at the end"),
        ("nodes >", "a factor, a number or a text is missing at the end"),
        ("> 3", "a factor, a number or a text is missing before '>'"),
        ("node > 3", "there is no factor 'node' (texts are in quotes); did you mean nodes?"),
        ("strategy == MostAllocated", "(texts are in quotes); there are nodes, share"),
        ("(nodes > 3", "a closing parenthesis is missing"),
        ("nodes > 3)", "')' is one too many"),
        ("nodes ^ 3", "'^' is not understood"),
        ("nodes > 3 and", "is missing at the end"),
        ("not " * 30 + "nodes", "nested more than 20 levels deep"),
        ("nodes" * 200, "a constraint of 1,000 characters; at most 500"),
        ("__import__('os')", "there is no factor '__import__'"),
    ],
)
def test_what_is_no_constraint(text: str, why: str) -> None:
    with pytest.raises(SweepError) as caught:
        Constraint.parse(text, CELL)
    assert why in str(caught.value)


def test_only_texts_are_constraints() -> None:
    with pytest.raises(SweepError, match="expected a text such as"):
        Constraint.parse(3, CELL)


@pytest.mark.parametrize("text", ["strategy < 3", "strategy + 1 == 2", "rate > 1"])
def test_what_is_no_number_has_no_order(text: str) -> None:
    with pytest.raises(SweepError, match="is no number"):
        holds(text)


@given(
    left=st.integers(0, 20),
    right=st.integers(0, 20),
    sign=st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
)
def test_comparisons_are_pythons(left: int, right: int, sign: str) -> None:
    expected = {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
    }[sign]
    cell: dict[str, Scalar] = {"a": left, "b": right}
    assert Constraint.parse(f"a {sign} b", cell).holds(cell) is expected
    assert Constraint.parse(f"a {sign} {right}", cell).holds(cell) is expected


@given(st.text(max_size=60))
def test_any_text_is_a_constraint_or_refused(text: str) -> None:
    with suppress(SweepError):
        holds(text)
