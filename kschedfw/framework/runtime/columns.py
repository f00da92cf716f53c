"""Answers by row, kept in step with a table."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.runtime.best_rows import BestRows
from kschedfw.framework.runtime.scores import Totals

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

    def only_pods_changed(self, table: NodeTable) -> bool:
        """Whether the nodes themselves are as they were."""
        return self._nodes == table.node_changes.version and self._layout == table.layout

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

    `failed` are rows where a plugin failed, or named a time, so that it has to be asked again; None where nobody was
    asked yet.
    """

    __slots__ = ("failed", "outcome", "passing")

    def __init__(self, table: NodeTable, reads: Reads) -> None:
        super().__init__(table, reads, np.int32, UNKNOWN_CODE)
        self.passing: IntArray | None = None
        self.failed: Sequence[int] | None = None
        self.outcome: object = None
        """What was made of these codes, as long as they are the same."""


@attrs.frozen(eq=False)
class Normalized:
    """Normalised and weighted scores of a selection of nodes, and how often the raw ones had changed until then."""

    nodes: NodeSelection
    changes: int
    weighted: IntArray
    by_row: IntArray = attrs.field(init=False)
    """The same by row of the table, anything where a node wasn't selected."""

    @by_row.default
    def _by_row(self) -> IntArray:
        if self.nodes.is_whole_table:
            return self.weighted
        by_row = np.empty(len(self.nodes.table), dtype=np.int64)
        by_row[self.nodes.rows] = self.weighted
        return by_row

    def holds_for(self, nodes: NodeSelection, changes: int) -> bool:
        if self.changes != changes:
            return False
        ours, theirs = self.nodes.rows, nodes.rows
        return ours is theirs or np.array_equal(ours, theirs)


class SummedScores(Column):
    """Σ weight × score of several plugins for a selection of nodes, and unknown for all others.

    Of those whose scores are `normalized` it is counted in, as long as these are the same. `rows` are those of the
    selection, all of which have a sum; None if some don't.
    """

    __slots__ = ("_best", "normalized", "rows")

    def __init__(self, table: NodeTable, reads: Reads) -> None:
        super().__init__(table, reads, np.int64, UNKNOWN_SCORE)
        self.rows: IntArray | None = None
        self.normalized: tuple[Normalized, ...] = ()
        self._best: BestRows | None = None

    def count_in(self, normalized: tuple[Normalized, ...]) -> None:
        """Sum up anew if these aren't the ones that are counted in."""
        if any(map(operator.is_not, normalized, self.normalized)) or len(normalized) != len(self.normalized):
            self.values.fill(self.unknown)
            self.rows = None
            self.normalized = normalized

    def restrict_to(self, nodes: NodeSelection) -> None:
        """Forget the sums of all other nodes; some may be missing, and which are best isn't known any more."""
        self.rows = self._best = None
        if not nodes.is_whole_table:
            values = np.full(len(nodes.table), self.unknown, dtype=np.int64)
            values[nodes.rows] = self.values.take(nodes.rows)
            self.values = values

    def put(self, row: int, total: int) -> None:
        """Another sum for a row that has one; which rows are best is kept in step."""
        before, self.values[row] = int(self.values[row]), total
        if self._best is not None and before != total and not self._best.changed(row, before, total):
            self._best = None

    def totals(self, nodes: NodeSelection) -> Totals:
        """The sums of the nodes, all of which must be there."""
        if self._best is None:
            self._best = BestRows(self.values)
        return Totals(self.values, None if nodes.is_whole_table else nodes.rows, self._best.rows)
