"""What chance decides in a preemption is no difference; everything else is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.compare import differences
from tests.conformance.scenario import Scenario


def decision(**changes: object) -> dict[str, Any]:
    """Nodes a and b are equally good; c is a worse candidate."""
    post_filter = {
        "code": "Success",
        "message": "",
        "nominatedNode": "a",
        "victims": ["default/a1", "default/a2"],
        "numPDBViolations": 0,
        "tied": ["a", "b"],
        "candidates": {
            "a": {"victims": ["default/a1", "default/a2"], "numPDBViolations": 0},
            "b": {"victims": ["default/b1", "default/b2"], "numPDBViolations": 0},
            "c": {"victims": ["default/c1"], "numPDBViolations": 1},
        },
        "rejected": {},
    }
    return {
        "pod": "default/p",
        "preFilter": {"skip": []},
        "preScoreSkip": [],
        "postFilter": post_filter | changes,
    }


def found(ours: dict[str, Any], recorded: dict[str, Any] | None = None) -> list[str]:
    expected = [recorded or decision()]
    scenario = Scenario("s", {}, [], expected=expected)
    return [each.where for each in differences(scenario, [ours])]


def test_the_same_is_no_difference() -> None:
    assert found(decision()) == []
    nothing = decision() | {"postFilter": None}
    assert found(nothing, nothing) == []


def test_the_order_of_victims_is_none() -> None:
    assert found(decision(victims=["default/a2", "default/a1"])) == []


def test_another_of_the_tied_nodes_is_none() -> None:
    assert found(decision(nominatedNode="b", victims=["default/b2", "default/b1"])) == []


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"nominatedNode": "b"}, ["victims"]),
        ({"nominatedNode": "c", "victims": ["default/c1"]}, ["nominatedNode", "victims"]),
        ({"victims": ["default/a1"]}, ["victims"]),
        ({"tied": ["a"]}, ["tied"]),
        ({"message": "preemption: no"}, ["message"]),
        ({"rejected": {"d": {}}}, ["rejected.d"]),
    ],
)
def test_everything_else_is_one(changes: dict[str, object], where: list[str]) -> None:
    assert found(decision(**changes)) == [f"s default/p postFilter.{each}" for each in where]


def test_saying_nothing_where_something_was_recorded_is_one() -> None:
    assert found(decision() | {"postFilter": None}) == ["s default/p postFilter"]
    assert found(decision(), decision() | {"postFilter": None}) == ["s default/p postFilter"]
