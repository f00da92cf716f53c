"""Types of arrays by node, and moves of their rows."""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

ScalarT = TypeVar("ScalarT", bound=np.generic)

IntArray = npt.NDArray[np.int64]
"""An array of int64: rows of a NodeTable, or scores."""
FloatArray = npt.NDArray[np.float64]
"""An array of float64: amounts of resources, for arithmetic that is exact up to 2⁵³."""
Codes = npt.NDArray[np.int32]
"""An array of int32: an index into a list of values, by node."""

LARGEST_EXACT: Final = 2**53 // 400
"""The largest amount a for which 100·a/b in float64 is never rounded up to the next integer."""


def moved(columns: npt.NDArray[ScalarT], moved_from: IntArray, fill: int = 0) -> npt.NDArray[ScalarT]:
    """Return the columns (last axis: rows) with moved rows: row i was row `moved_from[i]`, -1 for a new one.

    New rows have `fill`. The array is a new one.
    """
    if not columns.shape[-1]:
        return np.full((*columns.shape[:-1], len(moved_from)), fill, dtype=columns.dtype)
    # -1 takes the last row, which is overwritten.
    found: npt.NDArray[ScalarT] = columns.take(moved_from, axis=-1)
    found[..., moved_from < 0] = fill
    return found
