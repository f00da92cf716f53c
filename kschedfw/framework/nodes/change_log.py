"""A log of a table's changed rows, for readers that each remember how far they have read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kschedfw.framework.nodes.arrays import IntArray

_FEWEST_KEPT = 1024


class ChangeLog:
    """Rows in the order in which they changed, with repetitions.

    A reader keeps the `version` up to which it has read, and calls `since` with it. Old entries are dropped: a
    reader that comes back after long has to look at every row.
    """

    __slots__ = ("_dropped", "_rows", "version")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._dropped = 0
        self.version = 0
        """The number of changes up to now."""

    def append(self, row: int, size: int) -> None:
        """Add a row. Drop entries that are too old to be useful, in a table of `size` rows."""
        rows = self._rows
        rows.append(row)
        self.version += 1
        # A reader that has missed more changes than there are nodes does better to look at every row. Half of
        # the log goes at once, so that an entry costs the same however long the log is.
        if len(rows) > 2 * _FEWEST_KEPT and len(rows) > 2 * size:
            self._keep(max(size, _FEWEST_KEPT))

    def since(self, version: int) -> Sequence[int] | None:
        """Return the rows changed after `version` that still exist; None if the log begins later."""
        if version == self.version:
            return []
        start = version - self._dropped
        return None if start < 0 else [row for row in self._rows[start:] if row >= 0]

    def move_rows(self, moved_to: IntArray) -> None:
        """Rename the rows in the log: row i is now row `moved_to[i]`, -1 if it is gone. Few entries are kept."""
        # Versions stay valid: they count changes, and entries of rows that are gone keep their places as -1.
        self._keep(_FEWEST_KEPT)
        if len(moved_to):
            rows = np.array(self._rows, dtype=np.int64)
            # What `take` finds for a -1 isn't used.
            self._rows = np.where(rows >= 0, moved_to.take(rows, mode="clip"), rows).tolist()

    def begin_anew(self) -> None:
        """Drop all entries, so that every reader of earlier versions has to look at every row."""
        self.version += 1
        self._rows = []
        self._dropped = self.version

    def _keep(self, most: int) -> None:
        surplus = max(0, len(self._rows) - most)
        del self._rows[:surplus]
        self._dropped += surplus
