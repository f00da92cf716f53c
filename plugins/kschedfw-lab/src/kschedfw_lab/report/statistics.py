"""Means with confidence intervals, and tests whether paired differences are significant.

Three textbook methods of a few lines each. scipy has them, too, but would be a large dependency for so little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, stdev
from typing import Final

import attrs
import numpy as np

CONFIDENCE: Final = 0.95
SIGNIFICANCE: Final = 1 - CONFIDENCE

_MOST_EXACT: Final = 20
"""The most differences for which all sign patterns are tried. For 20 differences these are half a million."""

_DRAWN: Final = 1 << 16
"""The number of sign patterns that are drawn for more differences."""


@attrs.frozen
class Estimate:
    """The mean of some values with its 95 % confidence interval.

    Attributes:
        count: the number of values.
        mean: their mean.
        low, high: the ends of the interval, by Student's t distribution; None for a single value.
    """

    count: int
    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Return the estimate from one or more values."""
        mean = fmean(values)
        if len(values) < 2:
            return cls(len(values), mean, None, None)
        half = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
        return cls(len(values), mean, mean - half, mean + half)

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends of the interval, or only the mean if there is no interval."""
        return (self.mean,) if self.low is None or self.high is None else (self.low, self.high)

    @property
    def half(self) -> float | None:
        """Half of the interval's width; None if there is none."""
        return None if self.high is None else self.high - self.mean


@lru_cache(maxsize=1024)
def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution. 95 % of the distribution is within ± this value.

    The probability within ±t is a finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4). t
    is found by bisection.
    """
    low, high = 0.0, math.pi / 2
    while True:
        angle = (low + high) / 2
        if angle in (low, high):
            return math.tan(angle) * math.sqrt(freedom)
        if _within(angle, freedom) < CONFIDENCE:
            low = angle
        else:
            high = angle


def _within(angle: float, freedom: int) -> float:
    """Return the probability within ±t, where t is the tangent of `angle` times the root of the degrees of freedom."""
    square = math.cos(angle) ** 2
    is_odd = freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(3 if is_odd else 2, freedom - 1, 2):
        term *= square * (power - 1) / power
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total


def sign_flip_p(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of the paired permutation test that the mean difference is 0.

    If it doesn't matter which of two policies a run has, every difference could as well have the other sign. So all
    sign patterns are tried. For more than 20 differences, 65,536 patterns are drawn, always the same ones. Nothing is
    assumed about the distribution, so counts, ties and outliers do no harm. The smallest possible p-value for n
    differences is 2^(1-n), so fewer than six differences never reach 5 %.
    """
    moved = np.array([each for each in differences if each], dtype=float)
    if not moved.size:
        return 1.0
    # The same numbers, added in another order, may differ in the last digits.
    tolerance = 1e-9 * float(np.abs(moved).sum())
    threshold = abs(float(moved.sum())) - tolerance
    if moved.size <= _MOST_EXACT:
        # Keep the first sign: flipping all signs gives the same distance from 0, so half of the patterns suffice.
        sums = moved[:1]
        for each in moved[1:]:
            sums = np.concatenate((sums + each, sums - each))
        return float(np.mean(np.abs(sums) >= threshold))
    drawn = np.abs(_signs(moved.size) @ moved)
    # The observed signs count as one of the patterns, so that p is never 0.
    return float((np.sum(drawn >= threshold) + 1) / (_DRAWN + 1))


@lru_cache(maxsize=4)
def _signs(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    drawn = np.random.default_rng(0).integers(0, 2, (_DRAWN, count), dtype=np.int8)
    return (2 * drawn - 1).astype(np.float32)


def least_p(count: int) -> float:
    """Return the smallest p-value that `sign_flip_p` can return for `count` differences."""
    return 2.0 ** (1 - count) if count <= _MOST_EXACT else 1 / (_DRAWN + 1)


def holm(probabilities: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm's method, so that all comparisons together err in at most 5 % of cases."""
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    corrected = [0.0] * len(probabilities)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * probabilities[index]))
        corrected[index] = highest
    return corrected


def pairs_needed(comparisons: int) -> int:
    """Return the least number of pairs with which one of so many comparisons can be significant."""
    return math.ceil(math.log2(comparisons / SIGNIFICANCE)) + 1
