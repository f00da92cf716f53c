"""Which rows have the highest totals, kept in step while few of these change."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from kschedfw.framework.nodes.arrays import IntArray


class BestRows:
    """The rows of a column of totals that have the highest one.

    Rows are kept by total down to what was the highest at first, so that a node that gets better, and then worse again
    as it is taken, doesn't ask for another look at all of them.
    """

    __slots__ = ("_floor", "_rows")

    def __init__(self, totals: IntArray) -> None:
        rows = rows_with_most(totals)
        self._floor = int(totals[rows[0]])
        self._rows: dict[int, list[int]] = {self._floor: rows.tolist()}

    def changed(self, row: int, before: int, after: int) -> bool:
        """Take a row's new total; False if no row is left of those that are kept."""
        if before >= self._floor:
            rows = self._rows[before]
            if len(rows) == 1:
                del self._rows[before]
            else:
                del rows[bisect_left(rows, row)]
        if after >= self._floor:
            insort(self._rows.setdefault(after, []), row)
        return bool(self._rows)

    @property
    def rows(self) -> Sequence[int]:
        """The rows with the highest total, ascending; as long as nothing changes."""
        return self._rows[max(self._rows)]


def rows_with_most(totals: IntArray) -> IntArray:
    """The rows with the highest of these totals, ascending."""
    if not len(totals):
        return np.empty(0, dtype=np.int64)
    rows: IntArray = (totals == totals[totals.argmax()]).nonzero()[0]  # argmax takes a third of max's time
    return rows
