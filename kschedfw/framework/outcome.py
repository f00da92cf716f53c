"""The outcome of a search: the feasible nodes, the refused ones, and the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.nodes.arrays import FloatArray, IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.status import Status


class FilterOutcome:
    """The result of filtering a selection of nodes, up to the end of the search.

    `count` is the number of feasible nodes, and `processed` that of nodes looked at, without the surplus or failed one
    that ended the search. `error` is the plugin failure that ended the search, if any. The rows of `feasible`, and
    `refused`, are made when they are first read, which must be before the next pod is filtered.
    """

    __slots__ = ("_refused", "count", "error", "feasible", "processed")

    def __init__(
        self,
        count: int,
        processed: int,
        feasible: NodeSelection,
        refused: NodeCodes,
        error: Status | None = None,
    ) -> None:
        self.count = count
        self.processed = processed
        self.error = error
        self.feasible = feasible
        """The nodes that passed, in visiting order."""
        self._refused = refused

    @classmethod
    def of(cls, feasible: NodeSelection, processed: int = 0) -> FilterOutcome:
        """Return an outcome of these feasible nodes, without statuses of others."""
        return cls(len(feasible), processed, feasible, NodeCodes.none(feasible.table))

    @property
    def refused(self) -> NodeCodes:
        """The statuses of the nodes that were refused, in visiting order."""
        return self._refused


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


def rows_with_most(totals: IntArray | FloatArray) -> IntArray:
    """Return the rows with the highest of these totals, ascending."""
    if not len(totals):
        return np.empty(0, dtype=np.int64)
    rows: IntArray = (totals == totals[totals.argmax()]).nonzero()[0]  # argmax takes a third of max's time
    return rows
