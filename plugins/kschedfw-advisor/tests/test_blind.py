"""Of the problems of the second export, the first advice is right, and what it changes places the pods."""

from __future__ import annotations

import re

import pytest
from blind import PROBLEMS, Problem, first_advice, kind_of, placed_after

FEWEST_EXACT = 34 / 40
"""The share of first lines that say exactly what a good colleague would."""


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_first_advice_is_right(problem: Problem) -> None:
    assert re.search(problem.right, first_advice(problem)), first_advice(problem)


def test_most_first_advice_is_what_a_colleague_would_say() -> None:
    exact = [problem for problem in PROBLEMS if first_advice(problem).startswith(problem.exact)]
    assert len(exact) >= FEWEST_EXACT * len(PROBLEMS)


@pytest.mark.parametrize(
    "problem",
    [each for each in PROBLEMS if each.kind in ("Deployment", "DaemonSet")],
    ids=lambda each: each.name,
)
def test_a_scheduler_that_starts_after_the_first_change_places_as_many_pods(problem: Problem) -> None:
    kind = kind_of(problem)
    assert kind is not None
    for remedy in kind["helps"][:1]:
        assert placed_after(remedy, kind) == remedy["placed"] > 0, remedy["changes"]
