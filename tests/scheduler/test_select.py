"""Which of the best nodes is taken: each with the same probability, and the same ones for the same seed."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.scheduler import Selection, select_host

TOTALS = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


class NoRandom(Random):
    """Fails when asked for a number."""

    def random(self) -> float:
        pytest.fail("a number was drawn")

    def getrandbits(self, k: int) -> int:
        pytest.fail("a number was drawn")


@given(TOTALS, st.integers())
def test_the_pick_is_one_of_the_best_and_all_of_them_are_known(totals: list[int], seed: int) -> None:
    selection = select_host(np.array(totals), Random(seed))
    best = tuple(index for index, total in enumerate(totals) if total == max(totals))
    assert selection.tied == best
    assert selection.index in best


@given(TOTALS, st.integers())
def test_the_same_seed_picks_the_same(totals: list[int], seed: int) -> None:
    assert select_host(np.array(totals), Random(seed)) == select_host(np.array(totals), Random(seed))


@pytest.mark.parametrize("totals", [[7], [1, 3, 2], [-2, -1]])
def test_a_single_best_node_takes_no_chance(totals: list[int]) -> None:
    best = totals.index(max(totals))
    assert select_host(np.array(totals), NoRandom()) == Selection(best, (best,))


@pytest.mark.parametrize("ties", [2, 3, 7, 20])
def test_every_one_of_the_best_is_as_likely_as_the_others(ties: int) -> None:
    random, draws = Random(2024), 1000 * ties
    totals = np.array([0, *[9] * ties, 3])
    picks = Counter(select_host(totals, random).index for _ in range(draws))
    assert set(picks) == set(range(1, ties + 1))
    chi_square = sum((count - 1000) ** 2 / 1000 for count in picks.values())
    degrees = ties - 1
    assert chi_square < degrees + 4 * (2 * degrees) ** 0.5, "four standard deviations above its mean"


def test_the_kth_best_node_replaces_the_pick_with_probability_one_in_k() -> None:
    class Replaying(Random):
        def __init__(self, numbers: list[int]) -> None:
            super().__init__()
            self.numbers = numbers
            self.asked: list[int] = []

        def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
            self.asked.append(start)
            return self.numbers.pop(0)

    random = Replaying([1, 0, 2])
    assert select_host(np.array([5, 5, 5, 5]), random).index == 2
    assert random.asked == [2, 3, 4]
