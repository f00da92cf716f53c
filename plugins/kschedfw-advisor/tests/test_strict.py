"""Of forty planted problems, the first advice is the sentence that a good colleague would say, word by word."""

from __future__ import annotations

import pytest
from strict import Yardstick, yardstick_of

# The sentences and the floors stay: what is said otherwise is wrong, or needs a reason beside the new sentence.
FEWEST = {"strict_problems.yaml": (37, 39), "fresh_problems.yaml": (34, 40)}
"""How many of the answers have to be exact, and how many right, by file."""


@pytest.fixture(scope="module", params=FEWEST)
def measured(request: pytest.FixtureRequest) -> tuple[Yardstick, int, int]:
    # No test for each problem: every worker would ask about all of them in order to know its own.
    return yardstick_of(request.param), *FEWEST[request.param]


def test_the_first_advice_is_the_expected_sentence_and_else_another_one_that_helps(
    measured: tuple[Yardstick, int, int],
) -> None:
    yardstick, fewest_exact, fewest_right = measured
    answers = yardstick.answers
    assert len(answers) >= 40
    first = {each.problem.name: yardstick.first_advice(each.problem) for each in answers}
    inexact = [each for each in answers if not each.is_exact(first[each.problem.name])]
    wrong = [each for each in inexact if not each.is_right(first[each.problem.name])]
    assert len(answers) - len(inexact) >= fewest_exact, [first[each.problem.name] for each in inexact]
    assert len(answers) - len(wrong) >= fewest_right, [first[each.problem.name] for each in wrong]


def test_a_scheduler_that_starts_after_the_first_change_places_as_many_pods_as_it_says(
    measured: tuple[Yardstick, int, int],
) -> None:
    yardstick, _, _ = measured
    for each in yardstick.answers:
        placed = yardstick.placed_after_first(each.problem)
        if placed is not None:
            said, found = placed
            assert said == found > 0, each.problem.name
