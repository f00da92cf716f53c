"""The hooks from pre_filter to score of a profile: by the plan of the pod, or node by node (`Evaluation`).

Semantics: kube-scheduler v1.36 `RunPreFilterPlugins` … `RunScorePlugins`.
"""

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
from kschedfw.framework.nodes.arrays import LARGEST_EXACT, IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import FilterOutcome, NodeScores, Totals
from kschedfw.framework.parts import Parts
from kschedfw.framework.plugin import TRIAL_HOOKS, AnyPlugin, takes_members_alike
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import MAX_NODE_SCORE, PreFilterResult
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.engine.errors import NotTogetherError, ScoreError
from kschedfw.framework.runtime.engine.kept_totals import wanted_amounts
from kschedfw.framework.runtime.engine.node_by_node import NodeByNode
from kschedfw.framework.runtime.engine.plan import LARGEST_TOTAL, KeptT, Plan, PlannedPod
from kschedfw.framework.runtime.engine.plans import Plans
from kschedfw.framework.runtime.engine.pre_hooks import joined, run_pre_filters, run_pre_scores
from kschedfw.framework.runtime.engine.steps import PluginMemo, steps_of
from kschedfw.framework.runtime.engine.together import Together
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.runtime.measuring import Meter, measured
from kschedfw.framework.status import Code, Status

_SUCCESS = Status.success()
_ASKED_AGAIN: Final = 64
"""The answers of learned plugins are compared with their own for one in so many pods."""
_FEWEST_TOGETHER: Final = 8
"""Up to this number of nodes of a larger table, filters are called node by node: arrays cost more."""
_NONE: frozenset[str] = frozenset()


class SearchHooks:
    """The part of a `Framework` that finds the nodes that fit a pod, and scores them."""

    profile: Profile
    parts: Parts
    handle: Handle
    plugins: Mapping[str, AnyPlugin]
    _hooks: HookTable
    _meter: Meter | None

    def _make_plans(self, plain: HookTable, evaluation: Evaluation) -> None:
        """Make plans of the hooks, which aren't measured in `plain`."""
        profile, handle, meter = self.profile, self.handle, self._meter
        plugins, hooks = self.plugins, self._hooks
        if evaluation is Evaluation.SCALAR:
            batch_forms = "filter_batch", "score_batch"
            plain, hooks = plain.without(*batch_forms), hooks.without(*batch_forms)
        asked = dict.fromkeys(name for hook in ("filter", "score") for name, _ in hooks[hook])
        self._counts = counts = {name: PluginMemo.of(plugins[name]) for name in asked}
        self._node_by_node = NodeByNode(
            steps_of(plugins, profile, hooks, counts), hooks, handle, meter, run_all=profile.run_all_filters
        )
        largest_total = sum(each.weight for each in self._node_by_node.scoring) * MAX_NODE_SCORE
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
        self._plans = Plans(
            tuple(steps.values()),
            tuple(steps[name] for name, _ in timed["filter"]),
            tuple(steps[name] for name, _ in timed["score"]),
            handle.parallelizer,
            hooks.revision,
            keeps=self._is_planned,
        )
        self._snapshot = handle.snapshot
        in_trials = dict.fromkeys(name for hook in TRIAL_HOOKS for name, _ in self._hooks[hook])
        self._in_trials = [plugins[name] for name in in_trials]
        self._pre_filters, self._pre_scores = hooks["pre_filter"], hooks["pre_score"]
        self._together = Together(
            self._node_by_node, handle, binds_in_background=self.parts.binds_in_background
        )
        self.decided_together = 0
        """The number of times that nodes were filtered all together, by a plan, and not one after the other."""

    # The steps of a cycle

    def run_pre_filter_plugins(
        self, state: CycleState, pod: Pod
    ) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
        """Run all pre_filters.

        Return the remaining nodes (None = all), the status, and the plugins that excluded nodes.

        Sets `state.skip_filter_plugins`. UNSCHEDULABLE_AND_UNRESOLVABLE ends the run at once, UNSCHEDULABLE at
        the end, so that the state is complete for preemption.
        """
        meter = self._meter
        started = 0.0 if meter is None else meter.now()
        plan = self._begin_cycle(state, pod)
        answer = run_pre_filters(plan.pre_filter, state, pod, self._snapshot.node_infos)
        if meter is not None:
            plan.tell(meter, MeasuredPoint.PRE_FILTER, _NONE, 1)
            meter.ended(MeasuredPoint.PRE_FILTER, answer[1].code, started)
        return answer

    def filter_nodes(
        self, state: CycleState, pod: Pod, nodes: NodeSelection, wanted: int | None = None
    ) -> FilterOutcome:
        """Filter nodes of the snapshot, in order, until one more than `wanted` have passed (None: all).

        Earlier answers are reused where they hold, and batch forms called where plugins have them.
        """
        if wanted is None:
            wanted = len(nodes)
        plan, meter = state.plan, self._meter
        if not isinstance(plan, Plan):
            plan = self._begin_cycle(state, pod)
        # The snapshot may have changed since the pre_filters ran, if that is how a framework is used.
        if plan.prepared_for is not self._snapshot.table.state_of_nodes:
            self._prepare(plan, pod)
        started = 0.0 if meter is None else meter.now()
        # A few nodes are faster asked about one by one: arrays cost more.
        is_few = nodes.start is None and len(nodes) <= _FEWEST_TOGETHER and len(nodes) < len(nodes.table)
        if self._is_planned and not is_few:
            try:
                found = self._together.find(plan, state, pod, nodes, wanted)
            except HOOK_FAILURES as error:
                # Asked about in order, the nodes tell what failed, and whether that is to be seen.
                failures = error.failures if isinstance(error, NotTogetherError) else {}
                found = self._node_by_node.search(state, pod, self._plans.codes, nodes, wanted, failures)
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
            found = self._node_by_node.search(state, pod, self._plans.codes, nodes, wanted)
        if meter is not None:
            meter.ended(MeasuredPoint.FILTER, Code.SUCCESS if found.error is None else Code.ERROR, started)
        return found

    def _ask_again(self, plan: Plan, state: CycleState, pod: Pod) -> None:
        """Compare a kept answer of each learned plugin with the hook's own: it may not be as pure as it says."""
        table = self._snapshot.table
        for each in plan.kept.values():
            if each.step.is_learned:
                each.ask_again(state, pod, table, self.decided_together // _ASKED_AGAIN % len(table))

    def run_pre_score_plugins(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Prepare scoring of the feasible nodes. Sets `state.skip_score_plugins`."""
        plan, meter = state.plan, self._meter
        if not isinstance(plan, Plan):
            plan = self._begin_cycle(state, pod)
        started = 0.0 if meter is None else meter.now()
        status = run_pre_scores(plan.pre_score, state, pod, nodes)
        if plan.balanced and not pod.requests.amounts.milli_cpu and not pod.requests.amounts.memory:
            state.skip_score_plugins = joined(state.skip_score_plugins, (plan.balanced,))
        if meter is not None:
            plan.tell(meter, MeasuredPoint.PRE_SCORE, state.skip_score_plugins, 1)
            meter.ended(MeasuredPoint.PRE_SCORE, status.code, started)
        return status

    def total_scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[Totals | None, Status]:
        """Return only the totals of `run_score_plugins`: much faster where plugins' answers are kept."""
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
            # Asking node by node names the first failing plugin in the order of the profile.
            answer = self._node_by_node.totals(state, pod, self._of_table(nodes))
            if answer[0] is not None and isinstance(failure, ScoreError):
                answer = None, failure.status
        elif meter is not None and isinstance(plan := state.plan, Plan):
            plan.tell(meter, MeasuredPoint.SCORE, state.skip_score_plugins, len(nodes))
        if meter is not None:
            meter.ended(MeasuredPoint.SCORE, answer[1].code, started)
        return answer

    @measured(MeasuredPoint.SCORE)
    def run_score_plugins(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        """Score, normalise and weigh the nodes. The scores are None unless the status is success."""
        return self._node_by_node.scores(state, pod, self._of_table(nodes))

    def rescore(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[Mapping[str, int] | None, Status]:
        """Return a node's score by each plugin, before it is normalised; call `run_pre_score_plugins` before.

        None, with an ERROR, if a plugin fails (kube-scheduler v1.37's RunRawScorePlugins).
        """
        try:
            raw = self._node_by_node.raw_scores(state, pod, self._of_table([node_info]))
        except ScoreError as error:
            return None, error.status
        return {name: int(scores[0]) for name, scores in raw.items()}, _SUCCESS

    def normalize_scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], raw: Mapping[str, IntArray]
    ) -> tuple[Totals | None, Status]:
        """Return the totals of n nodes from their raw scores by plugin, each of shape (n,); None if a plugin fails."""
        try:
            scores = self._node_by_node.normalized_scores(state, pod, self._of_table(nodes), raw)
        except ScoreError as error:
            return None, error.status
        return Totals(scores.totals), _SUCCESS

    def _of_table(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Return the nodes as a selection of the snapshot's table, if they are in it."""
        selection = NodeSelection.of(self._snapshot.table, nodes)
        return nodes if selection is None else selection

    def _begin_cycle(self, state: CycleState, pod: Pod) -> Plan:
        """Look up the plan for pods like this one, and write it to the state."""
        # In a sampled cycle single plugins are timed, so they are asked what could be computed.
        plan = self._plans.of(pod, self._snapshot.table, computes=not state.record_plugin_metrics)
        if plan.prepared_for is not self._snapshot.table.state_of_nodes:
            self._prepare(plan, pod)
        state.plan = plan
        return plan

    def _prepare(self, plan: Plan, pod: Pod) -> None:
        plan.prepare(pod, self._snapshot, self._pre_filters, self._pre_scores)

    # Questions about single nodes

    def run_pre_filter_add_pod(
        self, state: CycleState, pod: Pod, to_add: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Update the state as if `to_add` were on the node, by all plugins that aren't skipped."""
        return self._node_by_node.add_pod(state, pod, to_add, node_info)

    def run_pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, to_remove: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Update the state as if `to_remove` were gone from the node, by all plugins that aren't skipped."""
        return self._node_by_node.remove_pod(state, pod, to_remove, node_info)

    def run_filter_plugins(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return success, or the first refusal in profile order."""
        status = self._node_by_node.run(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return status

    def run_each_filter_plugin(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Mapping[str, Status]:
        """Return the verdict of each filter that isn't skipped, even after a refusal; for explanations."""
        statuses = self._node_by_node.run_each(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return statuses

    def refused_by_each_filter(
        self, state: CycleState, pod: Pod, nodes: NodeSelection
    ) -> Mapping[str, NodeCodes]:
        """Return the nodes that each filter refuses, for explanations; see `NodeByNode.refused_by_each`."""
        return self._node_by_node.refused_by_each(state, pod, self._plans.codes, nodes)

    def add_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[CycleState, NodeInfo] | None:
        """Return copies of both, with the node's nominated pods of equal or higher priority added.

        Return None if there are no such pods. Return None, too, if a plugin's pre_filter_add_pod fails, which
        refuses the node in any case.
        """
        crowded = self._node_by_node.add_nominated_pods(state, pod, node_info)
        return None if isinstance(crowded, Status) else crowded

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, *, other_pods_only: bool = False
    ) -> Status:
        """Run the filters with and without the node's nominated pods of equal or higher priority; both must pass.

        With `other_pods_only`, call only the filters that read the pods of a node, because the node object has
        passed already.
        """
        filters = (
            self._node_by_node.reading_pods(state) if other_pods_only else self._node_by_node.active(state)
        )
        status = self._node_by_node.run_with_nominated_pods(filters, state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return status

    def wanted_room(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[int, int, int, int] | None:
        """Return the CPU, memory, ephemeral storage and number of pods that must be free, if nothing else decides.

        Return None where the filters must be asked, since another one refuses the node or may read its pods.
        """
        decides = self._node_by_node.only_room_decides(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return wanted_amounts(pod.requests) if decides else None

    # Kept answers

    def kept_column(
        self, state: CycleState, pod: Pod, key: Hashable, make: Callable[[], KeptT]
    ) -> KeptT | None:
        """Return a column of values derived from the filters' answers to pods like this one, `key`, and single nodes.

        The column was kept from earlier pods, or is made by `make`; the caller brings it up to date. Return
        None where an answer may depend on anything else, or isn't kept.
        """
        plan = state.plan
        if not isinstance(plan, Plan):
            plan = self._begin_cycle(state, pod)
        if not self._is_planned:
            return None
        plan.base(state, pod, self._snapshot.table)
        if not plan.is_local(state.skip_filter_plugins, self._node_by_node.pod_followers):
            return None
        return plan.column((key, pod.requests), make)

    def memo_report(self) -> Mapping[str, PluginMemo]:
        """Return the counts of questions and kept answers, by plugin that filters or scores."""
        return self._counts

    def planned_member(self, pod: Pod, members: int) -> PlannedPod | None:
        """Return the pod as planned for all nodes of trials of its group, which has so many members.

        Return None where hooks must be called for it, with each member that gets a place. A recorder is told of none
        of the hooks that aren't called: a call for every member on every placement takes minutes in a large cluster.
        """
        if not self.handle.nominator.is_empty:
            return None
        if not all(takes_members_alike(plugin, pod) for plugin in self._in_trials):
            return None
        requests, table = pod.requests, self._snapshot.table
        # The sums on a node, too, must be exact, with so many such pods on it.
        least = LARGEST_EXACT - max(table.largest("cpu"), table.largest("memory"))
        if (
            not self._is_planned
            or members * max(requests.non_zero.milli_cpu, requests.non_zero.memory) > least
        ):
            return None
        plan = self._plans.of(pod, table, is_one_of_many=True)
        if plan.prepared_for is not table.state_of_nodes:
            self._prepare(plan, pod)
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
            return self.planned_member(pod, members)
        if not plan.fits or not run_pre_scores(plan.pre_score, state, pod, nodes).is_success:
            return None
        skipped = state.skip_filter_plugins
        filters = (*plan.filters_asked, *(each.step for each in plan.filters_kept))
        if not all(each.name in skipped for each in filters):
            return None
        if not all(each.name in state.skip_score_plugins for each, _ in plan.scores_added):
            return None
        return PlannedPod(plan, base, requests, state, skipped, state.skip_score_plugins)
