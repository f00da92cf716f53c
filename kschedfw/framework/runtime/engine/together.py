"""Decisions on all nodes at once, by a plan and one pass over the columns of the node table.

A plan has the answers that depend on a pod's signatures and the node objects. What depends on requests and on the pods
on nodes is computed in the pass: who has enough left, the scores of CPU and memory. Other plugins are asked about every
pod, but with all nodes at once: their filters before the pass, their scores with the nodes that it finds feasible.
Filters that can't answer together are asked node by node, where all others let the pod pass.

The reasons of refused nodes are looked up only if somebody reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.requests import PodRequests
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.arrays import Codes, FloatArray, IntArray
from kschedfw.framework.nodes.read_only import read_only_view
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.outcome import FilterOutcome, Totals
from kschedfw.framework.results import ByDomain, DomainScores, Normalizing, Verdicts
from kschedfw.framework.runtime.engine.errors import NotTogetherError, check_range
from kschedfw.framework.runtime.engine.kept import Kept
from kschedfw.framework.runtime.engine.kept_totals import KeptTotals, pass_input
from kschedfw.framework.runtime.engine.node_by_node import NodeByNode
from kschedfw.framework.runtime.engine.nominated import NominatedRoom
from kschedfw.framework.runtime.engine.pass_in_use import MOST_FOLLOWED, pass_for
from kschedfw.framework.runtime.engine.passes import Pass, SmallCodes, searched
from kschedfw.framework.runtime.engine.plan import REFUSED, Plan
from kschedfw.framework.runtime.engine.steps import RefusalCodes, Step, small_codes
from kschedfw.framework.status import Status
from kschedfw.framework.status_codes import PASS

_MOST_KEPT: Final = 8
"""The number of kept totals; each takes 8 bytes a node and a list of the best nodes."""
_NOBODY: Final[Mapping[int, Status]] = {}


class _Run(FilterOutcome):
    """The nodes of one pod, filtered together.

    `totals` has the totals so far, shape (n,), below 0 where a node isn't feasible; they are those of `kept`, if that
    isn't None. `looked_at` is the number of nodes from row `start` on that were looked at, of all nodes. `said` has
    what filters said that were asked node by node (`asked_last`), by row.
    """

    def __init__(
        self,
        together: Together,
        plan: Plan,
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        compiled: Pass,
        totals: FloatArray,
        kept: KeptTotals | None,
        count: int,
        looked_at: int,
    ) -> None:
        self.together, self.plan = together, plan
        self.state, self.pod, self.nodes = state, pod, nodes
        self.compiled, self.totals, self.kept = compiled, totals, kept
        self.count, self.processed, self.looked_at = count, looked_at, looked_at
        self.start = nodes.start or 0
        self.error: Status | None = None
        self.is_scored = False
        """True if scores were added to `totals`."""
        self.said: Mapping[int, Status] = _NOBODY
        self.asked_last: Sequence[Step] = ()
        self.verdicts: Mapping[str, Verdicts | None] = {}
        """The verdicts on all nodes of filters that were asked together, by plugin."""
        self.unchanged: KeptTotals | None = None
        """The kept totals that `totals` are, for some of the nodes, too."""
        self._made: NodeCodes | None = None
        self.feasible = (
            nodes if count == len(totals) else NodeSelection.made_later(nodes.table, count, self._rows)
        )

    def _rows(self) -> IntArray:
        self.check_current()
        return self.compiled.feasible_rows(self.totals, self.start, self.looked_at, self.count)

    @property
    def refused(self) -> NodeCodes:
        if self._made is None:
            self._made = self.together.refused(self)
        return self._made

    def check_current(self) -> None:
        """Raise RuntimeError if another pod has been filtered since."""
        if self.together.latest is not self:
            raise RuntimeError("the outcome of a search must be read before the next pod is filtered")


class Together:
    """Filters and scores all nodes at once, by plans."""

    def __init__(
        self, node_by_node: NodeByNode, handle: Handle, *, binds_in_background: bool = False
    ) -> None:
        self._node_by_node = node_by_node
        self._binds_in_background = binds_in_background
        self._nominator = handle.nominator
        self._nominated = NominatedRoom(node_by_node, handle.nominator)
        self._kept: BoundedDict[int, KeptTotals] = BoundedDict(_MOST_KEPT)
        """The totals of the latest plans and requests, by the identity of the requests, which equal pods share."""
        self._last: PodRequests | None = None
        """The requests of the pod before: totals are kept from the second pod in a row on."""
        self._pods = 0
        self._make_room(0)
        self.latest: _Run | None = None

    def _make_room(self, nodes: int) -> None:
        """Make the arrays by node that are written anew for every pod."""
        self._totals: FloatArray = np.empty(nodes)
        self._best: IntArray = np.empty(nodes, dtype=np.int64)
        self._raw: FloatArray = np.empty(nodes)
        self._scores: FloatArray = np.empty(nodes)
        # Read-only views, like the arrays of plans: Numba compiles another version for writable arrays.
        self._scores_to_read = read_only_view(self._scores)
        self._totals_to_read = read_only_view(self._totals)

    def find(
        self, plan: Plan, state: CycleState, pod: Pod, nodes: NodeSelection, wanted: int
    ) -> FilterOutcome:
        """Filter the nodes until one more than `wanted` have passed. `state` has what the pre_filters wrote.

        Raises what hooks raise, or NotTogetherError; then nodes must be asked about in order.
        """
        table = nodes.table
        base = plan.known_base
        if base is None:
            base = plan.base(state, pod, table)
        count = len(base)
        compiled = pass_for(count, self._pods, binds_in_background=self._binds_in_background)
        if len(self._best) != count:
            self._make_room(count)
        verdicts: dict[str, Verdicts | None] = {}
        refusals, last = self._refusals(plan, state, pod, nodes, verdicts)
        # A part of the nodes, and nodes that more filters are asked about, are counted after the pass.
        is_counted = nodes.start is None or bool(last)
        start, most = nodes.start or 0, count if is_counted else wanted
        is_part = bool(start) or most < count
        # Kept totals are for all nodes. A search that ends early looks them up where that takes less than to add up.
        follows = not is_part or compiled.PREFERS_KEPT
        kept = self._kept_totals(plan, base, pod.requests, compiled, table) if follows else None
        unchanged = None if refusals else kept
        if kept is None or refusals or count > MOST_FOLLOWED:
            self._pods += 1
        if kept is None:
            scores = base
            if refusals:
                scores = _refuse(compiled, refusals, scores, self._scores, self._scores_to_read)
            totals, asked = self._totals, pass_input(plan, pod.requests, table)
            feasible, looked_at = compiled.totals_of(
                scores, table.compiled_columns, asked, start, most, totals
            )
        else:
            totals, feasible, looked_at = kept.totals, kept.feasible, count
            if refusals:
                # Laid over the kept totals, which hold for pods with other terms, too.
                _refuse(compiled, refusals, kept.totals_to_read, self._totals, self._totals_to_read)
                totals = self._totals
            if refusals or is_part:
                # The best of the kept totals aren't this pod's.
                kept = None
                feasible, looked_at = searched(totals, start, most)
        run = self.latest = _Run(self, plan, state, pod, nodes, compiled, totals, kept, feasible, looked_at)
        run.verdicts = verdicts
        run.unchanged = unchanged
        if is_counted:
            self._count(run, last, wanted)
        return run

    def _kept_totals(
        self, plan: Plan, base: FloatArray, requests: PodRequests, compiled: Pass, table: NodeTable
    ) -> KeptTotals | None:
        """Return the current totals of all nodes; None where the requests haven't come lately."""
        comes_again, self._last = requests is self._last, requests
        # A kept entry holds its requests, so no other object has their id as long as it is kept.
        kept = self._kept.get(id(requests))
        if kept is not None and kept.answers(base, requests):
            kept.follow(compiled, table)
            return kept
        if not comes_again:
            return None
        kept = self._kept[id(requests)] = KeptTotals(plan, base, requests, compiled, table)
        return kept

    @property
    def asked_last(self) -> tuple[str, ...]:
        """The filters that were asked node by node in the last search."""
        return tuple([each.name for each in self.latest.asked_last]) if self.latest else ()

    def _refusals(
        self,
        plan: Plan,
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        said: dict[str, Verdicts | None],
    ) -> tuple[RefusalCodes, Sequence[Step]]:
        """Return the refusals of plugins asked about every pod, and those for nominated pods.

        Return also the filters that must be asked node by node. Adds the verdicts on all nodes to `said`, by plugin.
        """
        found: list[ByDomain | SmallCodes] = []
        table, skipped = nodes.table, state.skip_filter_plugins
        last: Sequence[Step] = ()
        for each in plan.filters_asked:
            if each.name in skipped:
                continue
            by_domain = each.domain_refusals(state, table)
            if by_domain is not None:
                found += by_domain
                continue
            verdicts = said[each.name] = each.verdicts(state, pod, table, table.all_rows)
            if verdicts is None:
                # A filter that others come after can't be told from them once all are combined.
                if each.name not in plan.asked_last:
                    raise NotTogetherError
                names = [step.name for step in plan.filters]
                behind = frozenset(names[names.index(each.name) :])
                last = [active for active in self._node_by_node.active(state) if active.name in behind]
                break
            if verdicts is not Verdicts.passing(len(table)):
                found.append(small_codes(verdicts))
        for kept in plan.filters_kept:
            if kept.step.name not in skipped:
                try:
                    refused = kept.refusals(state, pod, table) != PASS
                except HOOK_FAILURES:
                    plan.forget_failed()
                    raise
                if refused.any():
                    found.append(refused.view(np.int8))
        if not self._nominator.is_empty:
            crowded = self._nominated.refused(plan, state, pod, nodes, last)
            if crowded is not None:
                found.append(crowded)
        return found, last

    def _count(self, run: _Run, last: Sequence[Step], wanted: int) -> None:
        """Complete the outcome for some of the nodes, or after asking the filters in `last` node by node."""
        rows = run.nodes.rows
        passing = np.flatnonzero(run.totals.take(rows) >= 0)
        end, error = len(rows), None
        if last:
            asked = NodeSelection(run.nodes.table, rows[passing])
            # Nominated pods decide which of these filters refuses or fails first, if one of them reads pods.
            alone = set(last).isdisjoint(self._node_by_node.reading_pods(run.state))
            answers = self._node_by_node.ask_in_order(last, run.state, run.pod, asked, wanted, alone=alone)
            run.asked_last = last
            run.said = {
                row: status
                for row, status in zip(asked.rows.tolist(), answers, strict=False)
                if not status.is_success
            }
            if answers and not (answers[-1].is_success or answers[-1].is_rejected):
                end, error = int(passing[len(answers) - 1]), answers[-1]
            passes = np.fromiter((status.is_success for status in answers), np.bool_, len(answers))
            passing = passing[: len(answers)][passes]
        if len(passing) > wanted:
            end, passing = int(passing[wanted]), passing[:wanted]
        table = run.nodes.table
        is_all = len(passing) == len(rows)
        run.feasible = feasible = run.nodes if is_all else NodeSelection(table, rows[passing])
        run.count, run.processed, run.error = len(passing), end, error
        if run.nodes.start is not None and not is_all:
            # The nodes that don't count have no totals.
            totals = np.full(len(table), -1.0)
            totals[feasible.rows] = run.totals[feasible.rows]
            run.totals, run.kept, run.looked_at = totals, None, end

    def refused(self, run: _Run) -> NodeCodes:
        """Return the first refusal of each node in profile order."""
        if run.processed == run.count:
            return NodeCodes.none(run.nodes.table)
        run.check_current()
        # Of pods alike that fit nowhere, each would ask for the same refusals again: that took half of its time.
        is_whole = run.nodes.start is not None and not run.count and not run.asked_last
        kept = run.unchanged if is_whole and self._nominator.is_empty else None
        if kept is not None and kept.refused is not None and kept.refused.nodes.start == run.nodes.start:
            return kept.refused
        try:
            found = self._first_refusals(run)
        except HOOK_FAILURES:
            found = None
        # A plugin that breaks a promise gives different answers in different ways. What it says in order counts.
        if found is None or found.count != np.count_nonzero(found.codes):
            in_order = self._node_by_node.search(run.state, run.pod, run.plan.codes, run.nodes, run.count)
            return in_order.refused
        if kept is not None:
            kept.refused = found
        return found

    def _first_refusals(self, run: _Run) -> NodeCodes:
        plan, state, nodes, codes = run.plan, run.state, run.nodes, run.plan.codes
        table = nodes.table
        looked_at = nodes.part(0, run.processed)
        known: Codes | None = None
        last = {each.name for each in run.asked_last}
        for step in plan.filters_refusing:
            if step.name in state.skip_filter_plugins or step.name in last:
                continue
            its = self._codes_of(step, run)
            if its is not None:
                known = its if known is None else np.where(known == PASS, its, known)
        found: Codes = np.zeros(len(table), dtype=np.int32) if known is None else known
        for row, status in run.said.items():
            found[row] = codes.code_of(status)
        if not self._nominator.is_empty:
            self._nominated.add_refusals(plan, state, run.pod, nodes, run.totals, found)
        return NodeCodes(
            looked_at, table.take(found, looked_at.rows), codes.statuses, count=run.processed - run.count
        )

    def _codes_of(self, step: Step, run: _Run) -> Codes | None:
        """Return a filter's codes on all nodes, in an array of the caller's own; None where it refuses none."""
        plan, state, pod, codes, table = run.plan, run.state, run.pod, run.plan.codes, run.nodes.table
        kept = plan.kept.get(step.name)
        if kept is not None and kept.keeps_refusals:
            # A copy: this is the kept column, and codes are read after the cycle.
            return kept.refusals(state, pod, table).copy()
        verdicts = run.verdicts.get(step.name) or step.verdicts(state, pod, table, table.all_rows)
        if verdicts is None:
            raise NotTogetherError
        if verdicts is Verdicts.passing(len(table)):
            return None
        return codes.of_verdicts(verdicts, step.name)

    # Scores

    def totals(self, state: CycleState, pod: Pod, nodes: NodeSelection) -> Totals | None:
        """Return the totals of feasible nodes; None if these nodes weren't filtered last, for this state.

        Raises what hooks raise, or NotTogetherError.
        """
        run = self.latest
        if run is None or run.state is not state or run.is_scored or run.nodes.table is not nodes.table:
            return None
        if run.nodes.start is None or run.feasible is not nodes or not run.count:
            return self._totals_at(run, pod, nodes)
        run.is_scored = True
        table, compiled = nodes.table, run.compiled
        totals, kept = run.totals, run.kept
        for step, known in run.plan.scores_added:
            if step.name in state.skip_score_plugins:
                continue
            by_domain = step.domain_scores(state, table) if known is None else None
            if by_domain is not None:
                if by_domain.parts:
                    # To the other array: where it is the same one, compiled loops work on one node at a time.
                    found = self._scores if totals is self._totals else self._totals
                    looked_from = run.start, run.looked_at
                    self._add_by_domain(compiled, by_domain, step, totals, looked_from, found)
                    totals, kept = found, None
                    continue
                # Without parts all nodes have the same raw score, 0.
                if by_domain.normalizing is Normalizing.STRETCHED:
                    continue
                added = np.full(run.count, 100 * step.weight)
            else:
                added = self._weighted(step, known, state, pod, nodes)
            # The kept totals stay as they are for the next pod.
            if totals is not self._totals and totals is not self._scores:
                np.copyto(self._totals, totals)
                totals, kept = self._totals, None
            if run.count == len(totals) and not run.start:
                totals += added
            else:
                compiled.add_at(totals, nodes.rows, added)
        best: Sequence[int] | IntArray
        if kept is not None:
            best = kept.best
        else:
            best = self._best[: compiled.best_of(totals, run.start, run.looked_at, self._best)]
        return Totals(lambda: totals.take(nodes.rows).astype(np.int64), best)

    def _totals_at(self, run: _Run, pod: Pod, nodes: NodeSelection) -> Totals | None:
        """Return the totals of any nodes that have passed; None if one hasn't."""
        totals = run.totals.take(nodes.rows)
        if not len(totals) or totals.min() < 0:
            return None
        total = totals.astype(np.int64)
        for step, known in run.plan.scores_added:
            if step.name not in run.state.skip_score_plugins:
                total += self._weighted(step, known, run.state, pod, nodes)
        return Totals(total)

    def _weighted(
        self, step: Step, known: Kept | None, state: CycleState, pod: Pod, nodes: NodeSelection
    ) -> IntArray:
        """Return weight × normalised score of these feasible nodes, shape (k,)."""
        if known is not None and not known.score_fails:
            scores = known.scores(state, pod, nodes.table, nodes.rows)
        else:
            scores = self._node_by_node.raw(step, state, pod, nodes)
        if step.normalize_score is not None:
            scores = step.normalized(state, pod, nodes, scores.copy())
        check_range(step.name, scores)
        return scores if step.weight == 1 else scores * step.weight

    def _add_by_domain(
        self,
        compiled: Pass,
        found: DomainScores,
        step: Step,
        totals: FloatArray,
        looked_from: tuple[int, int],
        sums: FloatArray,
    ) -> None:
        """Write the totals of the feasible nodes and their normalised scores, added, to `sums`."""
        raw = self._raw
        for position, part in enumerate(found.parts):
            compiled.gather(part.column.codes, part.values, position > 0, raw)
        is_exact = compiled.add_normalized(
            totals,
            *looked_from,
            raw,
            found.normalizing is Normalizing.STRETCHED,
            float(step.weight),
            sums,
        )
        if not is_exact:
            raise NotTogetherError


def _refuse(
    compiled: Pass, refusals: RefusalCodes, scores: FloatArray, found: FloatArray, found_to_read: FloatArray
) -> FloatArray:
    """Write the scores to `found`, far below 0 where a node is refused. Return them, to be read."""
    for each in refusals:
        if isinstance(each, ByDomain):
            compiled.refuse_domains(scores, each.column.codes, each.values, REFUSED, found)
        else:
            compiled.refuse(scores, each, REFUSED, found)
        # Later refusals read and write one array, which does no harm: the loops go node by node.
        scores = found_to_read
    return scores
