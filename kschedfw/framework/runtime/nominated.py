"""The filters' verdicts on nodes with nominated pods, where the answers of every filter are kept."""

from __future__ import annotations

from collections.abc import Iterable

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.columns import FirstRefusals
from kschedfw.framework.runtime.filtering import Filters
from kschedfw.framework.runtime.pod_class import FilterPlan, PodClass
from kschedfw.framework.runtime.questions import RowVerdicts
from kschedfw.framework.runtime.status_codes import ERROR
from kschedfw.framework.status import Status


class NominatedPods:
    """Verdicts on nodes as if their nominated pods were there.

    Filters are only called for nodes that have changed, or whose nominations have. Their answers without
    nominated pods are known already.
    """

    def __init__(self, filters: Filters, nominator: Nominator) -> None:
        self._filters = filters
        self._nominator = nominator

    def rows(self, table: NodeTable) -> list[int]:
        """Return the rows of nodes that pods are nominated to."""
        return [table.rows[name] for name in self._nominator.nominated_nodes() if name in table.rows]

    def verdicts(
        self,
        alone: FirstRefusals,
        plan: FilterPlan,
        state: CycleState,
        pod: Pod,
        pods: PodClass,
        nodes: NodeSelection,
    ) -> RowVerdicts:
        """Return the verdicts on all nodes, in the selection's order, given those without nominated pods (`alone`)."""
        table = nodes.table
        crowded = pods.column((plan, pod.priority), lambda: FirstRefusals(table, Reads.PODS))
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
            # The kept codes count all nominations. For this pod its own one doesn't count, so its row is asked
            # separately.
            values = values.copy()
            values[own] = code(own)
        codes = values if nodes.is_whole_table else values[nodes.rows]
        return RowVerdicts.of(nodes.rows, codes, errors)

    def _to_ask(self, crowded: FirstRefusals, alone: FirstRefusals, table: NodeTable) -> Iterable[int]:
        """Return the rows whose codes may have changed; all other codes hold."""
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
