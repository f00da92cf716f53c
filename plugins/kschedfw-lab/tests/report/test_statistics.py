"""Intervals, the permutation test, and the correction for several comparisons."""

from __future__ import annotations

from itertools import product
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.report import statistics
from kschedfw_lab.report.statistics import (
    Estimate,
    holm,
    least_p,
    pairs_needed,
    sign_flip_p,
    t_quantile,
)

TABLE = {
    1: 12.7062047362,
    2: 4.3026527297,
    3: 3.1824463053,
    4: 2.7764451052,
    5: 2.5705818356,
    9: 2.2621571628,
    10: 2.2281388520,
    29: 2.0452296421,
    30: 2.0422724563,
    100: 1.9839715185,
    1000: 1.9623390808,
}
"""Quantiles from printed tables, with ten digits."""

differences = st.lists(st.integers(-20, 20), min_size=1, max_size=7)


class TestInterval:
    @pytest.mark.parametrize(("freedom", "quantile"), TABLE.items())
    def test_quantiles_of_students_t(self, freedom: int, quantile: float) -> None:
        assert t_quantile(freedom) == pytest.approx(quantile, abs=1e-9)

    def test_the_interval_of_a_mean(self) -> None:
        # Mean 5 and standard deviation 2, of four values: 5 ± 3.182 · 2 ∕ √4.
        found = Estimate.of([5, 3, 5, 7.0])
        deviation = (8 / 3) ** 0.5
        assert found.mean == 5
        assert found.half == pytest.approx(TABLE[3] * deviation / 2)
        assert found.ends == (found.low, found.high)

    def test_a_single_value_has_none(self) -> None:
        assert Estimate.of([3.5]) == Estimate(1, 3.5, None, None)
        assert Estimate.of([3.5]).ends == (3.5,)

    def test_equal_values_have_one_without_width(self) -> None:
        assert Estimate.of([2.0, 2.0, 2.0]) == Estimate(3, 2.0, 2.0, 2.0)


class TestSignFlips:
    @given(differences)
    def test_it_is_the_share_of_all_patterns_of_signs(self, given: list[int]) -> None:
        patterns = [
            abs(sum(sign * each for sign, each in zip(signs, given, strict=True)))
            for signs in product((-1, 1), repeat=len(given))
        ]
        expected = fmean(each >= abs(sum(given)) for each in patterns)
        assert sign_flip_p(given) == pytest.approx(expected)

    @given(differences, st.floats(1e-3, 1e3))
    def test_units_and_direction_mean_nothing(self, given: list[int], factor: float) -> None:
        p = sign_flip_p(given)
        assert sign_flip_p([each * factor for each in given]) == p
        assert sign_flip_p([-each for each in given]) == p
        assert sign_flip_p(given[::-1]) == p

    @pytest.mark.parametrize("count", range(1, 20))
    def test_the_smallest_is_that_of_equal_differences(self, count: int) -> None:
        assert sign_flip_p([0.1] * count) == least_p(count) == 2.0 ** (1 - count)

    def test_no_difference(self) -> None:
        assert sign_flip_p([0, 0, 0]) == 1

    def test_two_equal_differences_prove_nothing(self) -> None:
        """A t test would: they have no variance."""
        assert sign_flip_p([1, 1]) == 0.5

    def test_of_many_differences_patterns_are_drawn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        many = [1, 2, 3, -1, 2, 1, -2, 3, 1, -1, 2, -3, 1, 2, -1, 1, -2, 2, 1, -1, 4]
        drawn = sign_flip_p(many)
        assert drawn == sign_flip_p(many)
        monkeypatch.setattr(statistics, "_MOST_EXACT", len(many))
        exact = sign_flip_p(many)
        assert drawn != exact
        assert drawn == pytest.approx(exact, abs=0.01)

    def test_of_very_many(self) -> None:
        assert sign_flip_p([1.0] * 40) == least_p(40)


class TestHolm:
    def test_a_known_example(self) -> None:
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    @given(st.lists(st.floats(0, 1)))
    def test_it_only_raises_and_keeps_the_order(self, given: list[float]) -> None:
        found = holm(given)
        assert all(each <= corrected <= 1 for each, corrected in zip(given, found, strict=True))
        ordered = [corrected for _, corrected in sorted(zip(given, found, strict=True))]
        assert ordered == sorted(ordered)
        assert all(
            corrected <= min(1, len(given) * each) for each, corrected in zip(given, found, strict=True)
        )


@pytest.mark.parametrize("comparisons", [1, 2, 5, 15])
def test_pairs_needed(comparisons: int) -> None:
    needed = pairs_needed(comparisons)
    assert comparisons * least_p(needed) <= 0.05 < comparisons * least_p(needed - 1)
