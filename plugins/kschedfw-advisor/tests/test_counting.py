"""The smallest number that does as much as any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_advisor.counting import smallest_count


@given(st.lists(st.integers(0, 5), min_size=1, max_size=200))
def test_it_is_the_first_count_that_does_as_much_and_few_are_asked_for(gains: list[int]) -> None:
    done = [0]
    for gain in gains:
        done.append(done[-1] + gain)
    asked: list[int] = []

    def place(count: int) -> int:
        asked.append(count)
        return done[count]

    found = smallest_count(place, len(gains))
    assert found == max(1, done.index(done[-1]))
    assert found in asked
    assert found == 1 or found - 1 in asked
    assert len(asked) <= 2 + 2 * len(gains).bit_length()


@pytest.mark.parametrize("most", [4, 50])
def test_a_right_guess_is_asked_about_and_the_count_below_it_alone(most: int) -> None:
    asked: list[int] = []

    def place(count: int) -> int:
        asked.append(count)
        return min(10, 3 * count)

    assert smallest_count(place, most, guess=4, all_of_them=10) == 4
    assert asked == [4, 3]


@given(st.integers(1, 30), st.integers(1, 10), st.integers(1, 40), st.integers(1, 40))
def test_a_guess_changes_nothing_but_how_often_is_asked(pods: int, each: int, most: int, guess: int) -> None:
    def place(count: int) -> int:
        return min(pods, each * count)

    assert smallest_count(place, most, guess=guess, all_of_them=pods) == smallest_count(place, most)
