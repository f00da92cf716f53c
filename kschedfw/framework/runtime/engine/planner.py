"""The steps of a scheduling cycle from pre_filter to score: by the plan of the pod, or in order (`Evaluation`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.errors import HOOK_FAILURES, ProfileError
from kschedfw.framework.handle import Handle
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.nodes.arrays import LARGEST_EXACT
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import MAX_NODE_SCORE, PreFilterResult
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.engine.errors import NotTogetherError, ScoreError
from kschedfw.framework.runtime.engine.node_by_node import NodeByNode
from kschedfw.framework.runtime.engine.outcome import FilterOutcome
from kschedfw.framework.runtime.engine.plan import LARGEST_TOTAL, PLAN, KeptT, Plan
from kschedfw.framework.runtime.engine.plans import Plans
from kschedfw.framework.runtime.engine.pre_hooks import joined, run_pre_filters, run_pre_scores
from kschedfw.framework.runtime.engine.steps import PluginMemo, steps_of
from kschedfw.framework.runtime.engine.together import Together
from kschedfw.framework.runtime.engine.totals import NodeScores, Totals
from kschedfw.framework.runtime.engine.turns import PlannedPod, takes_members_alike
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.status import Code, Status

_SUCCESS = Status.success()
_ASKED_AGAIN: Final = 64
"""The answers of learned plugins are compared with their own for one in so many pods."""
_FEWEST_TOGETHER: Final = 8
"""Up to this number of nodes of a larger table, filters are called node by node: arrays cost more."""
_NONE: frozenset[str] = frozenset()


class Planner:
    """Decides on nodes with the filters and scores of one profile."""

    def __init__(
        self,
        plain: HookTable,
        plugins: Mapping[str, AnyPlugin],
        profile: Profile,
        handle: Handle,
        meter: Meter | None,
        evaluation: Evaluation,
    ) -> None:
        """Make a planner with these hooks, which a meter measures."""
        if evaluation is Evaluation.SCALAR:
            plain = plain.without("filter_batch", "score_batch")
        hooks = plain if meter is None else meter.counted(plain)
        asked = dict.fromkeys(name for hook in ("filter", "score") for name, _ in hooks[hook])
        self.counts = counts = {name: PluginMemo.of(plugins[name]) for name in asked}
        self.node_by_node = NodeByNode(
            steps_of(plugins, profile, hooks, counts), hooks, handle, meter, run_all=profile.run_all_filters
        )
        self._snapshot = handle.snapshot
        self._pre_filters, self._pre_scores = hooks["pre_filter"], hooks["pre_score"]
        largest_total = sum(each.weight for each in self.node_by_node.scoring) * MAX_NODE_SCORE
        # kube-scheduler checks this when a profile is made, too: later no sum of weighted scores is checked again.
        if largest_total > np.iinfo(np.int64).max:
            raise ProfileError(
                f"profile {profile.scheduler_name!r}: total score of Score plugins could overflow"
            )
        self._is_planned = (
            evaluation is Evaluation.MEMO and not profile.run_all_filters and largest_total <= LARGEST_TOTAL
        )
        # The plan counts itself what it asks of all nodes together.
        timed = plain if meter is None else meter.timed(plain)
        steps = steps_of(plugins, profile, timed, counts)
        together = NodeByNode(steps, timed, handle, meter, run_all=False)
        self._plans = Plans(
            tuple(steps.values()),
            together.filters,
            together.scoring,
            handle.parallelizer,
            hooks.revision,
            keeps=self._is_planned,
        )
        self._together = Together(self.node_by_node, together, handle)
        self._meter = meter
        self.decided_together = 0

    # The steps of a cycle

    def pre_filter(
        self, state: CycleState, pod: Pod
    ) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
        """Run the pre_filters; see `Framework.run_pre_filter_plugins`."""
        meter = self._meter
        started = 0.0 if meter is None else meter.now()
        plan = self._begin_cycle(state, pod)
        answer = run_pre_filters(plan.pre_filter, state, pod, self._snapshot.node_infos)
        if meter is not None:
            plan.tell(meter, MeasuredPoint.PRE_FILTER, _NONE, 1)
            meter.ended(MeasuredPoint.PRE_FILTER, answer[1].code, started)
        return answer

    def filter(self, state: CycleState, pod: Pod, nodes: NodeSelection, wanted: int) -> FilterOutcome:
        """Filter the nodes, in order, until one more than `wanted` have passed."""
        plan, meter = state.find(PLAN) or self._begin_cycle(state, pod), self._meter
        # The snapshot may have changed since the pre_filters ran, if that is how a framework is used.
        plan.prepare(pod, self._snapshot, self._pre_filters, self._pre_scores)
        started = 0.0 if meter is None else meter.now()
        if self._is_planned and not _is_few(nodes):
            try:
                found = self._together.find(plan, state, pod, nodes, wanted)
            except HOOK_FAILURES as error:
                # Asked about in order, the nodes tell what failed, and whether that is to be seen.
                failures = error.failures if isinstance(error, NotTogetherError) else {}
                found = self.node_by_node.search(state, pod, self._plans.codes, nodes, wanted, failures)
            else:
                self.decided_together += 1
                if not self.decided_together % _ASKED_AGAIN:
                    self._ask_again(plan, state, pod)
                if meter is not None:
                    # Hooks that are called node by node count these calls themselves.
                    others = state.skip_filter_plugins
                    if self._together.asked_last:
                        others = joined(others, self._together.asked_last)
                    plan.tell(meter, MeasuredPoint.FILTER, others, found.processed)
        else:
            found = self.node_by_node.search(state, pod, self._plans.codes, nodes, wanted)
        if meter is not None:
            meter.ended(MeasuredPoint.FILTER, Code.SUCCESS if found.error is None else Code.ERROR, started)
        return found

    def _ask_again(self, plan: Plan, state: CycleState, pod: Pod) -> None:
        """Compare a kept answer of each learned plugin with the hook's own: it may not be as pure as it says."""
        table = self._snapshot.table
        for each in plan.kept.values():
            if each.step.is_learned:
                each.ask_again(state, pod, table, self.decided_together // _ASKED_AGAIN % len(table))

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Run the pre_scores; see `Framework.run_pre_score_plugins`."""
        plan, meter = state.find(PLAN) or self._begin_cycle(state, pod), self._meter
        started = 0.0 if meter is None else meter.now()
        status = run_pre_scores(plan.pre_score, state, pod, nodes)
        if plan.balanced and not pod.requests.amounts.milli_cpu and not pod.requests.amounts.memory:
            state.skip_score_plugins = joined(state.skip_score_plugins, (plan.balanced,))
        if meter is not None:
            plan.tell(meter, MeasuredPoint.PRE_SCORE, state.skip_score_plugins, 1)
            meter.ended(MeasuredPoint.PRE_SCORE, status.code, started)
        return status

    def totals(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> tuple[Totals | None, Status]:
        """Return the total scores of the nodes; None with an ERROR if a plugin fails."""
        meter = self._meter
        started = 0.0 if meter is None else meter.now()
        answer: tuple[Totals | None, Status] = None, _SUCCESS
        failure: BaseException | None = None
        if self._is_planned and isinstance(nodes, NodeSelection):
            try:
                answer = self._together.totals(state, pod, nodes), _SUCCESS
            except HOOK_FAILURES as error:
                failure = error
        if answer[0] is None:
            # Where several plugins fail, the first of them in the order of the profile is named.
            answer = self.node_by_node.totals(state, pod, self._of_table(nodes))
            if answer[0] is not None and isinstance(failure, ScoreError):
                answer = None, failure.status
        elif meter is not None:
            state.read(PLAN).tell(meter, MeasuredPoint.SCORE, state.skip_score_plugins, len(nodes))
        if meter is not None:
            meter.ended(MeasuredPoint.SCORE, answer[1].code, started)
        return answer

    def scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        """Return the scores of the nodes by each plugin; None with an ERROR if a plugin fails."""
        meter = self._meter
        started = 0.0 if meter is None else meter.now()
        answer = self.node_by_node.scores(state, pod, self._of_table(nodes))
        if meter is not None:
            meter.ended(MeasuredPoint.SCORE, answer[1].code, started)
        return answer

    def _of_table(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Return the nodes as a selection of the snapshot's table, if they are in it."""
        selection = NodeSelection.of(self._snapshot.table, nodes)
        return nodes if selection is None else selection

    def _begin_cycle(self, state: CycleState, pod: Pod) -> Plan:
        """Look up the plan for pods like this one, and write it to the state."""
        # In a sampled cycle single plugins are timed, so they are asked what could be computed.
        plan = self._plans.of(pod, self._snapshot.table, computes=not state.record_plugin_metrics)
        plan.prepare(pod, self._snapshot, self._pre_filters, self._pre_scores)
        state.write(PLAN, plan)
        return plan

    # Questions of others

    def refused_by_each(self, state: CycleState, pod: Pod, nodes: NodeSelection) -> Mapping[str, NodeCodes]:
        """Return the nodes that each filter refuses; see `NodeByNode.refused_by_each`."""
        return self.node_by_node.refused_by_each(state, pod, self._plans.codes, nodes)

    def kept_column(
        self, state: CycleState, pod: Pod, key: Hashable, make: Callable[[], KeptT]
    ) -> KeptT | None:
        """Return a column that is kept for pods like this one; see `Framework.kept_column`."""
        plan = state.find(PLAN) or self._begin_cycle(state, pod)
        if not self._is_planned:
            return None
        plan.base(state, pod, self._snapshot.table)
        if not plan.is_local(state.skip_filter_plugins, self.node_by_node.pod_followers):
            return None
        return plan.column((key, pod.requests), make)

    def planned_member(self, pod: Pod, others: int) -> PlannedPod | None:
        """Return the pod as planned for all nodes; None where a hook must be called for it.

        The answer holds while up to `others` such pods take places, too.
        """
        requests, table = pod.requests, self._snapshot.table
        # The sums on a node, too, must be exact, with so many such pods on it.
        least = LARGEST_EXACT - max(table.largest("cpu"), table.largest("memory"))
        if (
            not self._is_planned
            or others * max(requests.non_zero.milli_cpu, requests.non_zero.memory) > least
        ):
            return None
        plan = self._plans.of(pod, table, is_one_of_many=True)
        plan.prepare(pod, self._snapshot, self._pre_filters, self._pre_scores)
        state, nodes = CycleState(), self._snapshot.selection
        for each in plan.steps:
            if each.name in plan.kept or each.name in plan.computed:
                continue
            if not takes_members_alike(each.plugin, pod):
                return None
        result, status, _ = run_pre_filters(plan.pre_filter, state, pod, nodes)
        if result is not None or not status.is_success:
            return None
        try:
            base = plan.base(state, pod, table)
        except HOOK_FAILURES:
            return None
        if self._plans.are_outdated:
            # More is known now of what hooks read, by which the members may have to be told apart.
            return self.planned_member(pod, others)
        if not base.fits or not run_pre_scores(plan.pre_score, state, pod, nodes).is_success:
            return None
        skipped = state.skip_filter_plugins
        filters = (*plan.filters_asked, *(each.step for each in plan.filters_kept))
        if not all(each.name in skipped for each in filters):
            return None
        if not all(each.name in state.skip_score_plugins for each, _ in plan.scores_added):
            return None
        return PlannedPod(base, requests, state, skipped, state.skip_score_plugins)


def _is_few(nodes: NodeSelection) -> bool:
    """Return whether it is faster to ask about these nodes one by one."""
    return nodes.start is None and len(nodes) <= _FEWEST_TOGETHER and len(nodes) < len(nodes.table)
