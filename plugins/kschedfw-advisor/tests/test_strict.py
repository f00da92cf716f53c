"""Of forty planted problems, the first advice is the sentence that a good colleague would say, word by word."""

from __future__ import annotations

from strict import ANSWERS, first_advice, placed_after_first

# The sentences and the floors stay: what is said otherwise is wrong, or needs a reason beside the new sentence.
FEWEST_EXACT = 37
FEWEST_RIGHT = 39

# No test for each problem: every worker would ask about all of them in order to know its own.


def test_the_first_advice_is_the_expected_sentence_and_else_another_one_that_helps() -> None:
    assert len(ANSWERS) == 40
    first = {each.problem.name: first_advice(each.problem) for each in ANSWERS}
    inexact = [each for each in ANSWERS if not each.is_exact(first[each.problem.name])]
    wrong = [each for each in inexact if not each.is_right(first[each.problem.name])]
    assert len(ANSWERS) - len(inexact) >= FEWEST_EXACT, [first[each.problem.name] for each in inexact]
    assert len(ANSWERS) - len(wrong) >= FEWEST_RIGHT, [first[each.problem.name] for each in wrong]


def test_a_scheduler_that_starts_after_the_first_change_places_as_many_pods_as_it_says() -> None:
    for each in ANSWERS:
        placed = placed_after_first(each.problem)
        if placed is not None:
            said, found = placed
            assert said == found > 0, each.problem.name
