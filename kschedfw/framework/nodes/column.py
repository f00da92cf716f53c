"""Answers by row of a node table. An answer is forgotten when its node changes in a way that may change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import IntArray, moved
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable

FEW_ROWS: Final = 4
"""Up to this number of rows, the scalar form is called even where there is a batch form: calling NumPy costs more."""

UNKNOWN_CODE: Final = -1
UNKNOWN_SCORE: Final = -(1 << 63)
"""The least int64. If a plugin really gives this score, it is asked each time."""


class Column:
    """One answer per row in `values`, shape (n,); `unknown` where no answer is known to hold."""

    __slots__ = ("_layout", "_nodes", "_pods", "_reads", "unknown", "values")

    def __init__(
        self, table: NodeTable, reads: Reads, dtype: type[np.signedinteger[Any]], unknown: int
    ) -> None:
        self._reads = reads
        self.unknown = unknown
        self.values: npt.NDArray[np.signedinteger[Any]] = np.full(len(table), unknown, dtype=dtype)
        self._mark_current(table)

    def follow(self, table: NodeTable) -> Sequence[int] | None:
        """Forget the values of rows that have changed. Return those rows; None if rows have moved, or all changed."""
        nodes, pods = table.node_changes.version, table.pod_changes.version
        if (
            self._nodes == nodes
            and self._layout == table.layout
            and (self._reads is Reads.NODE or self._pods == pods)
        ):
            return ()
        # The present version of the log of pods stands for "no changes" where pods don't matter.
        changed = table.changed_since(self._nodes, self._pods if self._reads is Reads.PODS else pods)
        # A node that came and went again gives a new layout in which no row has moved: `moved_since` tells it
        # by `all_rows`.
        moved_from = table.all_rows if self._layout == table.layout else table.moved_since(self._layout)
        is_in_place = moved_from is table.all_rows and changed is not None
        if moved_from is None or changed is None:
            self.values = np.full(len(table), self.unknown, dtype=self.values.dtype)
        else:
            if not is_in_place:
                self.values = moved(self.values, moved_from, self.unknown)
            # Moved first: the log names rows by their present places.
            for row in changed:
                self.values[row] = self.unknown
        self._mark_current(table)
        return changed if is_in_place else None

    def missing(self, rows: IntArray) -> IntArray:
        """Return the rows, shape (k,), that have no value."""
        missing: IntArray = rows[self.values[rows] == self.unknown]
        return missing

    def _mark_current(self, table: NodeTable) -> None:
        self._layout = table.layout
        self._nodes, self._pods = table.node_changes.version, table.pod_changes.version
