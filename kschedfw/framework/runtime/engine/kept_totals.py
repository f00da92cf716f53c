"""The totals of all nodes, kept between pods with the same requests, so that only changed nodes are computed.

A placement changes one node. So a pod like one of the last few costs about the same, however many nodes there
are.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

import numpy as np

from kschedfw.api.requests import PodRequests
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.nodes.arrays import FloatArray, IntArray
from kschedfw.framework.nodes.read_only import read_only_view
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.outcome import rows_with_most
from kschedfw.framework.runtime.engine.passes import ANY_AMOUNT, Pass, PassInput
from kschedfw.framework.runtime.engine.plan import Plan

_MOST_CHANGED: Final = 16
"""If more nodes have changed, a pass over all nodes is about as fast."""

_ANY_AMOUNTS: Final = (ANY_AMOUNT,) * 4
_NO_EXTENDED: Final[IntArray] = np.empty((0, 2), dtype=np.int64)


def wanted_amounts(requests: PodRequests) -> tuple[int, int, int, int]:
    """Return the CPU, memory, ephemeral storage and number of pods that must be free on a node for the pod to fit."""
    demand = requests.demand
    cpu, memory, storage = demand.milli_cpu, demand.memory, demand.ephemeral_storage
    return cpu or ANY_AMOUNT, memory or ANY_AMOUNT, storage or ANY_AMOUNT, 1


def pass_input(plan: Plan, requests: PodRequests, table: NodeTable) -> PassInput:
    """Return the arguments of the pass for a pod of a plan.

    Every extended resource that the pod requests must have a column.
    """
    scored, amounts = requests.scored, requests.amounts
    wanted, extended = _ANY_AMOUNTS, _NO_EXTENDED
    if plan.fits:
        wanted = wanted_amounts(requests)
        if scalars := requests.demand.scalar_resources:
            rows = [(table.columns[name], amount) for name, amount in scalars.items() if amount]
            extended = np.array(rows, dtype=np.int64).reshape(-1, 2)
    least, balanced, most = plan.weights
    if not (amounts.milli_cpu or amounts.memory):
        balanced = 0  # such a pod is skipped by the plugin
    return (
        wanted,
        extended,
        (scored.milli_cpu, scored.memory),
        (amounts.milli_cpu, amounts.memory),
        (least, balanced, most),
    )


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


class KeptTotals:
    """The totals of all nodes for pods of a plan and requests, below 0 where a node isn't feasible."""

    def __init__(
        self, plan: Plan, base: FloatArray, requests: PodRequests, compiled: Pass, table: NodeTable
    ) -> None:
        self._base = base
        self._requests = requests
        self._asked = pass_input(plan, requests, table)
        self.totals: FloatArray = np.empty(len(table))
        self.totals_to_read = read_only_view(self.totals)
        self.feasible = self._pods = 0
        self.refused: NodeCodes | None = None
        """The first refusal of each node, if none is feasible and somebody has asked since the last change."""
        self._best: BestRows | None = None
        self._fill(compiled, table)

    def answers(self, base: FloatArray, requests: PodRequests) -> bool:
        """Return whether these are the totals for pods with this base and these requests."""
        return self._base is base and self._requests is requests

    def follow(self, compiled: Pass, table: NodeTable) -> None:
        """Update the totals of nodes whose pods have changed."""
        pods = table.pod_changes
        if self._pods == pods.version:
            return
        self.refused = None
        # A base is valid as long as the node objects are the same, so only pods may have changed.
        changed = pods.since(self._pods)
        if changed is None or len(changed) > _MOST_CHANGED:
            self._fill(compiled, table)
            return
        self._pods, totals = pods.version, self.totals
        scores, columns, asked = self._base, table.compiled_columns, self._asked
        for row in changed:
            before, total = float(totals[row]), compiled.total_at(row, scores, columns, asked)
            # An unchanged total leaves the lists of the best nodes as they are.
            if total == before:
                continue
            totals[row] = total
            self.feasible += (total >= 0) - (before >= 0)
            # Totals are whole numbers, which the lists of the best nodes have as ints.
            if self._best is not None and not self._best.changed(row, int(before), int(total)):
                self._best = None

    @property
    def best(self) -> Sequence[int]:
        """The rows with the highest total, ascending. Valid until the next change."""
        if self._best is None:
            self._best = BestRows(self.totals)
        return self._best.rows

    def _fill(self, compiled: Pass, table: NodeTable) -> None:
        self.feasible, _ = compiled.totals_of(
            self._base, table.compiled_columns, self._asked, 0, len(table), self.totals
        )
        self._pods = table.pod_changes.version
        self._best = None
