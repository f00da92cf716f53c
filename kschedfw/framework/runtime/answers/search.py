"""Search for the nodes that pass the filters of a profile (kube-scheduler `findNodesThatPassFilters`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.handle import Handle
from kschedfw.framework.metrics import Operation
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.answers.columns import FirstRefusals
from kschedfw.framework.runtime.answers.filtering import FilterOutcome, Filters, first_refusal
from kschedfw.framework.runtime.answers.plugins import FilterPlugin
from kschedfw.framework.runtime.answers.pod_class import FilterPlan, PodClass
from kschedfw.framework.runtime.answers.questions import Questions, Reused, RowVerdicts
from kschedfw.framework.runtime.answers.status_codes import ERROR, PASS, StatusCodes
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.status import Status

_FEWEST_TOGETHER: Final = 8
"""Up to this number of nodes of a larger table, filters are called node by node, as in kube-scheduler: arrays cost
more."""


class NodeSearch:
    """The search over many nodes with all filters of a profile, nominated pods included.

    The outcome is that of a loop over the nodes, even where filters are called for many at once. With `batch`
    False there is such a loop.
    """

    def __init__(self, filters: Filters, handle: Handle, meter: Meter | None, *, batch: bool) -> None:
        self._filters = filters
        self._reused: Reused = WeakKeyDictionary()
        self._handle = handle
        self._meter = meter
        self._batch = batch
        self._nominated = NominatedPods(filters, handle.nominator)

    def find(
        self, state: CycleState, pod: Pod, pods: PodClass, nodes: NodeSelection, wanted: int
    ) -> FilterOutcome:
        """Filter the nodes in their order until one more than `wanted` have passed, or a plugin fails.

        The first surplus node ends the search, as in kube-scheduler, so refusals up to there are known.
        """
        if self._meter is None:
            return self._find(state, pod, pods, nodes, wanted)
        started = self._meter.now()
        found = self._find(state, pod, pods, nodes, wanted)
        self._meter.filtered(started, failed=found.error is not None)
        return found

    def _find(
        self, state: CycleState, pod: Pod, pods: PodClass, nodes: NodeSelection, wanted: int
    ) -> FilterOutcome:
        table, count = nodes.table, len(nodes)
        plan = pods.filter_plan(
            self._filters.plugins, state.skip_filter_plugins, table, self._filters.pod_followers
        )
        if not self._batch or self._filters.run_all or (count <= _FEWEST_TOGETHER and count < len(table)):
            nothing_said = RowVerdicts(nodes.rows, None, nodes.rows)
            found = self._one_by_one(plan, plan.filters, state, pod, pods, nodes, nothing_said, wanted)
            return _outcome(nodes, wanted, found, pods.codes)
        questions = Questions(self._handle.parallelizer, self._reused, state, pod, pods, table)
        has_nominated = not self._handle.nominator.is_empty
        kept = plan.refusals
        if kept is not None:
            questions.bring_up_to_date(kept, plan)
            if nodes.start is not None and not plan.rest:
                # With sampling not every node is looked at, so the codes that are missing are asked for part
                # by part below. Nominated pods' verdicts are kept for all nodes together.
                if not kept.is_complete and (wanted >= count or has_nominated):
                    questions.fill(kept, plan, table.all_rows)
                # An error ends the search at its node, so it takes the way that goes by nodes in order.
                if kept.is_complete and not questions.errors:
                    if not has_nominated:
                        return _known_outcome(kept, nodes, nodes.start, wanted, pods.codes)
                    if plan.is_local:
                        found = self._nominated.verdicts(kept, plan, state, pod, pods, nodes)
                        return _outcome(nodes, wanted, found, pods.codes)
        if wanted >= count:
            found = self._ask(plan, questions, state, pod, pods, nodes, wanted)
            return _outcome(nodes, wanted, found, pods.codes)
        # Parts of growing size, like a search that doubles: a filter isn't asked about many more nodes than
        # wanted.
        parts: list[RowVerdicts] = []
        begin, size, passed = 0, wanted + 1, 0
        while begin < count:
            part = nodes.part(begin, min(begin + size, count))
            found = self._ask(plan, questions, state, pod, pods, part, wanted - passed)
            parts.append(found)
            passed += len(found.passing)
            # Fewer verdicts than nodes: filters were called node by node, and enough have passed.
            if passed > wanted or found.errors or len(found.rows) < len(part):
                break
            begin, size = begin + size, 2 * size
        return _outcome(nodes, wanted, _joined(parts), pods.codes)

    def refused_by_each(
        self, state: CycleState, pod: Pod, pods: PodClass, nodes: NodeSelection
    ) -> dict[str, NodeCodes]:
        """Return the nodes that each filter refuses, even after a refusal by another, by plugin.

        Filters that refuse none are left out, and nominated pods aren't added to the nodes.
        """
        questions = Questions(self._handle.parallelizer, self._reused, state, pod, pods, nodes.table)
        found: dict[str, NodeCodes] = {}
        for each in self._filters.active(state):
            answer = questions.verdicts(each, nodes.rows) if self._batch else None
            codes = questions.one_by_one(each, nodes.rows) if answer is None else answer.all_codes
            refused = NodeCodes(nodes, np.where(codes == ERROR, PASS, codes), pods.codes.statuses)
            if refused.count:
                found[each.name] = refused
        return found

    def _ask(
        self,
        plan: FilterPlan,
        questions: Questions,
        state: CycleState,
        pod: Pod,
        pods: PodClass,
        nodes: NodeSelection,
        wanted: int,
    ) -> RowVerdicts:
        """Return the verdicts of all filters on these nodes; fewer if more than `wanted` pass before the last."""
        rows = nodes.rows
        passing, codes, is_own = rows, None, False
        kept = plan.refusals
        if kept is not None and not (kept.is_complete and kept.passing(nodes.table) is nodes.table.all_rows):
            known = questions.kept_codes(kept, plan, rows)
            if np.count_nonzero(known):
                codes, passing = known, rows[known == PASS]
        for index, each in enumerate(plan.rest):
            if not len(passing):
                break
            answer = questions.verdicts(each, passing)
            if answer is None:
                found = RowVerdicts(rows, codes, passing, questions.errors)
                return self._one_by_one(plan, plan.rest[index:], state, pod, pods, nodes, found, wanted)
            if answer.codes is None:
                continue
            if codes is None:
                codes = answer.codes
            else:
                # The codes may be a kept column, or another plugin's reusable ones.
                if not is_own:
                    codes, is_own = codes.copy(), True
                # `passing`, which was asked about, are the rows whose code is PASS, in the same order.
                codes[codes == PASS] = answer.codes
            passing = answer.passing
        # `errors` may have rows of other parts, or rows that a filter before the failing one refuses.
        has_error = bool(questions.errors) and codes is not None and bool((codes == ERROR).any())
        found = RowVerdicts(rows, codes, passing, questions.errors if has_error else EMPTY)
        if self._handle.nominator.is_empty:
            return found
        return self._with_nominated_pods(plan, state, pod, pods, nodes, found)

    def _with_nominated_pods(
        self,
        plan: FilterPlan,
        state: CycleState,
        pod: Pod,
        pods: PodClass,
        nodes: NodeSelection,
        found: RowVerdicts,
    ) -> RowVerdicts:
        """Return the verdicts after asking again about nodes with nominated pods, as if these were there."""
        rows, codes, errors = nodes.rows, found.all_codes.copy(), dict(found.errors)
        # kube-scheduler asks with the nominated pods first (RunFilterPluginsWithNominatedPods), so their
        # refusal is the one that counts where there are two.
        reading_pods = self._filters.reading_pods(state)
        for position in np.flatnonzero(np.isin(rows, self._nominated.rows(nodes.table))).tolist():
            row = int(rows[position])
            # A node that passes without its nominated pods can only be refused by filters that read pods.
            filters = reading_pods if codes[position] == PASS else plan.filters
            status = self._filters.refusal_with_nominated_pods(
                filters, state, pod, nodes.table.node_infos[row]
            )
            if status.is_success:
                continue
            code = codes[position] = pods.codes.code_of(status)
            if code == ERROR:
                errors[row] = status
        return RowVerdicts.of(rows, codes, errors)

    def _one_by_one(
        self,
        plan: FilterPlan,
        left: Sequence[FilterPlugin],
        state: CycleState,
        pod: Pod,
        pods: PodClass,
        nodes: NodeSelection,
        found: RowVerdicts,
        wanted: int,
    ) -> RowVerdicts:
        """Call the filters in `left` node by node until enough pass; `found` has the verdicts of the others."""
        known, has_nominated = found.codes, not self._handle.nominator.is_empty
        rows, infos, statuses = nodes.rows.tolist(), nodes.table.node_infos, pods.codes.statuses
        positions: Sequence[int] = range(len(rows))
        if known is not None:
            in_question = known == PASS
            if has_nominated:
                in_question |= np.isin(nodes.rows, self._nominated.rows(nodes.table))
            positions = np.flatnonzero(in_question).tolist()
        passed = 0

        def check(index: int) -> Status:
            position = positions[index]
            row = rows[position]
            if has_nominated:
                status = self._filters.refusal_with_nominated_pods(plan.filters, state, pod, infos[row])
                if not status.is_success:
                    return status
            code = PASS if known is None else int(known[position])
            if code != PASS:
                return found.errors[row] if code == ERROR else statuses[code]
            if self._filters.run_all:
                return self._filters.run(state, pod, infos[row])
            return first_refusal(left, state, pod, infos[row])

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
        looked_at = nodes.rows[:end]
        if known is None and passed == len(answers):
            return RowVerdicts(looked_at, None, looked_at)
        codes, errors = found.all_codes[:end].copy(), dict(found.errors)
        for position, status in zip(positions, answers, strict=False):
            code = codes[position] = pods.codes.code_of(status)
            if code == ERROR:
                errors[rows[position]] = status
        return RowVerdicts.of(looked_at, codes, errors if (codes == ERROR).any() else EMPTY)


def _joined(parts: Sequence[RowVerdicts]) -> RowVerdicts:
    """Return the verdicts on consecutive parts of a selection as one."""
    if len(parts) == 1:
        return parts[0]
    errors = {row: status for part in parts for row, status in part.errors.items()}
    rows = np.concatenate([part.rows for part in parts]) if parts else np.empty(0, dtype=np.int64)
    if all(part.codes is None for part in parts):
        return RowVerdicts(rows, None, rows)
    codes = np.concatenate([part.all_codes for part in parts])
    return RowVerdicts(rows, codes, np.concatenate([part.passing for part in parts]), errors)


def _outcome(
    nodes: NodeSelection, wanted: int, found: RowVerdicts, status_codes: StatusCodes
) -> FilterOutcome:
    """Return the outcome of a search in order, given the verdicts on the first nodes, or on all."""
    table, codes, passing = nodes.table, found.codes, found.passing
    end, error = len(found.rows), None
    if codes is None:
        if end > wanted:
            return FilterOutcome(NodeSelection(table, passing[:wanted]), NodeCodes.none(table))
        feasible = nodes if end == len(nodes) else NodeSelection(table, passing)
        return FilterOutcome(feasible, NodeCodes.none(table))
    if len(passing) > wanted:
        # The first surplus node isn't part of the outcome; refusals before it are.
        end, passing = int(np.flatnonzero(codes == PASS)[wanted]), passing[:wanted]
    if found.errors:
        failed = np.flatnonzero(codes[:end] == ERROR)
        if len(failed):
            end = int(failed[0])
            error = found.errors[int(found.rows[end])]
            passing = passing[: np.count_nonzero(codes[:end] == PASS)]
    refused = NodeCodes(
        nodes.part(0, end), codes[:end].copy(), status_codes.statuses, count=end - len(passing)
    )
    return FilterOutcome(NodeSelection(table, passing), refused, error)


def _known_outcome(
    kept: FirstRefusals, nodes: NodeSelection, start: int, wanted: int, status_codes: StatusCodes
) -> FilterOutcome:
    """Return the outcome for all nodes from row `start` on, where every verdict is known."""
    table, count = nodes.table, len(nodes)
    passing = kept.passing(table)
    if len(passing) <= wanted:
        # The same object as for the pod before: by the identity of its selection totals are found again
        # (`StandingTotals`).
        if start == 0 and kept.outcome is not None:
            return kept.outcome
        codes = None if len(passing) == count else table.take(kept.values, nodes.rows)
        passing = nodes.rows if codes is None else _from(passing, start)
        outcome = _outcome(nodes, wanted, RowVerdicts(nodes.rows, codes, passing), status_codes)
        if start == 0:
            kept.outcome = outcome
        return outcome
    first = int(passing.searchsorted(start))
    enough = _cyclic(passing, first, wanted)
    # There are more passing nodes than wanted, so this is another node than those in `enough`.
    surplus = int(passing[(first + wanted) % len(passing)])
    end = (surplus - start) % count
    if end == wanted:
        return FilterOutcome(NodeSelection(table, enough), NodeCodes.none(table))
    looked_at = nodes.part(0, end)
    refused = NodeCodes(looked_at, kept.values[looked_at.rows], status_codes.statuses, count=end - wanted)
    return FilterOutcome(NodeSelection(table, enough), refused)


def _from(rows: IntArray, start: int) -> IntArray:
    """Return ascending rows in the order from row `start` on and round the end."""
    return _cyclic(rows, int(rows.searchsorted(start)), len(rows))


def _cyclic(rows: IntArray, first: int, count: int) -> IntArray:
    """Return `count` of the rows, from position `first` on and round the end."""
    first %= max(len(rows), 1)
    part = rows[first : first + count]
    if len(part) == count:
        return part
    joined: IntArray = np.concatenate((part, rows[: count - len(part)]))
    return joined


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
        # By priority, since only nominated pods of equal or higher priority count.
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
            # On nodes that nobody is nominated to, the answer is the one without nominated pods.
            stale, names, again = (), self._nominator.nominated_nodes(), set()
        crowded.mark_current(table)
        return {*stale, *again, *alone.again, *(table.rows[name] for name in names if name in table.rows)}
