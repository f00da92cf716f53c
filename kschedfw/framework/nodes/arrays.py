"""Arrays by node, and moves of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.records import define

ScalarT = TypeVar("ScalarT", bound=np.generic)

IntArray = npt.NDArray[np.int64]
"""An array of int64: rows of a NodeTable, or scores."""
FloatArray = npt.NDArray[np.float64]
"""An array of float64: amounts of resources, for arithmetic that is exact up to 2⁵³."""
Codes = npt.NDArray[np.int32]
"""An array of int32: an index into a list of values, by node."""
Mask = npt.NDArray[np.bool_]
"""An array of booleans, by node."""

FIRST_COLUMNS: Final = 4
"""The number of resources that every table has a column for: cpu, memory, ephemeral-storage and pods."""
# 100·a is at most 2⁵¹, so half a unit in the last place of 100·a/b is at most 1/(4b). A quotient that isn't
# whole is at least 1/b below the next integer.
LARGEST_EXACT: Final = 2**53 // 400
"""The largest amount a for which 100·a/b in float64 is never rounded up to the next integer."""


def moved(columns: npt.NDArray[ScalarT], moved_from: IntArray, fill: int = 0) -> npt.NDArray[ScalarT]:
    """Return the columns (last axis: rows) with moved rows: row i was row `moved_from[i]`, -1 for a new one.

    New rows have `fill`. The array is a new one.
    """
    # `take` raises IndexError on an axis without entries, even if every new row is -1.
    if not columns.shape[-1]:
        return np.full((*columns.shape[:-1], len(moved_from)), fill, dtype=columns.dtype)
    # `take` reads -1 as the last row. What it finds there is overwritten.
    found: npt.NDArray[ScalarT] = columns.take(moved_from, axis=-1)
    found[..., moved_from < 0] = fill
    return found


@define(eq=False)
class AmountColumns:
    """Amounts of r resources on n nodes, shape (r, n), and of CPU and memory as float64, too, shape (2, n).

    Only these two are scored by compiled loops. A cluster may have as many resources as nodes.
    """

    ints: IntArray
    floats: FloatArray
    int_cells: Sequence[memoryview] = attrs.field(init=False)
    """A view of each of the first resources' amounts, for writes: NumPy takes four times as long for a single one."""
    float_cells: Sequence[memoryview] = attrs.field(init=False)

    @classmethod
    def zeros(cls, resources: int, nodes: int) -> AmountColumns:
        return cls(np.zeros((resources, nodes), dtype=np.int64), np.zeros((2, nodes)))

    def __attrs_post_init__(self) -> None:
        self.int_cells, self.float_cells = first_cells(self.ints), first_cells(self.floats)

    def moved(self, moved_from: IntArray) -> AmountColumns:
        """Return a copy with moved rows, as `moved` does."""
        return AmountColumns(moved(self.ints, moved_from), moved(self.floats, moved_from))

    def with_more(self, resources: int) -> AmountColumns:
        """Return a copy with so many more resources, whose amounts are 0."""
        more = np.zeros((resources, self.ints.shape[1]), dtype=np.int64)
        return AmountColumns(np.concatenate((self.ints, more)), self.floats)


def first_cells(columns: npt.NDArray[ScalarT]) -> Sequence[memoryview]:
    """Return views for writing to the first columns, those that every table has; shape (r, n)."""
    return [memoryview(column) for column in columns[:FIRST_COLUMNS]]
