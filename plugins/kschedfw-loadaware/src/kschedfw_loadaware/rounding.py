"""Rounding as Go does it: halves go away from zero (Python and NumPy round them to even)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def rounded(number: float) -> int:
    """The nearest integer of a number that isn't negative."""
    whole = int(number)
    return whole + (number - whole >= 0.5)


def all_rounded(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The same, number by number."""
    whole = numbers.astype(np.int64)
    return whole + (numbers - whole >= 0.5)
