"""Finds the nodes that pass the filters of a profile (kube-scheduler `findNodesThatPassFilters`)."""

from __future__ import annotations

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.handle import Handle
from kschedfw.framework.metrics import Operation
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.runtime.filter_columns import FilterColumns, Findings, still_hold
from kschedfw.framework.runtime.filter_hooks import FilterHooks, FilterPlugin, first_refusal
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.runtime.memo import Cycle
from kschedfw.framework.runtime.nominated_codes import NominatedRoom
from kschedfw.framework.runtime.status_codes import ERROR, PASS, StatusCodes
from kschedfw.framework.status import Status

_FEW_NODES = 8
"""So few nodes are asked about one by one, as kube-scheduler does; what is remembered wouldn't pay."""


@attrs.frozen(eq=False)
class FilterOutcome:
    """What filtering a selection of nodes came to, up to where the search ended.

    `feasible` are nodes that passed, `refused` has the others, both in the selection's order. A search that met an
    `error` ended there.
    """

    feasible: NodeSelection
    refused: NodeCodes
    error: Status | None = None

    @property
    def processed(self) -> int:
        """How many nodes were looked at, but for one more that ended the search."""
        return len(self.feasible) + self.refused.count


class NodeFilter:
    """Asks all filters of a profile about many nodes, nominated pods included.

    The outcome is that of a loop over the nodes, whichever of them are asked about together.
    """

    def __init__(
        self,
        hooks: FilterHooks,
        columns: FilterColumns | None,
        status_codes: StatusCodes,
        handle: Handle,
        meter: Meter | None,
    ) -> None:
        self._hooks = hooks
        self._columns = columns
        self._handle = handle
        self._meter = meter
        self._status_codes = status_codes
        self._nominated_room = NominatedRoom(hooks, status_codes, handle.nominator)

    def search(
        self,
        cycle: Cycle,
        nodes: NodeSelection,
        wanted: int,
    ) -> FilterOutcome:
        """Filter the nodes in their order until one more than `wanted` have passed, or a plugin fails.

        What ends the search is the first surplus node, as in the original, so that refusals up to there are known.
        """
        if self._meter is None:
            return self._search(cycle, nodes, wanted)
        started = self._meter.now()
        found = self._search(cycle, nodes, wanted)
        self._meter.filtered(started, failed=found.error is not None)
        return found

    def _search(self, cycle: Cycle, nodes: NodeSelection, wanted: int) -> FilterOutcome:
        state, pod, table = cycle.state, cycle.pod, nodes.table
        filters = self._hooks.active(state)
        count = len(nodes.rows)
        is_room_needed = not self._handle.nominator.is_empty
        are_all_wanted = nodes.is_whole_table and wanted >= count and not is_room_needed
        if are_all_wanted and (combined := cycle.pods.combined.get(filters)) is not None:
            kept = combined.outcome
            if isinstance(kept, FilterOutcome) and still_hold(
                combined, self._hooks.reading_pods(state), cycle, table
            ):
                return kept
        few = count <= _FEW_NODES and count < len(table)
        if self._columns is None or few or self._hooks.run_all:
            findings = Findings(np.zeros(count, dtype=np.int32), left=filters, passing=nodes.rows)
        else:
            findings = self._columns.ask(filters, cycle, nodes)
        if findings.left:
            return self._node_by_node(filters, state, pod, nodes, wanted, findings)
        if is_room_needed and not self._nominated_room.leave(filters, cycle, nodes, findings):
            self._leave_room(filters, state, pod, nodes, findings)
        found = _up_to(nodes, wanted, findings, self._status_codes)
        if are_all_wanted and findings.combined is not None and not findings.errors:
            found.feasible.recurs = True
            findings.combined.outcome = found
        return found

    def _nominated(self, nodes: NodeSelection) -> dict[int, int]:
        """Where pods are nominated: positions in the selection, by row."""
        table = nodes.table
        rows = [table.rows[name] for name in self._handle.nominator.nominated_nodes() if name in table.rows]
        if nodes.is_whole_table or not rows:
            return dict(zip(rows, rows, strict=True))
        positions = {row: position for position, row in enumerate(nodes.rows.tolist())}
        return {row: positions[row] for row in rows if row in positions}

    def _leave_room(
        self,
        filters: tuple[FilterPlugin, ...],
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        findings: Findings,
    ) -> None:
        """Ask about nodes with nominated pods as if these were there; without them, the verdict is known."""
        infos = nodes.table.node_infos
        codes, findings.passing = findings.own(), None
        for row, position in self._nominated(nodes).items():
            status = self._hooks.run_beside_nominated_pods(filters, state, pod, infos[row])
            if status.is_success:
                continue
            findings.errors.pop(row, None)
            code = codes[position] = self._status_codes.code_of(status)
            if code == ERROR:
                findings.errors[row] = status

    def _node_by_node(
        self,
        filters: tuple[FilterPlugin, ...],
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        wanted: int,
        findings: Findings,
    ) -> FilterOutcome:
        rows, infos, statuses = nodes.rows.tolist(), nodes.table.node_infos, self._status_codes.statuses
        known = findings.codes.tolist()
        passed = 0

        def check(position: int) -> Status:
            row, code = rows[position], known[position]
            status = beside(filters, state, pod, infos[row])
            if not status.is_success:
                return status
            if code != PASS:
                return findings.errors[row] if code == ERROR else statuses[code]
            if self._hooks.run_all:
                return self._hooks.run(state, pod, infos[row])
            return first_refusal(findings.left, state, pod, infos[row])

        def enough(status: Status) -> bool:
            nonlocal passed
            passed += status.is_success
            return passed > wanted or not (status.is_success or status.is_rejected)

        beside = self._hooks.run_beside_nominated_pods
        parallelizer = self._handle.parallelizer
        if self._meter is None:
            answers = parallelizer.map_until(len(rows), check, enough)
        else:
            with self._meter.working(Operation.FILTER, parallelizer, len(rows)):
                answers = parallelizer.map_until(len(rows), check, enough)
        codes = np.array([self._status_codes.code_of(status) for status in answers], dtype=np.int32)
        errors = {rows[position]: answers[position] for position in np.flatnonzero(codes == ERROR).tolist()}
        asked = nodes if len(answers) == len(rows) else nodes[: len(answers)]
        return _up_to(asked, wanted, Findings(codes, errors, owned=True), self._status_codes)


def _up_to(nodes: NodeSelection, wanted: int, findings: Findings, status_codes: StatusCodes) -> FilterOutcome:
    """The outcome of a search in order, given all verdicts."""
    codes, passing = findings.codes, findings.passing
    if passing is None:
        passing = nodes.rows[codes == PASS]
    count = end = len(codes)
    error = None
    if len(passing) > wanted:
        end = int(np.flatnonzero(codes == PASS)[wanted])
    if findings.errors:
        failed = np.flatnonzero(codes[:end] == ERROR)
        if len(failed):
            end = int(failed[0])
            error = findings.errors[int(nodes.rows[end])]
    if len(passing) == end == count:
        feasible = nodes if nodes.is_whole_table else NodeSelection(nodes.table, passing)
        return FilterOutcome(feasible, NodeCodes.none(nodes.table))
    if end < count:
        nodes, codes = nodes[:end], codes[:end]
        passing = nodes.rows[codes == PASS][:wanted]
    # What is remembered changes with the next pod.
    codes = codes if findings.owned else codes.copy()
    refused = NodeCodes(nodes, codes, status_codes.statuses, count=end - len(passing))
    return FilterOutcome(NodeSelection(nodes.table, passing), refused, error)
