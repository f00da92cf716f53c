"""The total scores of a pod's feasible nodes, and the nodes with the highest."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kschedfw.api.records import frozen
from kschedfw.framework.nodes.arrays import FloatArray, IntArray
from kschedfw.framework.nodes.selection import NodeSelection


@frozen(eq=False)
class PluginScores:
    """One plugin's scores, shape (n,): raw and normalised to 0–100."""

    weight: int
    raw: IntArray
    normalized: IntArray

    @property
    def weighted(self) -> IntArray:
        return self.normalized * self.weight


@frozen(eq=False)
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
    """The total scores of k nodes, in their order; those by a plan are valid until the next pod is filtered.

    `values` are int64 of shape (k,), or a function that makes them when they are first read. `best_rows` are the rows
    of the nodes with the highest total, ascending in visiting order, where they are known without the values.
    """

    __slots__ = ("_best", "_best_rows", "_values")

    def __init__(
        self,
        values: IntArray | Callable[[], IntArray],
        best_rows: Sequence[int] | IntArray | None = None,
    ) -> None:
        self._values = values
        self._best_rows = best_rows
        self._best: IntArray | None = None

    @property
    def values(self) -> IntArray:
        """The totals, shape (k,), int64. Not to be changed."""
        if callable(self._values):
            self._values = self._values()
        return self._values

    @property
    def best(self) -> IntArray:
        """The indices of all nodes with the highest total, ascending."""
        if self._best is None:
            self._best = rows_with_most(self.values)
        return self._best

    @property
    def number_of_best(self) -> int:
        return len(self.best if self._best_rows is None else self._best_rows)

    def best_rows(self, nodes: NodeSelection) -> Sequence[int] | IntArray:
        """Return the rows of the best of these nodes, whose totals they are, in the order of `best`."""
        return nodes.rows.take(self.best) if self._best_rows is None else self._best_rows


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
