"""The total scores of a pod's feasible nodes, and the nodes with the highest."""

from __future__ import annotations

import operator
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from kschedfw.framework.nodes.arrays import FloatArray, IntArray, moved
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.runtime.answers.columns import FEW_ROWS, UNKNOWN_SCORE, Column


@attrs.frozen(eq=False)
class PluginScores:
    """One plugin's scores, shape (n,): raw and normalised to 0–100."""

    weight: int
    raw: IntArray
    normalized: IntArray

    @property
    def weighted(self) -> IntArray:
        return self.normalized * self.weight


@attrs.frozen(eq=False)
class NodeScores:
    """The scores of n feasible nodes by plugin, in profile order; skipped plugins are missing."""

    node_names: tuple[str, ...]
    by_plugin: Mapping[str, PluginScores]

    @property
    def totals(self) -> IntArray:
        """Σ weight × normalised score, shape (n,)."""
        totals = np.zeros(len(self.node_names), dtype=np.int64)
        for scores in self.by_plugin.values():
            totals += scores.weighted
        return totals


class Totals:
    """The total scores of k nodes, in their order. Valid until the next pod is scored."""

    __slots__ = ("_best", "_by_row", "_rows")

    def __init__(
        self, by_row: IntArray, rows: IntArray | None = None, best: Sequence[int] | None = None
    ) -> None:
        """Make the totals of `rows` (ascending; None: all, in order). `best` are the best rows, if known."""
        self._by_row = by_row
        self._rows = rows
        self._best: Sequence[int] | IntArray | None = best

    @property
    def values(self) -> IntArray:
        """The totals, shape (k,), int64. Not to be changed."""
        return self._by_row if self._rows is None else self._by_row.take(self._rows)

    @property
    def best(self) -> IntArray:
        """The indices of all nodes with the highest total, ascending."""
        best = np.asarray(self._best_rows, dtype=np.int64)
        return best if self._rows is None else self._rows.searchsorted(best)

    @property
    def number_of_best(self) -> int:
        return len(self._best_rows)

    def index_of_best(self, nth: int) -> int:
        """Return `best[nth]`, without making the array."""
        row = self._best_rows[nth]
        return int(row if self._rows is None else self._rows.searchsorted(row))

    @property
    def _best_rows(self) -> Sequence[int] | IntArray:
        if self._best is None:
            # From here on a row is a position among the k nodes.
            self._rows, self._by_row = None, self.values
            self._best = rows_with_most(self._by_row)
        return self._best


class BestRows:
    """The rows with the highest of some totals, updated row by row.

    Rows are kept by total, down to the total that was the highest at first. So a node whose total rises, and
    falls again when the node is taken, doesn't need another scan of all totals.
    """

    __slots__ = ("_floor", "_rows")

    def __init__(self, totals: IntArray | FloatArray) -> None:
        rows = rows_with_most(totals)
        self._floor = int(totals[rows[0]])
        self._rows: dict[int, list[int]] = {self._floor: rows.tolist()}

    def changed(self, row: int, before: int, after: int) -> bool:
        """Update a row's total. Return False if none of the kept rows is left."""
        if before >= self._floor:
            rows = self._rows[before]
            if len(rows) == 1:
                del self._rows[before]
            else:
                del rows[bisect_left(rows, row)]
        if after >= self._floor:
            # Ascending, since the draw among the best counts them in the order of nodes.
            insort(self._rows.setdefault(after, []), row)
        return bool(self._rows)

    @property
    def rows(self) -> Sequence[int]:
        """The rows with the highest total, ascending. Valid until the next change."""
        return self._rows[max(self._rows)]


def rows_with_most(totals: IntArray | FloatArray) -> IntArray:
    """Return the rows with the highest of these totals, ascending."""
    if not len(totals):
        return np.empty(0, dtype=np.int64)
    rows: IntArray = (totals == totals[totals.argmax()]).nonzero()[0]  # argmax takes a third of max's time
    return rows


@attrs.frozen(eq=False)
class Normalized:
    """One plugin's normalised and weighted scores of a selection, shape (k,), int64.

    `changes` is the number of changes of the column of raw scores when they were computed.
    """

    nodes: NodeSelection
    changes: int
    weighted: IntArray
    by_row: IntArray = attrs.field(init=False)
    """The scores in shape (n,), by row of the table; undefined where a node isn't selected."""

    @by_row.default
    def _by_row(self) -> IntArray:
        if self.nodes.is_whole_table:
            return self.weighted
        by_row = np.empty(len(self.nodes.table), dtype=np.int64)
        by_row[self.nodes.rows] = self.weighted
        return by_row


class StandingTotals(Column):
    """The total scores of the selection of nodes that was scored last, unknown for all other rows.

    They are Σ weight × score of plugins that need no normalising, and the scores in `counted_in`. Most pods of
    a class meet the same selection, in which one or two nodes have got or lost a pod since the preceding pod.
    """

    __slots__ = ("_best", "_is_ascending", "_selection", "counted_in", "fixed", "is_filled")

    def __init__(self, table: NodeTable, reads: Reads) -> None:
        super().__init__(table, reads, np.int64, UNKNOWN_SCORE)
        self.fixed: IntArray = np.zeros(len(table), dtype=np.int64)
        """The part of the totals that pods on the nodes can't change, shape (n,)."""
        self._selection: NodeSelection | None = None
        self._is_ascending: bool | None = None
        self.is_filled = False
        """Whether all nodes of the selection have a total."""
        self.counted_in: tuple[Normalized, ...] = ()
        """The normalised scores that are part of the totals."""
        self._best: BestRows | None = None

    def come_again(self, nodes: NodeSelection) -> bool:
        """Return whether this very selection was the last one, too. If not, remember it and mark all totals as missing.

        Nothing is kept for a selection whose rows don't ascend.
        """
        # Most selections never come again, so even the check of their order waits until one does.
        if nodes is not self._selection:
            self._selection, self._is_ascending, self.is_filled = nodes, None, False
            return False
        if self._is_ascending is None:
            rows = nodes.rows
            self._is_ascending = bool((rows[1:] > rows[:-1]).all()) and len(rows) > 0
        return self._is_ascending

    def rows_with_new_pods(self, table: NodeTable) -> Sequence[int] | None:
        """Return the few rows whose totals may have changed, if only the pods on these nodes changed.

        Return None if anything else has changed, or many nodes.
        """
        if not self.is_filled or self._layout != table.layout or self._nodes != table.node_changes.version:
            return None
        changed = self._changed(table)
        return None if changed is None or len(changed) > FEW_ROWS else changed

    def add_normalized(self, normalized: tuple[Normalized, ...]) -> None:
        """Include these normalised scores. If others were included before, forget all totals."""
        before = self.counted_in
        # Normalised scores of one pass are one object, so there is nothing to compare by value.
        if len(normalized) != len(before) or any(map(operator.is_not, normalized, before)):
            self.values.fill(UNKNOWN_SCORE)
            self.is_filled = False
            self.counted_in = normalized

    def normalized_at(self, rows: IntArray) -> IntArray:
        """Return Σ of the normalised scores in these rows, shape (k,)."""
        total = np.zeros(len(rows), dtype=np.int64)
        for each in self.counted_in:
            total += each.by_row.take(rows)
        return total

    def restrict(self, table: NodeTable) -> IntArray:
        """Forget totals that aren't valid for the present selection. Return its rows without a total."""
        assert self._selection is not None
        self.follow(table)
        self._best = None
        if self._selection.is_whole_table:
            return self.missing(self._selection.rows)
        # Nodes that aren't selected must have no total: the best are looked for in the whole array.
        values = np.full(len(table), UNKNOWN_SCORE, dtype=np.int64)
        values[self._selection.rows] = self.values.take(self._selection.rows)
        self.values = values
        return self.missing(self._selection.rows)

    def fill(self, rows: IntArray, totals: IntArray, following_pods: IntArray) -> None:
        """Set the totals of these rows, given the part of them that follows the pods on nodes; shape (k,) each."""
        self.values[rows] = totals
        self.fixed[rows] = totals - following_pods

    def put(self, row: int, total: int) -> None:
        """Replace the total of a row that has one."""
        before, self.values[row] = int(self.values[row]), total
        if self._best is not None and before != total and not self._best.changed(row, before, total):
            self._best = None

    def _move(self, table: NodeTable) -> None:
        # Before the base class's move, which needs `_layout`, too; `mark_current` follows it.
        moved_from = table.moved_since(self._layout)
        self.fixed = np.zeros(len(table), np.int64) if moved_from is None else moved(self.fixed, moved_from)
        super()._move(table)

    def totals(self) -> Totals:
        """Return the totals of the selection, all of which must be known."""
        assert self._selection is not None
        if self._best is None:
            # A row without a total has the least number there is, so it is never among the best.
            self._best = BestRows(self.values)
        return Totals(
            self.values, None if self._selection.is_whole_table else self._selection.rows, self._best.rows
        )
