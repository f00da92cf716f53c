"""Answers by row, kept in step with a table."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.framework.node_table import NodeTable
from kschedfw.framework.plugin import Reads
from kschedfw.framework.results import IntArray

UNKNOWN_CODE: Final = -1
UNKNOWN_SCORE: Final = -(1 << 63)
"""A plugin may really give this score; then it is asked each time."""


class Column:
    """An answer per row; `unknown` where there is none yet, or none that still holds.

    `changes` counts how often anything was forgotten.
    """

    __slots__ = ("_layout", "_nodes", "_pods", "_reads", "changes", "unknown", "values")

    def __init__(
        self, table: NodeTable, reads: Reads, dtype: type[np.signedinteger[Any]], unknown: int
    ) -> None:
        self._reads = reads
        self.unknown = unknown
        self.values: npt.NDArray[np.signedinteger[Any]] = np.full(len(table), unknown, dtype=dtype)
        self.changes = 0
        self.note(table)

    def stale(self, table: NodeTable) -> Sequence[int] | None:
        """The rows, each once, whose answers may not hold any more, as of `note`; None for all."""
        if self._layout != table.layout:
            return None
        if self._nodes == table.node_changes.version and (
            self._reads is Reads.NODE or self._pods == table.pod_changes.version
        ):
            return ()
        return self._changed(table)

    def note(self, table: NodeTable) -> None:
        """From now on, changes are counted from here."""
        self._layout = table.layout
        self._nodes, self._pods = table.node_changes.version, table.pod_changes.version

    def follow(self, table: NodeTable) -> Sequence[int] | None:
        """Forget the answers for rows that have changed; gives those rows, None for all."""
        rows = self.stale(table)
        if rows is None:
            self._forget_all(table)
        elif rows:
            for row in rows:
                self.values[row] = self.unknown
        else:
            return rows
        self.changes += 1
        self.note(table)
        return rows

    def missing(self, rows: IntArray) -> IntArray:
        """Those of the rows that have no answer."""
        missing: IntArray = rows[self.values[rows] == self.unknown]
        return missing

    def _changed(self, table: NodeTable) -> Sequence[int] | None:
        reads = self._reads
        if reads is Reads.CLUSTER:
            return None
        return table.changed_since(
            self._nodes, self._pods if reads is Reads.PODS else table.pod_changes.version
        )

    def _forget_all(self, table: NodeTable) -> None:
        """All but what only has another row now."""
        values = np.full(len(table), self.unknown, dtype=self.values.dtype)
        if self._layout == table.layout - 1 and (changed := self._changed(table)) is not None:
            stayed = table.moved_from >= 0
            values[stayed] = self.values[table.moved_from[stayed]]
            values[list(changed)] = self.unknown
        self.values = values


class CombinedCodes(Column):
    """The first refusal of several filters, by row; and the rows without one, as long as they are the same.

    `failed` are rows where a plugin failed, which has to be asked again; None where nobody was asked yet.
    """

    __slots__ = ("failed", "outcome", "passing")

    def __init__(self, table: NodeTable, reads: Reads) -> None:
        super().__init__(table, reads, np.int32, UNKNOWN_CODE)
        self.passing: IntArray | None = None
        self.failed: Sequence[int] | None = None
        self.outcome: object = None
        """What was made of these codes, as long as they are the same."""

    def only_pods_changed(self, table: NodeTable) -> bool:
        """Whether the nodes themselves are as they were."""
        return self._nodes == table.node_changes.version


@attrs.frozen(eq=False)
class Normalized:
    """Normalised and weighted scores of the nodes in `rows`, and how often the raw ones had changed until then."""

    rows: IntArray
    changes: int
    weighted: IntArray

    def holds_for(self, rows: IntArray, changes: int) -> bool:
        return self.changes == changes and (rows is self.rows or np.array_equal(rows, self.rows))


class SummedScores(Column):
    """Σ weight × score of several plugins, and of those whose scores are `normalized`, as long as they are the same.

    `complete` if every row had a sum before the table was last followed.
    """

    __slots__ = ("complete", "normalized")

    def __init__(self, table: NodeTable, reads: Reads) -> None:
        super().__init__(table, reads, np.int64, UNKNOWN_SCORE)
        self.complete = False
        self.normalized: tuple[Normalized, ...] = ()

    def count_in(self, normalized: tuple[Normalized, ...]) -> None:
        """Sum up anew if these aren't the ones that are counted in."""
        if any(map(operator.is_not, normalized, self.normalized)) or len(normalized) != len(self.normalized):
            self.values.fill(self.unknown)
            self.complete = False
            self.normalized = normalized
