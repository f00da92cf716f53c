"""Placement of a pod in one pass over the columns of the node table, from the plan for its shape.

Most pods are of a shape that has come before: they differ in their requests and in names, and nothing else that
plugins look at. A plan has the plugins' answers for the shape: the nodes they refuse and the scores they give
because of the node objects alone, worked out once by their hooks. What depends on requests and on the pods on
nodes is computed in the pass: who has enough left, the scores of CPU and memory, the best nodes in visiting
order. A plugin whose answers depend on other pods is called for every pod, but with all nodes at once: its
filter before the pass, its score with the nodes that the pass finds feasible.

The amounts of extended resources, such as GPUs, are compared as those of CPU are, unless devices provide them.

A pod is placed in this way only where the outcome is surely that of the hooks. Otherwise the hooks are called,
for example when no node passes, since a plan doesn't hold the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.requests import PodRequests
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.arrays import LARGEST_EXACT, Codes, FloatArray, IntArray
from kschedfw.framework.nodes.read_only import read_only_view
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.results import MAX_NODE_SCORE, ByDomain, DomainScores, Normalizing
from kschedfw.framework.runtime.answers.filtering import Filters
from kschedfw.framework.runtime.answers.plugins import ScorePlugin
from kschedfw.framework.runtime.answers.status_codes import PASS, StatusCodes
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.runtime.plans.kept_totals import KeptTotalsOfPods, PassInput
from kschedfw.framework.runtime.plans.nominated import NominatedRoom
from kschedfw.framework.runtime.plans.pass_in_use import PassInUse
from kschedfw.framework.runtime.plans.passes import Pass
from kschedfw.framework.runtime.plans.plan import (
    LARGEST_TOTAL,
    REFUSED,
    NotPlannedError,
    ShapePlan,
    SmallCodes,
    plan_for,
    planned_plugins,
)
from kschedfw.framework.runtime.plans.turns import PlannedPod, may_take_members_alike

_MOST_PLANS: Final = 512
"""The number of kept plans: at most 4 KiB a node, as in the memo, and next to nothing for plans in which all nodes
are equal."""
_MOST_LATELY: Final = 1024
_MOST_STATUSES: Final = 16_384
"""The number of statuses beyond which they are numbered anew, as in the memo."""


@attrs.frozen(eq=False)
class BestNodes:
    """The result of a pass: the rows with the highest total in visiting order, and the number of feasible nodes.

    `looked_at` is the number of nodes looked at until the search ended.
    """

    rows: Sequence[int] | IntArray
    feasible: int
    looked_at: int


@attrs.frozen(eq=False)
class NoneFeasible:
    """The result of a pass after which no node passes: the statuses of all nodes, in visiting order."""

    refused: NodeCodes


class _Scratch:
    """Arrays by node that are written anew for every pod."""

    def __init__(self, nodes: int) -> None:
        self.totals: FloatArray = np.empty(nodes)
        self.best: IntArray = np.empty(nodes, dtype=np.int64)
        self.raw: FloatArray = np.empty(nodes)
        self.scores: FloatArray = np.empty(nodes)
        # Read-only views, like the arrays of plans: Numba compiles another version for writable arrays.
        self.scores_to_read = read_only_view(self.scores)
        self.totals_to_read = read_only_view(self.totals)


class Planner:
    """The plans of a profile's pods, by shape.

    A shape gets a plan when it comes for the second time with the same node objects. There are no plans if any
    plugin of the profile gives none.
    """

    def __init__(
        self,
        plugins: Mapping[str, AnyPlugin],
        hooks: HookTable,
        filters: Filters,
        scores: Sequence[ScorePlugin],
        handle: Handle,
        meter: Meter | None = None,
    ) -> None:
        names = dict.fromkeys(
            name for hook in ("pre_filter", "filter", "pre_score", "score") for name, _ in hooks[hook]
        )
        own_hooks = {name: hooks.of(name) for name in names}
        self._plugins = planned_plugins([plugins[name] for name in names], own_hooks, filters.plugins, scores)
        self._snapshot = handle.snapshot
        self._nominator = handle.nominator
        self._filters = filters.plugins
        self._codes = StatusCodes()
        self._nominated = NominatedRoom(filters, handle.nominator)
        largest_total = sum(each.weight for each in scores) * MAX_NODE_SCORE
        self.is_possible = largest_total <= LARGEST_TOTAL and all(
            each.may_be_planned for each in self._plugins
        )
        """Whether all plugins that filter or score promise enough, by `plan_part` or by `reads` and `sign`."""
        self._plans: BoundedDict[Hashable, tuple[tuple[int, int], ShapePlan | None]] = BoundedDict(
            _MOST_PLANS
        )
        """By shape, or shape and signatures, with the version of the node objects; None where there can be no plan."""
        self._lately: BoundedDict[Hashable, tuple[int, int]] = BoundedDict(_MOST_LATELY)
        """By shape, and shape with signatures, the version of the node objects that pods met without a plan."""
        self._kept = KeptTotalsOfPods()
        self._pass = PassInUse()
        self._meter = meter
        self._now: Callable[[], float] = _no_time if meter is None else meter.now
        self._scratch = _Scratch(0)

    def best_nodes(
        self, state: CycleState, pod: Pod, start: int, wanted: int
    ) -> BestNodes | NoneFeasible | None:
        """Return the best of the first `wanted` nodes that pass, from row `start` on and round the end.

        Return why no node passes if that is so, and None where hooks must be called, with the state unchanged.
        Otherwise write to the state what later hooks read.
        """

        try:
            plan = self._plan_to_run(pod)
            return None if plan is None else self._run(plan, state, pod, start, wanted)
        except HOOK_FAILURES:  # the caller calls the hooks again, which reports the failure
            return None

    def feasible(self, state: CycleState, pod: Pod, start: int, wanted: int) -> tuple[IntArray, int] | None:
        """Return the rows of the first `wanted` nodes that pass, in visiting order, and the number looked at.

        Return None as `best_nodes` does. Otherwise write to the state what later hooks read; nothing is scored.
        """
        # Plugins write to a state of its own first, so that the cycle's is unchanged where hooks must be
        # called after all.
        own, table = CycleState(), self._snapshot.table
        try:
            plan = self._plan_to_run(pod)
            if plan is None:
                return None
            began = self._now()
            skipped = self._pre_filter(plan, own, pod)
            filtering = self._now()
            refusals = self._refusals(plan, own, pod, skipped)
        except HOOK_FAILURES:  # as in `best_nodes`
            return None
        scratch, compiled = self._scratch, self._pass.for_nodes(len(table))
        scores = _refuse(compiled, refusals, plan.scores, scratch.scores, scratch.scores_to_read)
        totals, asked = scratch.totals, PassInput.of(plan, pod.requests, table)
        feasible, looked_at = asked.totals(compiled, table, scores, start, wanted, totals)
        if not feasible:
            return None
        state.take(plan.written)
        state.take(own)
        state.skip_filter_plugins = skipped
        rows = compiled.feasible_rows(totals, start, looked_at, feasible)
        if self._meter is not None:
            self._meter.planned((began, filtering, self._now()), looked_at, 0, (skipped, frozenset()))
        return rows, looked_at

    def _plan_to_run(self, pod: Pod) -> ShapePlan | None:
        """Return the pod's plan, with everything ready for the pass; None if hooks must be called."""
        requests, table = pod.requests, self._snapshot.table
        count = len(table)
        if pod.shape is None:
            return None
        if not (table.is_exact and _is_exact(requests)):
            return None
        if len(self._scratch.best) != count:
            self._scratch = _Scratch(count)
        plan = self._plan(pod, table)
        return None if plan is None or not _counts_extended(plan, pod, table) else plan

    def planned(self, pod: Pod, others: int) -> PlannedPod | None:
        """Return the pod as planned for all nodes; None where a hook must be called for it.

        The answer holds while up to `others` such pods take places, too.
        """
        requests, table = pod.requests, self._snapshot.table
        if pod.shape is None or not (table.is_exact and _is_exact(requests)):
            return None
        # The sums on a node, too, must be exact, with so many such pods on it.
        least = LARGEST_EXACT - max(table.largest("cpu"), table.largest("memory"))
        if others * max(requests.non_zero.milli_cpu, requests.non_zero.memory) > least:
            return None
        own = CycleState()
        skipped_filters: set[str] = set()
        skipped_scores: set[str] = set()
        try:
            plan = self._plan(pod, table, is_one_of_many=True)
            if plan is None or not plan.fits or not _counts_extended(plan, pod, table):
                return None
            everywhere = self._snapshot.selection
            for each in plan.asked:
                if not (may_take_members_alike(each.plugin) and each.plugin.takes_members_alike(pod)):
                    return None
                if each.is_skipped(each.pre_filter, own, pod, everywhere):
                    skipped_filters.add(each.name)
                elif each.filtering is not None:
                    return None
                if each.is_skipped(each.pre_score, own, pod, everywhere):
                    skipped_scores.add(each.name)
                elif each.scoring is not None:
                    return None
        except HOOK_FAILURES:  # the caller calls the hooks again, which reports the failure
            return None
        return PlannedPod(
            plan, requests, own, plan.skipped_filters | skipped_filters, plan.skipped_scores | skipped_scores
        )

    def _run(
        self, plan: ShapePlan, state: CycleState, pod: Pod, start: int, wanted: int
    ) -> BestNodes | NoneFeasible:
        """Return the result of the pass. Raises what hooks raise, or NotPlannedError."""
        scratch, own = self._scratch, CycleState()
        everything, table, count = self._snapshot.selection, self._snapshot.table, len(scratch.best)
        compiled = self._pass.for_nodes(count)
        now = self._now
        began = now()
        skipped_filters = self._pre_filter(plan, own, pod)
        filtering = now()
        refusals = self._refusals(plan, own, pod, skipped_filters)
        kept = None
        # Kept totals are for all nodes, and for a search that covers every node from row 0.
        if not start and wanted >= count:
            kept = self._kept.of(plan, pod.requests, compiled, table)
        if kept is None:
            scores = _refuse(compiled, refusals, plan.scores, scratch.scores, scratch.scores_to_read)
            totals = scratch.totals
            asked = PassInput.of(plan, pod.requests, table)
            feasible, looked_at = asked.totals(compiled, table, scores, start, wanted, totals)
        # What this pod's plugins refuse is laid over the kept totals, which hold for pods with other terms,
        # too.
        elif refusals:
            _refuse(compiled, refusals, kept.totals_to_read, scratch.totals, scratch.totals_to_read)
            totals, kept = scratch.totals, None
            feasible, looked_at = compiled.passing(totals), count
        else:
            totals, feasible, looked_at = kept.totals, kept.feasible, count
        if not feasible:
            refused = self._first_refusals(plan, own, pod, start, skipped_filters)
            state.take(plan.written)
            state.take(own)
            state.skip_filter_plugins = skipped_filters
            if self._meter is not None:
                self._meter.planned((began, filtering, now()), count, 0, (skipped_filters, frozenset()))
            return NoneFeasible(refused)
        pre_scoring = now()
        skipped_scores = plan.skipped_scores
        scoring = pre_scoring
        # As in kube-scheduler, a single feasible node is taken without scoring.
        if plan.asked and feasible > 1:
            nodes = everything
            if start or feasible != count:
                rows = compiled.feasible_rows(totals, start, looked_at, feasible)
                nodes = NodeSelection(table, rows)
            skipping = [each.name for each in plan.asked if each.is_skipped(each.pre_score, own, pod, nodes)]
            skipped_scores = skipped_scores.union(skipping) if skipping else skipped_scores
            scoring = now()
            for each in plan.asked:
                if each.scoring is None or each.name in skipped_scores:
                    continue
                if (by_domain := each.domain_scores(own, table)) is not None:
                    if not by_domain.parts:
                        continue
                    looked_from = start, looked_at
                    self._add_by_domain(compiled, by_domain, each.scoring, totals, looked_from)
                else:
                    added = each.score(own, pod, nodes)
                    # The kept totals stay as they are for the next pod.
                    if kept is not None:
                        np.copyto(scratch.totals, totals)
                    if nodes is everything:
                        scratch.totals += added
                    else:
                        compiled.add_at(scratch.totals, nodes.rows, added)
                totals, kept = scratch.totals, None
        if kept is None:
            best: Sequence[int] | IntArray = scratch.best[
                : compiled.best_of(totals, start, looked_at, scratch.best)
            ]
        else:
            best = kept.best
        state.take(plan.written)
        state.take(own)
        state.skip_filter_plugins = skipped_filters
        state.skip_score_plugins = skipped_scores
        if self._meter is not None:
            times = began, filtering, pre_scoring, scoring, now()
            scored = feasible if feasible > 1 else 0
            self._meter.planned(
                times if scored else times[:3], looked_at, scored, (skipped_filters, skipped_scores)
            )
        return BestNodes(best, feasible, looked_at)

    def _pre_filter(self, plan: ShapePlan, own: CycleState, pod: Pod) -> frozenset[str]:
        """Call the pre_filters of plugins asked about every pod. Return the plugins that skip."""
        nodes = self._snapshot.selection
        skipped = [each.name for each in plan.asked if each.is_skipped(each.pre_filter, own, pod, nodes)]
        return plan.skipped_filters.union(skipped) if skipped else plan.skipped_filters

    def _refusals(
        self, plan: ShapePlan, own: CycleState, pod: Pod, skipped: frozenset[str]
    ) -> Sequence[ByDomain | SmallCodes]:
        """Return the refusals of plugins asked about every pod, by domain or by node, and those for nominated pods."""
        found: list[ByDomain | SmallCodes] = []
        table = self._snapshot.table
        for each in plan.asked:
            if each.filtering is None or each.name in skipped:
                continue
            if (refused_domains := each.domain_refusals(own, table)) is not None:
                found += refused_domains
            elif (refused := each.refused(own, pod, table)) is not None:
                found.append(refused)
        if not self._nominator.is_empty:
            crowded = self._nominated.refused(plan, own, pod, self._snapshot.selection, skipped)
            if crowded is not None:
                found.append(crowded)
        return found

    def _first_refusals(
        self, plan: ShapePlan, own: CycleState, pod: Pod, start: int, skipped: frozenset[str]
    ) -> NodeCodes:
        """Return the first refusal of each node in profile order, where every node is refused.

        Completes the state with what the pre_filters of computed plugins write, for preemption.
        """
        # A refusal on account of nominated pods comes before those without them, which only the hooks tell.
        if not self._nominator.is_empty:
            raise NotPlannedError
        table = self._snapshot.table
        if len(self._codes) > _MOST_STATUSES:
            self._codes = StatusCodes()
        asked = {each.name: each for each in (*plan.asked, *plan.computed)}
        for each in plan.computed:
            each.is_skipped(each.pre_filter, own, pod, self._snapshot.selection)
        codes: Codes | None = None
        for filtering in self._filters:
            name = filtering.name
            if name in skipped:
                continue
            verdicts = asked[name].verdicts(own, pod, table) if name in asked else plan.verdicts.get(name)
            if verdicts is None:
                continue
            its = self._codes.translation(verdicts.statuses, name).codes.take(verdicts.codes)
            codes = its if codes is None else np.where(codes == PASS, its, codes)
        # The pass and the hooks agree. If a plugin breaks its promise, what the hooks say counts.
        if codes is None or not codes.all():
            raise NotPlannedError
        nodes = NodeSelection.whole(table, start) if start else self._snapshot.selection
        return NodeCodes(nodes, table.take(codes, nodes.rows), tuple(self._codes.statuses), count=len(codes))

    def _add_by_domain(
        self,
        compiled: Pass,
        found: DomainScores,
        scoring: ScorePlugin,
        totals: FloatArray,
        looked_from: tuple[int, int],
    ) -> None:
        """Write the totals of the feasible nodes and their normalised scores to the scratch's totals."""
        raw = self._scratch.raw
        for position, part in enumerate(found.parts):
            compiled.gather(part.codes, part.values, position > 0, raw)
        is_exact = compiled.add_normalized(
            totals,
            *looked_from,
            raw,
            found.normalizing is Normalizing.STRETCHED,
            float(scoring.weight),
            self._scratch.totals,
        )
        if not is_exact:
            raise NotPlannedError

    def _plan(self, pod: Pod, table: NodeTable, *, is_one_of_many: bool = False) -> ShapePlan | None:
        # Any change of a node object voids all plans: what a plugin reads of it isn't known here. Pods don't
        # change it.
        shape, version = pod.shape, (table.layout, table.node_changes.version)
        known = self._plans.get(shape)
        if known is None or known[0] != version:
            if not (is_one_of_many or self._comes_again(shape, version)):
                return None
            plan = plan_for(pod, self._snapshot.selection, self._plugins)
            known = self._plans[shape] = version, plan
        _, plan = known
        if plan is None or not plan.signed:
            return plan
        signatures = shape, *[each.sign(pod) for each in plan.signed]
        known = self._plans.get(signatures)
        if known is not None and known[0] == version:
            return known[1]
        # A plugin that can't sign the pod promises nothing of others like it.
        if None in signatures:
            return None
        # Signatures that never come again, as where every pod names its own node, aren't worth a plan.
        if not (is_one_of_many or self._comes_again(signatures, version)):
            return plan.asking_signed
        refined = plan_for(pod, self._snapshot.selection, plan.signed, plan)
        self._plans[signatures] = version, refined
        return refined

    def _comes_again(self, key: Hashable, version: tuple[int, int]) -> bool:
        """Note the key. Return whether it has come lately, with the same node objects."""
        comes_again = self._lately.get(key) == version
        self._lately[key] = version
        return comes_again


def _refuse(
    compiled: Pass,
    refusals: Sequence[ByDomain | SmallCodes],
    scores: FloatArray,
    found: FloatArray,
    found_to_read: FloatArray,
) -> FloatArray:
    """Write the scores to `found`, far below 0 where a node is refused. Return them, to be read."""
    for each in refusals:
        if isinstance(each, ByDomain):
            compiled.refuse_domains(scores, each.codes, each.values, REFUSED, found)
        else:
            compiled.refuse(scores, each, REFUSED, found)
        # Later refusals read and write one array, which does no harm: the loops go node by node.
        scores = found_to_read
    return scores


def _counts_extended(plan: ShapePlan, pod: Pod, table: NodeTable) -> bool:
    """Return whether the pass can count the pod's extended resources: nodes have them, and no devices."""
    requests = pod.requests
    wanted = requests.demand.scalar_resources
    if not (wanted or requests.amounts.scalar_resources):
        return True
    # Plugins that score resources don't sign a pod whose resources devices may provide.
    return wanted.keys() <= table.columns.keys() and None not in [each.sign(pod) for each in plan.computed]


def _is_exact(requests: PodRequests) -> bool:
    """Return whether all amounts of the pod that the pass computes with are exact in float64."""
    scored, amounts = requests.scored, requests.amounts
    return (
        0 <= scored.milli_cpu <= LARGEST_EXACT
        and 0 <= scored.memory <= LARGEST_EXACT
        and 0 <= amounts.milli_cpu <= LARGEST_EXACT
        and 0 <= amounts.memory <= LARGEST_EXACT
    )


def _no_time() -> float:
    return 0.0
