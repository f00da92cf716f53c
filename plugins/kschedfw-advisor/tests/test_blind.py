"""Of the problems of the export, the first advice is right, and what it changes places the pods."""

from __future__ import annotations

import re

from blind import PROBLEMS, first_advice, is_exact, kind_of, placed_after

FEWEST_EXACT = 34 / 40
"""The share of problems where what is said up to the first remedy has the words of a good colleague."""

# No test for each problem: every worker would ask about all of them in order to know its own.


def test_the_first_advice_is_right_for_each_problem_and_exact_for_most() -> None:
    first = {problem.name: first_advice(problem) for problem in PROBLEMS}
    wrong = [each.name for each in PROBLEMS if not re.search(each.right, first[each.name])]
    assert not wrong, {name: first[name] for name in wrong}
    exact = [each.name for each in PROBLEMS if is_exact(each)]
    assert len(exact) >= FEWEST_EXACT * len(PROBLEMS)


def test_a_scheduler_that_starts_after_the_first_change_places_as_many_pods() -> None:
    for problem in PROBLEMS:
        if problem.kind in {"Deployment", "DaemonSet"}:
            kind = kind_of(problem)
            assert kind is not None, problem.name
            for remedy in kind["helps"][:1]:
                assert placed_after(remedy, kind) == remedy["placed"] > 0, (problem.name, remedy["changes"])
