"""Of forty problems planted in a small export, the first advice is right, and what it changes places the pods."""

from __future__ import annotations

import re

import pytest
from problems import PROBLEMS, Problem, answers, first_advice, placed_after


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_first_advice_is_right_and_exact(problem: Problem) -> None:
    first = first_advice(answers()[problem.name])
    assert re.search(problem.right, first), first
    assert first.startswith(problem.exact), first


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_a_scheduler_that_starts_after_the_first_change_places_as_many_pods(problem: Problem) -> None:
    kind = answers()[problem.name]
    for remedy in kind["helps"][:1]:
        assert placed_after(remedy, kind) == remedy["placed"] > 0, remedy["changes"]
