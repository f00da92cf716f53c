"""Rounding as in Go: halves are rounded away from zero. Python and NumPy round halves to even."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def rounded(number: float) -> int:
    """Round a number that isn't negative to the nearest integer."""
    whole = int(number)
    return whole + (number - whole >= 0.5)


def all_rounded(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Round each number, as `rounded` does."""
    whole = numbers.astype(np.int64)
    return whole + (numbers - whole >= 0.5)
