"""The scores of one pod's feasible nodes, from raw answers to weighted totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.runtime.best_rows import rows_with_most


@attrs.frozen(eq=False)
class PluginScores:
    """One plugin's scores, shape (n,): as it gave them, and brought into 0–100."""

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
    """The total scores of k nodes, in their order. They hold until the next pod's turn."""

    __slots__ = ("_best", "_by_row", "_rows")

    def __init__(
        self, by_row: IntArray, rows: IntArray | None = None, best: Sequence[int] | None = None
    ) -> None:
        """Of the nodes in these `rows` (ascending; None: all, in order); the `best` of them may be known."""
        self._by_row = by_row
        self._rows = rows
        self._best: Sequence[int] | IntArray | None = best

    @property
    def values(self) -> IntArray:
        """Shape (k,), int64. Not to be changed."""
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
        """The same as `best[nth]`, however many there are."""
        row = self._best_rows[nth]
        return int(row if self._rows is None else self._rows.searchsorted(row))

    @property
    def _best_rows(self) -> Sequence[int] | IntArray:
        if self._best is None:
            self._rows, self._by_row = None, self.values
            self._best = rows_with_most(self._by_row)
        return self._best
