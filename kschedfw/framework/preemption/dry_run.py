"""The dry run of preemption, node by node, without effects (kube-scheduler `DryRunPreemption`).

Outcomes are kept by node, so that only changed nodes are tried again.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes, NodeToStatus
from kschedfw.framework.extender import Victims
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.column import UNKNOWN_CODE, UNKNOWN_SCORE, Column
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import LEAST_HARM, Candidate, Candidates
from kschedfw.framework.preemption.rules import PreemptionRules, victims_for_room
from kschedfw.framework.status import Status
from kschedfw.framework.status_codes import ERROR, PASS, StatusCodes

# Above every priority, so that a node without pods has no possible victim.
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
            # A plugin that failed is asked again next time.
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


_NOT_HELPFUL = Status.unresolvable("Preemption is not helpful for scheduling")
_NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")

_MARGIN = 64
"""The search first looks at twice the wanted number of nodes plus this margin, and only then at all others."""


def no_candidates() -> NodeToStatus:
    """Return a status for all nodes: preemption doesn't help."""
    return NodeToStatus(absent=_NOT_HELPFUL)


@define(eq=False)
class DryRun:
    """The result of a dry run: the candidates, those without violated budgets first, and the reasons of other nodes.

    Nodes that weren't tried, because there were enough candidates or because preemption can't help, have no
    status of their own. `errors` are the statuses of nodes where a plugin failed.
    """

    candidates: Sequence[Candidate] = ()
    node_to_status: NodeToStatus = attrs.field(factory=no_candidates)
    errors: tuple[Status, ...] = ()


def dry_run(
    rules: PreemptionRules,
    state: CycleState,
    pod: Pod,
    nodes: NodeSelection,
    budgets: DisruptionBudgets,
    *,
    offset: int,
    wanted: int,
    outcomes: Outcomes | None = None,
    priorities: LowestPriorities | None = None,
) -> DryRun:
    """Try the nodes from `offset` on, round the end, until there are `wanted` candidates, one of them harmless.

    Only nodes without a known outcome are tried, on the parallelizer's threads, each on its own copy of state
    and node. The result is that of a serial run over all of them. Exceptions of the rules are raised. With
    `priorities`, only pods of lower priority can be victims.
    """
    table = nodes.table
    outcomes = Outcomes(table) if outcomes is None else outcomes
    rows = np.concatenate((nodes.rows[offset:], nodes.rows[:offset]))
    # A node without a pod of lower priority has no victims; that is known without a copy of the node.
    if priorities is not None:
        unknown = outcomes.missing(rows)
        if len(unknown):
            outcomes.values[priorities.without_lower(pod.priority, table, unknown)] = (
                outcomes.statuses.code_of(_NO_VICTIMS)
            )
    search = _Search(rows, wanted, outcomes)
    to_try = search.to_try.tolist()
    errors: dict[str, Status] = {}

    def try_node(index: int) -> tuple[NodeInfo, Victims | Status]:
        info = table.node_infos[int(rows[to_try[index]])]
        return info, _try_node(rules, state, pod, info, budgets)

    def enough(answer: tuple[NodeInfo, Victims | Status]) -> bool:
        info, outcome = answer
        # Outcomes are written here, for one node at a time and in their order, and not on the threads that
        # try nodes.
        code = outcomes.add(table.rows[info.name], info.name, outcome)
        if code == ERROR:
            assert isinstance(outcome, Status)
            errors[info.name] = outcome
        return search.is_enough_after(code)

    if to_try:
        rules.handle.parallelizer.map_until(len(to_try), try_node, enough)
    return search.result(nodes, errors)


class _Search:
    """The walk through the nodes in order until there are enough candidates.

    Nodes with a known outcome count in their place in the order, so that a node isn't tried if the nodes before
    it are enough. If the known outcomes of the first nodes are enough, the others aren't looked at.
    """

    def __init__(self, rows: IntArray, wanted: int, outcomes: Outcomes) -> None:
        self._rows = rows[: 2 * wanted + _MARGIN]
        self._wanted = wanted
        self._outcomes = outcomes
        self._tried = 0
        self._helped = 0
        self._harmless = 0
        self._count()
        if not self._is_settled and len(self._rows) < len(rows):
            self._rows = rows
            self._count()

    def _count(self) -> None:
        codes: Codes = self._outcomes.values[self._rows]
        helps = codes == PASS
        harmless = helps & ~self._outcomes.is_violating[self._rows]
        self._codes, self._helps, self._is_harmless = codes, helps, harmless
        self._sum_helps, self._sum_harmless = np.cumsum(helps), np.cumsum(harmless)
        # There are enough at the first harmless candidate or at the wanted number, whichever comes later.
        self.end, self._is_settled = len(codes), False
        if self._wanted > 0 and len(codes) and self._sum_harmless[-1]:
            enough = max(
                int(self._sum_harmless.searchsorted(1)), int(self._sum_helps.searchsorted(self._wanted))
            )
            self.end, self._is_settled = min(enough + 1, len(codes)), enough < len(codes)
        self.to_try: IntArray = np.flatnonzero(codes[: self.end] == UNKNOWN_CODE)

    def is_enough_after(self, code: int) -> bool:
        """Count one more outcome. Return whether there are enough candidates before the next untried node."""
        row = int(self._rows[self.to_try[self._tried]])
        if code == PASS:
            self._helped += 1
            self._harmless += not self._outcomes.is_violating[row]
        self._tried += 1
        if self._tried == len(self.to_try):
            return True
        following = self.to_try[self._tried]
        harmless = self._sum_harmless[following] + self._harmless
        return bool(harmless >= 1 and 0 < self._wanted <= self._sum_helps[following] + self._helped)

    def result(self, nodes: NodeSelection, errors: dict[str, Status]) -> DryRun:
        if self._tried:
            self._count()
        end, outcomes, table = self.end, self._outcomes, nodes.table
        rows, codes, helps = self._rows[:end], self._codes[:end], self._helps[:end]
        harmless = self._is_harmless[:end]
        chosen = np.concatenate(
            # kube-scheduler's two lists take no more than the wanted number, either.
            (_first(self._wanted, rows, harmless), _first(self._wanted, rows, helps & ~harmless))
        )
        refused = np.where(codes == UNKNOWN_CODE, PASS, codes)
        return DryRun(
            outcomes.candidates(table, chosen),
            NodeToStatus(
                errors,
                _NOT_HELPFUL,
                NodeCodes(NodeSelection(table, rows), refused, outcomes.statuses.statuses),
            ),
            tuple(errors.values()),
        )


def _first(count: int, rows: IntArray, which: npt.NDArray[np.bool_]) -> IntArray:
    return rows[which][:count]


def _try_node(
    rules: PreemptionRules, state: CycleState, pod: Pod, node_info: NodeInfo, budgets: DisruptionBudgets
) -> Victims | Status:
    potential = rules.potential_victims(pod, node_info)
    if not potential:
        # Nothing would change, so there is no need for the copies.
        return _NO_VICTIMS
    outcome: Victims | Status | None = None
    if rules.select_default_victims:
        framework = rules.handle.framework
        outcome = victims_for_room(framework, state, pod, node_info, potential, budgets, rules.more_important)
    if outcome is None:
        outcome = rules.select_victims(state.clone(), pod, node_info.clone(), potential, budgets)
    if outcome.is_success if isinstance(outcome, Status) else not outcome.pods:
        return Status.from_error(f'expected at least one victim pod on node "{node_info.name}"')
    return outcome
