"""The search that asks about nodes in their order: what the answers of filters mean (kube-scheduler
`findNodesThatPassFilters`).

A filter's answer counts only for nodes that all filters before it let pass, and an error ends the search at its node.
Batch forms are asked about many nodes at once, with the same outcome. Nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Final

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.handle import Handle
from kschedfw.framework.metrics import Operation
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.runtime.engine.filters import Filters, first_refusal
from kschedfw.framework.runtime.engine.outcome import FilterOutcome
from kschedfw.framework.runtime.engine.plugins import FilterPlugin
from kschedfw.framework.runtime.engine.status_codes import ERROR, PASS, StatusCodes, refusal
from kschedfw.framework.runtime.hook_answers import as_verdicts
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.status import Status

_FEWEST_TOGETHER: Final = 8
"""Up to this number of nodes of a larger table, filters are called node by node, as in kube-scheduler: arrays cost
more."""


def is_few(nodes: NodeSelection) -> bool:
    """Return whether it is faster to ask about these nodes one by one."""
    return len(nodes) <= _FEWEST_TOGETHER and len(nodes) < len(nodes.table)


@define(eq=False)
class _Found:
    """The verdicts on the first nodes of a selection: a code for each, and errors by row.

    A row whose code isn't ERROR may have an error left, from before its nominated pods were looked at.
    """

    codes: Codes
    errors: dict[int, Status] = attrs.field(factory=dict)


class SearchInOrder:
    """The search over nodes with all filters of a profile, nominated pods included.

    Without `batch`, filters are called node by node.
    """

    def __init__(self, filters: Filters, handle: Handle, meter: Meter | None, *, batch: bool) -> None:
        self._filters = filters
        self._handle = handle
        self._meter = meter
        self._batch = batch and not filters.run_all

    def find(
        self, state: CycleState, pod: Pod, codes: StatusCodes, nodes: NodeSelection, wanted: int
    ) -> FilterOutcome:
        """Filter the nodes in their order until one more than `wanted` have passed, or a plugin fails.

        The first surplus node ends the search, as in kube-scheduler, so refusals up to there are known.
        """
        filters, count = self._filters.active(state), len(nodes)
        if not self._batch or is_few(nodes):
            return outcome_of(
                nodes, wanted, self.one_by_one(filters, state, pod, codes, nodes, wanted), codes
            )
        # Parts of growing size, like a search that doubles: a filter isn't asked about many more nodes than wanted.
        found = _Found(np.empty(0, dtype=np.int32))
        size, passed = wanted + 1, 0
        while (begin := len(found.codes)) < count:
            part = nodes.part(begin, min(begin + size, count))
            more = self._together(filters, state, pod, codes, part, wanted - passed)
            found.codes = np.concatenate((found.codes, more.codes))
            found.errors |= more.errors
            passed += int(np.count_nonzero(more.codes == PASS))
            # By the codes: an error that nominated pods turn into a refusal is no failure.
            if passed > wanted or (more.errors and (more.codes == ERROR).any()):
                break
            size *= 2
        return outcome_of(nodes, wanted, found, codes)

    def refused_by_each(
        self, state: CycleState, pod: Pod, codes: StatusCodes, nodes: NodeSelection
    ) -> dict[str, NodeCodes]:
        """Return the nodes that each filter refuses, even after a refusal by another, by plugin.

        Filters that refuse none are left out, and nominated pods aren't added to the nodes.
        """
        found: dict[str, NodeCodes] = {}
        for each in self._filters.active(state):
            its: Codes | None = None
            if self._batch:
                its = self._by_batch(each, state, pod, codes, nodes.table, nodes.rows, {})
            if its is None:
                asked = [each.ask(state, pod, info) for info in nodes]
                its = np.array(list(map(codes.code_of, asked)), dtype=np.int32)
            refused = NodeCodes(nodes, np.where(its == ERROR, PASS, its), codes.statuses)
            if refused.count:
                found[each.name] = refused
        return found

    def _together(
        self,
        filters: Sequence[FilterPlugin],
        state: CycleState,
        pod: Pod,
        codes: StatusCodes,
        nodes: NodeSelection,
        wanted: int,
    ) -> _Found:
        """Return the verdicts of all filters on these nodes; fewer if more than `wanted` pass before the last."""
        rows = nodes.rows
        found = _Found(np.zeros(len(rows), dtype=np.int32))
        passing = np.arange(len(rows))
        for index, each in enumerate(filters):
            if not len(passing):
                break
            asked = rows if len(passing) == len(rows) else rows[passing]
            its = self._by_batch(each, state, pod, codes, nodes.table, asked, found.errors)
            if its is None:
                return self.one_by_one(filters, state, pod, codes, nodes, wanted, found, filters[index:])
            if its.any():
                found.codes[passing] = its
                passing = passing[its == PASS]
        if not self._handle.nominator.is_empty:
            self._add_nominated_pods(filters, state, pod, codes, nodes, found)
        return found

    def _add_nominated_pods(
        self,
        filters: Sequence[FilterPlugin],
        state: CycleState,
        pod: Pod,
        codes: StatusCodes,
        nodes: NodeSelection,
        found: _Found,
    ) -> None:
        """Ask again about nodes with nominated pods, as if these were there."""
        # kube-scheduler asks with the nominated pods first (RunFilterPluginsWithNominatedPods), so their
        # refusal is the one that counts where there are two.
        reading_pods = self._filters.reading_pods(state)
        rows, infos = nodes.rows, nodes.table.node_infos
        for position in np.flatnonzero(np.isin(rows, self.crowded_rows(nodes.table))).tolist():
            row = int(rows[position])
            # A node that passes without its nominated pods can only be refused by filters that read pods.
            asked = reading_pods if found.codes[position] == PASS else filters
            status = self._filters.refusal_with_nominated_pods(asked, state, pod, infos[row])
            if status.is_success:
                continue
            code = found.codes[position] = codes.code_of(status)
            if code == ERROR:
                found.errors[row] = status

    def crowded_rows(self, table: NodeTable) -> list[int]:
        """Return the rows of nodes that pods are nominated to."""
        names = self._handle.nominator.nominated_nodes()
        return [table.rows[name] for name in names if name in table.rows]

    def one_by_one(
        self,
        filters: Sequence[FilterPlugin],
        state: CycleState,
        pod: Pod,
        codes: StatusCodes,
        nodes: NodeSelection,
        wanted: int,
        known: _Found | None = None,
        left: Sequence[FilterPlugin] | None = None,
    ) -> _Found:
        """Call filters node by node until enough pass.

        `known` has the verdicts of all filters but those `left`, on all nodes.
        """
        before = None if known is None else known.codes
        errors: Mapping[int, Status] = {} if known is None else known.errors
        has_nominated = not self._handle.nominator.is_empty
        rows, infos, statuses = nodes.rows.tolist(), nodes.table.node_infos, codes.statuses
        remaining = filters if left is None else left
        positions: Sequence[int] = range(len(rows))
        if before is not None:
            in_question = before == PASS
            if has_nominated:
                in_question |= np.isin(nodes.rows, self.crowded_rows(nodes.table))
            in_question |= before == ERROR
            positions = np.flatnonzero(in_question).tolist()
        passed = 0

        def check(index: int) -> Status:
            position = positions[index]
            row = rows[position]
            if has_nominated:
                status = self._filters.refusal_with_nominated_pods(filters, state, pod, infos[row])
                if not status.is_success:
                    return status
            code = PASS if before is None else int(before[position])
            if code != PASS:
                return errors[row] if code == ERROR else statuses[code]
            if self._filters.run_all:
                return self._filters.run(state, pod, infos[row])
            return first_refusal(remaining, state, pod, infos[row])

        def is_enough(status: Status) -> bool:
            nonlocal passed
            # One at a time and in the order of nodes, whatever the threads do (`Parallelizer.map_until`), so
            # a plain counter will do.
            passed += status.is_success
            return passed > wanted or not (status.is_success or status.is_rejected)

        meter, parallelizer = self._meter, self._handle.parallelizer
        working = (
            nullcontext() if meter is None else meter.working(Operation.FILTER, parallelizer, len(positions))
        )
        with working:
            answers = parallelizer.map_until(len(positions), check, is_enough)
        # Nodes behind the last one asked about are refused already, but the search ended before it came to
        # them.
        end = len(rows) if len(answers) == len(positions) else positions[len(answers) - 1] + 1
        found = _Found(np.zeros(end, dtype=np.int32) if before is None else before[:end].copy(), dict(errors))
        for position, status in zip(positions, answers, strict=False):
            if status.is_success and not found.codes[position]:
                continue
            code = found.codes[position] = codes.code_of(status)
            if code == ERROR:
                found.errors[rows[position]] = status
        return found

    def _by_batch(
        self,
        each: FilterPlugin,
        state: CycleState,
        pod: Pod,
        codes: StatusCodes,
        table: NodeTable,
        rows: IntArray,
        errors: dict[int, Status],
    ) -> Codes | None:
        """Return the codes of the batch form, shape (k,); None where nodes must be asked about one by one.

        Adds the statuses behind the code ERROR to `errors`, by row.
        """
        if each.batch is None:
            return None
        # The rows may be those of a selection or of the table; a plugin that writes to them gets an error.
        rows.setflags(write=False)
        try:
            answer = each.batch(state, pod, table, rows)
            if answer is None:
                return None
            verdicts = as_verdicts("filter_batch", answer, len(rows))
        except HOOK_FAILURES as error:
            # A batch form that fails has failed at every node. The search ends with the first of them in its order.
            status = refusal(Status.from_error(error), each.name)
            errors.update(dict.fromkeys(rows.tolist(), status))
            return np.full(len(rows), ERROR, dtype=np.int32)
        each.counts.rows_asked += len(rows)
        translation = codes.translation(verdicts.statuses, each.name)
        found: Codes = translation.codes.take(verdicts.codes)
        if translation.has_error:
            for position in np.flatnonzero(found == ERROR).tolist():
                errors[int(rows[position])] = translation.statuses[verdicts.codes[position]]
        return found


def outcome_of(nodes: NodeSelection, wanted: int, found: _Found, codes: StatusCodes) -> FilterOutcome:
    """Return the outcome of a search in order, given the verdicts on the first nodes, or on all."""
    table, end, error = nodes.table, len(found.codes), None
    passing = np.flatnonzero(found.codes == PASS)
    if len(passing) > wanted:
        # The first surplus node isn't part of the outcome; refusals before it are.
        end, passing = int(passing[wanted]), passing[:wanted]
    if found.errors:
        failed = np.flatnonzero(found.codes[:end] == ERROR)
        if len(failed):
            end = int(failed[0])
            error = found.errors[int(nodes.rows[end])]
            passing = passing[passing < end]
    feasible = nodes if len(passing) == len(nodes) else NodeSelection(table, nodes.rows[passing])
    refused = NodeCodes.none(table)
    if end > len(passing):
        refused = NodeCodes(
            nodes.part(0, end), found.codes[:end].copy(), codes.statuses, count=end - len(passing)
        )
    return FilterOutcome(len(passing), end, feasible, refused, error)
