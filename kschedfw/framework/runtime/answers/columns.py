"""Answers by row of a node table. An answer is forgotten when its node changes in a way that may change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import IntArray, moved
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.runtime.answers.filtering import FilterOutcome
from kschedfw.framework.runtime.answers.status_codes import PASS

FEW_ROWS: Final = 4
"""Up to this number of rows, the scalar form is called even where there is a batch form: calling NumPy costs more."""

UNKNOWN_CODE: Final = -1
UNKNOWN_SCORE: Final = -(1 << 63)
"""The least int64. If a plugin really gives this score, it is asked each time."""


class Column:
    """One answer per row in `values`, shape (n,); `unknown` where no answer is known to hold.

    `changes` counts how often values were forgotten.
    """

    __slots__ = ("_layout", "_nodes", "_pods", "_reads", "changes", "unknown", "values")

    def __init__(
        self, table: NodeTable, reads: Reads, dtype: type[np.signedinteger[Any]], unknown: int
    ) -> None:
        self._reads = reads
        self.unknown = unknown
        self.values: npt.NDArray[np.signedinteger[Any]] = np.full(len(table), unknown, dtype=dtype)
        self.changes = 0
        self.mark_current(table)

    def stale(self, table: NodeTable) -> Sequence[int] | None:
        """Return the rows, each once, whose values may not hold since `mark_current`; None for all."""
        # A node that came and went again gives a new layout in which no row has moved: `moved_since` tells it
        # by `all_rows`.
        if self._layout != table.layout and table.moved_since(self._layout) is not table.all_rows:
            return None
        if self._nodes == table.node_changes.version and (
            self._reads is Reads.NODE or self._pods == table.pod_changes.version
        ):
            return ()
        return self._changed(table)

    def only_pods_changed(self, table: NodeTable) -> bool:
        """Return whether the node objects are the same as at `mark_current`."""
        return self._nodes == table.node_changes.version

    def mark_current(self, table: NodeTable) -> None:
        """Declare all values valid for the table in its present state."""
        self._layout = table.layout
        self._nodes, self._pods = table.node_changes.version, table.pod_changes.version

    def follow(self, table: NodeTable) -> Sequence[int] | None:
        """Forget the values of rows that have changed. Return those rows; None for all."""
        if (
            self._nodes == table.node_changes.version
            and self._layout == table.layout
            and (self._reads is Reads.NODE or self._pods == table.pod_changes.version)
        ):
            return ()
        rows = self.stale(table)
        if rows is None:
            self._move(table)
        elif rows:
            for row in rows:
                self.values[row] = self.unknown
        else:
            return rows
        self.changes += 1
        self.mark_current(table)
        return rows

    def missing(self, rows: IntArray) -> IntArray:
        """Return the rows, shape (k,), that have no value."""
        missing: IntArray = rows[self.values[rows] == self.unknown]
        return missing

    def _changed(self, table: NodeTable) -> Sequence[int] | None:
        reads = self._reads
        if reads is Reads.CLUSTER:
            return None
        # The present version of the log of pods stands for "no changes" where pods don't matter.
        return table.changed_since(
            self._nodes, self._pods if reads is Reads.PODS else table.pod_changes.version
        )

    def _move(self, table: NodeTable) -> None:
        """Forget all values except those of unchanged nodes that moved to another row."""
        moved_from, changed = table.moved_since(self._layout), self._changed(table)
        if moved_from is None or changed is None:
            self.values = np.full(len(table), self.unknown, dtype=self.values.dtype)
        else:
            self.values = moved(self.values, moved_from, self.unknown)
            # Moved first: the log names rows by their present places.
            self.values[list(changed)] = self.unknown


class FirstRefusals(Column):
    """The code of the first refusal of several filters, by row; PASS where all let the pod pass.

    `again` are rows whose codes must not be kept: a plugin failed there, or named a time. `nominations` is the
    nominator's version for which the codes hold, if they depend on nominations.
    """

    __slots__ = ("_passing", "again", "is_complete", "nominations", "outcome")

    def __init__(self, table: NodeTable, reads: Reads) -> None:
        super().__init__(table, reads, np.int32, UNKNOWN_CODE)
        self._passing: IntArray | None = None
        self.again: set[int] = set()
        self.nominations = 0
        self.is_complete = False
        """Whether every row has a code."""
        self.outcome: FilterOutcome | None = None
        """The outcome for all nodes in order; None after a code has changed."""

    def passing(self, table: NodeTable) -> IntArray:
        """Return the rows that pass, ascending. Every row must have a code."""
        if self._passing is None:
            # `all_rows` itself, not an equal array: by its identity callers know that no node is refused.
            passes = self.values == PASS
            self._passing = table.all_rows if passes.all() else passes.nonzero()[0]
        return self._passing

    def put(self, row: int, code: int) -> None:
        """Replace the code of a row."""
        # Most changed nodes get the code that they had, and the outcome made of the codes is still the same.
        if self.values[row] != code:
            self.values[row] = code
            self._passing = self.outcome = None

    def fill(self, rows: IntArray, codes: npt.NDArray[np.signedinteger[Any]]) -> None:
        """Set the codes of rows that had none."""
        self.values[rows] = codes
        self._passing = self.outcome = None
        self.is_complete = not (self.values == UNKNOWN_CODE).any()

    def replace(self, codes: npt.NDArray[np.signedinteger[Any]]) -> None:
        """Set the codes of all rows, shape (n,). The column takes over the array."""
        self.values = codes
        self._passing = self.outcome = None
        self.is_complete = True

    def forget(self, rows: Sequence[int]) -> None:
        """Forget the codes of these rows."""
        self.values[list(rows)] = UNKNOWN_CODE
        self._passing = self.outcome = None
        self.is_complete = False

    def forget_moved(self, table: NodeTable) -> None:
        """Forget all values except those of unchanged nodes that moved to another row."""
        # Forgotten before the move: `again` has the rows of the earlier layout.
        self.values[list(self.again)] = UNKNOWN_CODE
        self.again.clear()
        self.follow(table)
        self._passing = self.outcome = None
        self.is_complete = not (self.values == UNKNOWN_CODE).any()
