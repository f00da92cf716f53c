"""Outcomes of dry runs by node, kept so that only changed nodes are tried again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kschedfw.api.pod import Pod
from kschedfw.framework.extender import Victims
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import LEAST_HARM, Candidate, Candidates
from kschedfw.framework.runtime.answers.columns import UNKNOWN_CODE, UNKNOWN_SCORE, Column
from kschedfw.framework.runtime.answers.status_codes import ERROR, PASS, StatusCodes
from kschedfw.framework.status import Status

_NOBODY = 1 << 62

_MOST_STATUSES = 1024


class Outcomes(Column):
    """The outcome of a dry run on each of n nodes, as a code of `statuses`: PASS where preemption helps.

    For nodes with PASS, `victims` (object, shape (n,)) has the `Victims`, `is_violating` (bool, shape (n,)) tells
    whether their eviction violates a disruption budget, and `harm` (float64, shape (criteria, n)) has the values of
    the criteria of `LEAST_HARM`.
    """

    __slots__ = ("_borrowed", "_budgets", "_nominations", "harm", "is_violating", "statuses", "victims")

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table, Reads.PODS, np.int32, UNKNOWN_CODE)
        self.statuses = StatusCodes()
        self._budgets = DisruptionBudgets()
        self._nominations = 0
        self._borrowed = ""
        self._make_room(table)

    def follow_all(
        self, table: NodeTable, budgets: DisruptionBudgets, nominator: Nominator, pod: Pod
    ) -> None:
        """Forget outcomes that may have changed since the last call, or that may differ for this pod."""
        if self.follow(table) is None:
            # The values were moved with their nodes to other rows; the other arrays weren't.
            self._make_room(table)
            self.values.fill(UNKNOWN_CODE)
        since, self._nominations = self._nominations, nominator.version
        changed = nominator.changed_since(since)
        if changed is None or budgets != self._budgets or len(self.statuses) > _MOST_STATUSES:
            self.values.fill(UNKNOWN_CODE)
            self.statuses = StatusCodes()
            self._budgets = budgets
        elif self.statuses.timed:
            self.values[self.statuses.fleeting(self.values)] = UNKNOWN_CODE
        # On its nominated node a pod has more room than other pods, so that outcome is tried again for this pod and
        # the next.
        own = nominator.node_of(pod.uid)
        for name in (*(changed or ()), self._borrowed, own):
            if (row := table.rows.get(name)) is not None:
                self.values[row] = UNKNOWN_CODE
        self._borrowed = own

    def add(self, row: int, node_name: str, outcome: Victims | Status) -> int:
        """Store the outcome of a node. Return its code."""
        if isinstance(outcome, Status):
            code = self.statuses.code_of(outcome)
            self.values[row] = UNKNOWN_CODE if code == ERROR else code
            return code
        candidate = Candidate(node_name, outcome)
        self.values[row] = PASS
        self.victims[row] = outcome
        self.is_violating[row] = outcome.num_pdb_violations > 0
        self.harm[:, row] = [criterion(candidate) for criterion in LEAST_HARM]
        return PASS

    def candidates(self, table: NodeTable, rows: IntArray) -> Candidates:
        """Return the candidates in these rows (int64, shape (k,)), all of which must have PASS."""
        return Candidates(table.names, rows, self.victims[rows], self.harm[:, rows])

    def _make_room(self, table: NodeTable) -> None:
        self.victims: npt.NDArray[np.object_] = np.full(len(table), None, dtype=np.object_)
        self.is_violating: npt.NDArray[np.bool_] = np.zeros(len(table), dtype=np.bool_)
        self.harm: npt.NDArray[np.float64] = np.zeros((len(LEAST_HARM), len(table)))


class LowestPriorities(Column):
    """The lowest priority of the pods on each node: int64, shape (n,)."""

    __slots__ = ()

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table, Reads.PODS, np.int64, UNKNOWN_SCORE)

    def without_lower(self, priority: int, table: NodeTable, rows: IntArray) -> IntArray:
        """Return the rows whose nodes have no pod of lower priority than this: int64, shape (m,), m ≤ k."""
        self.follow(table)
        missing = self.missing(rows)
        infos = table.node_infos
        self.values[missing] = [_lowest(infos[row]) for row in missing.tolist()]
        without: IntArray = rows[self.values[rows] >= priority]
        return without


def _lowest(info: NodeInfo) -> int:
    return min((each.pod.priority for each in info.pods), default=_NOBODY)
