"""Takes nominated pods into account where the answers of every filter are kept."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.columns import FirstRefusals
from kschedfw.framework.runtime.filtering import Filters
from kschedfw.framework.runtime.pod_class import FilterPlan, PodClass
from kschedfw.framework.runtime.status_codes import ERROR, PASS
from kschedfw.framework.status import Status


@attrs.define(eq=False)
class NodeVerdicts:
    """What all filters say of the first k nodes of a selection.

    `codes` has shape (k,); it belongs to somebody else, so it is copied before it is kept. `passing` are the rows that
    pass, in order, and `errors` has the statuses behind code ERROR, by row.
    """

    codes: Codes
    passing: IntArray
    errors: dict[int, Status] = attrs.field(factory=dict)


class _Crowded(FirstRefusals):
    """The first refusal for pods of one priority, if nominated pods that they leave room for were on their nodes."""

    __slots__ = ("nominations",)

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table, Reads.PODS)
        self.nominations = 0
        """The version of the nominator that the codes are in step with."""


class NominatedPods:
    """Asks about nodes again that have nominated pods, as if these were there.

    Only nodes that have changed, or whose nominations have, are asked about. What the filters say without nominated
    pods is known already.
    """

    def __init__(self, filters: Filters, nominator: Nominator) -> None:
        self._filters = filters
        self._nominator = nominator

    def rows(self, table: NodeTable) -> list[int]:
        """The rows of nodes that pods are nominated to."""
        return [table.rows[name] for name in self._nominator.nominated_nodes() if name in table.rows]

    def verdicts(
        self,
        alone: FirstRefusals,
        plan: FilterPlan,
        state: CycleState,
        pod: Pod,
        pods: PodClass,
        nodes: NodeSelection,
    ) -> NodeVerdicts:
        """The verdicts on all nodes of the table, in the selection's order, given those without nominated pods."""
        table = nodes.table
        crowded = pods.column((plan, pod.priority), lambda: _Crowded(table))
        errors: dict[int, Status] = {}

        def code(row: int) -> int:
            info = table.node_infos[row]
            status = self._filters.refusal_with_nominated_pods(plan.filters, state, pod, info)
            if status.is_success:
                return int(alone.values[row])
            if (code := pods.codes.code_of(status)) == ERROR:
                errors[row] = status
            return code

        own = table.rows.get(self._nominator.node_of(pod.uid), -1)
        for row in self._to_ask(crowded, alone, table):
            if row == own:
                crowded.again.add(row)
                continue
            crowded.put(row, code(row))
            if not pods.codes.is_lasting(int(crowded.values[row])):
                crowded.again.add(row)
        values = crowded.values
        if own >= 0:
            # To this pod alone, its own nomination is no obstacle.
            values = values.copy()
            values[own] = code(own)
        codes = values if nodes.is_whole_table else values[nodes.rows]
        if own < 0 and nodes.is_whole_table:
            return NodeVerdicts(codes, crowded.passing(table), errors)
        return NodeVerdicts(codes, nodes.rows[codes == PASS], errors)

    def _to_ask(self, crowded: _Crowded, alone: FirstRefusals, table: NodeTable) -> Iterable[int]:
        """The rows whose codes may be others now; all other codes hold."""
        stale = crowded.stale(table) if crowded.is_complete else None
        since, crowded.nominations = crowded.nominations, self._nominator.version
        names = None if stale is None else self._nominator.changed_since(since)
        again = set(crowded.again)
        crowded.again.clear()
        if stale is None or names is None:
            crowded.replace(alone.values.copy())
            stale, names, again = (), self._nominator.nominated_nodes(), set()
        crowded.mark_current(table)
        return {*stale, *again, *alone.again, *(table.rows[name] for name in names if name in table.rows)}
