"""Records the steps of a decision, and makes an explanation from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Protocol, TypeAlias, runtime_checkable

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroup, group_key
from kschedfw.api.records import define
from kschedfw.explain.asking import ask_all_filters
from kschedfw.explain.explanation import Explanation, Result
from kschedfw.explain.groups import GroupStage, GroupStep
from kschedfw.explain.steps import (
    Beyond,
    FilterStep,
    PreemptionCandidate,
    PreemptionStep,
    PreFilterStep,
    Refusals,
    ScoreStep,
    Victim,
)
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError, NodeToStatus, NoNodesAvailableError
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import FilterOutcome, NodeScores, Totals
from kschedfw.framework.preemption import PREEMPTION_PLAN, Candidate, PreemptionPlan
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler.batching import Hint
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.failure import REASON_UNSCHEDULABLE

ScoreNodes: TypeAlias = Callable[[Framework, CycleState, Pod, Sequence[NodeInfo]], NodeScores]


@runtime_checkable
class _Planning(Protocol):
    """A post_filter plugin that can make its plan without carrying it out, as DefaultPreemption can."""

    def plan(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> PreemptionPlan: ...


@runtime_checkable
class _Foretelling(Protocol):
    """A post_filter plugin that can give its answer without acting on it, as DynamicResources can."""

    def post_filter_status(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> Status: ...


class ProfileOrder:
    """The plugins of a framework in the order of its profile; cached, since pods have few different sets of them."""

    def __init__(self, framework: Framework) -> None:
        plugins, filters = tuple(framework.plugins), framework.plugins_at(ExtensionPoint.FILTER)

        @cache
        def of(names: frozenset[str]) -> tuple[str, ...]:
            return tuple(name for name in plugins if name in names)

        @cache
        def filters_but(skipped: frozenset[str]) -> tuple[str, ...]:
            return tuple(name for name in filters if name not in skipped)

        self.of, self.filters_but = of, filters_but


@define(eq=False)
class DecisionRecord:
    """The steps of one decision on a pod; it observes the scheduler that decides.

    It keeps references to the scheduler's data, and computes everything in `explanation`, except for the scores by
    plugin, of which the scheduler only has the sums.

    `searched` are the nodes of the last search, `found` is its outcome. `feasible` and `diagnosis` are None if a plugin
    or an extender failed.
    """

    framework: Framework
    state: CycleState
    pod: Pod
    order: ProfileOrder
    attempt: int = 1
    host: str | None = None
    error: Exception | None = None
    narrowing: frozenset[str] = frozenset()
    candidates: NodeSelection | None = None
    """The nodes to filter, in visiting order. None if only the nominated or hinted node was filtered."""
    start: int = 0
    wanted: int = 0
    batch_of: str = ""
    """The key of the pod whose search was reused."""
    searched: NodeSelection | None = None
    found: FilterOutcome | None = None
    feasible: NodeSelection | None = None
    diagnosis: Diagnosis | None = None
    scores: NodeScores | None = None
    totals: IntArray | None = None
    plan: PreemptionPlan | None = None
    is_decision_only: bool = False
    """True if only the decision is asked for, and the pod isn't scheduled."""
    beyond: Beyond | None = None
    scores_beyond: ScoreStep | None = None

    def node_candidates(self, nodes: NodeSelection, start: int, narrowing: frozenset[str]) -> None:
        self.candidates, self.start, self.narrowing = nodes, start, narrowing
        # The hinted node didn't fit, so this search isn't that of the batch.
        self.batch_of = ""

    def node_hinted(self, hint: Hint) -> None:
        self.batch_of = hint.batch_of

    def nodes_filtered(self, nodes: NodeSelection, wanted: int, outcome: FilterOutcome) -> None:
        self.searched, self.wanted, self.found = nodes, wanted, outcome

    def nodes_found(self, feasible: NodeSelection, diagnosis: Diagnosis) -> None:
        self.feasible, self.diagnosis = feasible, diagnosis

    def nodes_scored(self, nodes: Sequence[NodeInfo], totals: Totals) -> None:
        # A copy: the totals are valid until the next pod is scored.
        self.totals = totals.values.copy()
        self.scores, _ = self.framework.run_score_plugins(self.state, self.pod, nodes)

    def explanation(self) -> Explanation:
        """The explanation of the decision. To be called after the attempt and before the next one begins."""
        if PREEMPTION_PLAN in self.state:
            self.plan = self.state.read(PREEMPTION_PLAN)
        result, message = self._result()
        return Explanation(
            pod=self.pod.key,
            profile=self.framework.profile.scheduler_name,
            result=result,
            nodes=self.framework.handle.snapshot.table.names,
            attempt=self.attempt,
            node=self.host,
            nominated=self._nominated(),
            message=message,
            pre_filter=self._pre_filter(),
            filter=self._filter(),
            score=self._score(),
            preemption=self._preemption(),
            beyond=self.beyond,
        )

    def plan_preemption(self, error: FitError) -> None:
        """Record the answer of post_filter, from plugins that can give it without acting on it."""
        reasons: list[str] = []
        for name in self.framework.plugins_at(ExtensionPoint.POST_FILTER):
            status = self._foretold(self.framework.plugins[name], error.diagnosis.node_to_status)
            # As in post_filter: the first plugin with another answer has the last word.
            if status.code is not Code.UNSCHEDULABLE:
                error.diagnosis.post_filter_message = status.message
                return
            reasons += status.reasons
        error.diagnosis.post_filter_message = Status.unschedulable(*reasons).message

    def _foretold(self, plugin: object, node_to_status: NodeToStatus) -> Status:
        if isinstance(plugin, _Foretelling):
            return plugin.post_filter_status(self.state, self.pod, node_to_status)
        if isinstance(plugin, _Planning):
            self.plan = plugin.plan(self.state, self.pod, node_to_status)
            return self.plan.status
        # A plugin that can only act isn't asked.
        return Status.unschedulable()

    def go_beyond(self, score_nodes: ScoreNodes) -> None:
        """Call every filter for every node, and the score plugins even for a single feasible node.

        If pre_filter rejected the pod, filters can't be called: it hasn't prepared what they need.
        """
        if not self._may_ask_filters():
            return
        # A plugin may write into the state, and the decision isn't over yet: so this is a copy.
        state = self.state.clone()
        self.beyond = ask_all_filters(self.framework, state, self.pod)
        if self.host is not None and self.totals is None and self.feasible is not None:
            self.scores_beyond = self._scored_beyond(score_nodes, state, self.feasible)

    def go_beyond_on(self, names: Collection[str]) -> None:
        """Call every filter for these nodes, except the chosen one and nodes that the snapshot lacks."""
        table = self.framework.handle.snapshot.table
        rows = sorted(table.rows[name] for name in names if name != self.host and name in table.rows)
        if rows and self._may_ask_filters():
            nodes = NodeSelection(table, np.array(rows, dtype=np.int64))
            self.beyond = ask_all_filters(self.framework, self.state.clone(), self.pod, nodes)

    def _may_ask_filters(self) -> bool:
        """Tell whether the state of the pre_filters is there, so that filters can be called."""
        refusal = self._pre_filter().refusal
        # UNSCHEDULABLE lets the other pre_filters run, since preemption needs their state; so filters can be asked.
        return self.searched is not None or (refusal is not None and refusal.code is Code.UNSCHEDULABLE)

    def _scored_beyond(
        self, score_nodes: ScoreNodes, state: CycleState, feasible: NodeSelection
    ) -> ScoreStep | None:
        try:
            scores = score_nodes(self.framework, state, self.pod, feasible)
        except SchedulingError:
            # Only the explanation lacks these scores; the decision doesn't need them.
            return None
        skipped = self.order.of(state.skip_score_plugins)
        return ScoreStep(scores.by_plugin, skipped, scores.totals, beyond=True)

    def _result(self) -> tuple[Result, str]:
        """The result of the attempt, and the message why the pod isn't placed."""
        if self.host is not None:
            return self._afterwards()
        match self.error:
            case FitError() as error:
                return Result.NOMINATED if self._nominated() else Result.UNSCHEDULABLE, str(error)
            case NoNodesAvailableError() as error:
                return Result.UNSCHEDULABLE, str(error)
            case SchedulingError() as error:
                return Result.FAILED, error.status.message
        return Result.FAILED, str(self.error)

    def _afterwards(self) -> tuple[Result, str]:
        """The result for a pod for which a node was found."""
        present = self._present()
        if self.is_decision_only or present is None or present.node_name:
            return Result.PLACED, ""
        if self.framework.waiting_pods.get(self.pod.uid) is not None:
            return Result.WAITING, ""
        for condition in present.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                refused = condition.reason == REASON_UNSCHEDULABLE
                return Result.UNSCHEDULABLE if refused else Result.FAILED, condition.message
        # The pod is bound, though the cluster hasn't confirmed it yet.
        return Result.PLACED, ""

    def _present(self) -> Pod | None:
        present = self.framework.handle.cluster.get(Pod, self.pod.key)
        return present if present is not None and present.uid == self.pod.uid else None

    def _nominated(self) -> str | None:
        """The node on which the attempt has made room for the pod; None if it hasn't."""
        if not isinstance(self.error, FitError) or self.error.diagnosis.post_filter_message:
            return None
        if self.plan is not None:
            return None if self.plan.chosen is None else self.plan.chosen.node_name
        # The plugin that made room may have no `PreemptionEvaluator`.
        return self.error.diagnosis.nominated_node_name or None

    def _pre_filter(self) -> PreFilterStep:
        skipped = self.order.of(self.state.skip_filter_plugins)
        diagnosis = self.error.diagnosis if isinstance(self.error, FitError) else self.diagnosis
        if self.searched is None and diagnosis is not None and diagnosis.pre_filter_message:
            refusal = diagnosis.node_to_status.absent
            narrowing = () if refusal.plugin else self.order.of(frozenset(diagnosis.unschedulable_plugins))
            return PreFilterStep(skipped, narrowing, refusal=refusal)
        left_over = np.sort(self.candidates.rows) if self.narrowing and self.candidates is not None else None
        return PreFilterStep(skipped, self.order.of(self.narrowing), left_over)

    def _filter(self) -> FilterStep | None:
        nodes, found = self.searched, self.found
        if nodes is None or found is None:
            return None
        diagnosis = Diagnosis() if self.diagnosis is None else self.diagnosis
        # A plugin or an extender has failed; the refusals until then are known all the same.
        if self.diagnosis is None:
            diagnosis.add_codes(found.refused)
        by_extenders = None
        if self.feasible is not None and self.framework.handle.extenders:
            by_extenders = self.feasible.rows
        return FilterStep(
            plugins=self.order.filters_but(self.state.skip_filter_plugins),
            candidates=nodes.table.all_rows if len(nodes) == len(nodes.table) else np.sort(nodes.rows),
            start=self.start,
            looked_at=found.processed,
            wanted=self.wanted,
            refusals=Refusals.taken_from(diagnosis.node_to_status, self.framework.handle.snapshot.table.rows),
            by_extenders=by_extenders,
            nominated=self.candidates is None and not self.batch_of,
            batch_of=self.batch_of,
        )

    def _score(self) -> ScoreStep | None:
        if self.totals is None:
            return self.scores_beyond
        by_plugin = {} if self.scores is None else self.scores.by_plugin
        return ScoreStep(by_plugin, self.order.of(self.state.skip_score_plugins), self.totals)

    def _preemption(self) -> PreemptionStep | None:
        plan = self.plan
        if not isinstance(self.error, FitError) or not self.framework.has_post_filter_plugins:
            return None
        message = self.error.diagnosis.post_filter_message
        if plan is None:
            return PreemptionStep(message)
        return PreemptionStep(
            message=message,
            candidates=tuple(map(_candidate, plan.candidates)),
            tied=tuple(map(_candidate, plan.tied)),
            refusals=Refusals.taken_from(plan.rejected, self.framework.handle.snapshot.table.rows),
        )


def gated(framework: Framework, pod: Pod, status: Status) -> Explanation:
    """The explanation for a pod that pre_enqueue keeps out of the queue."""
    profile = framework.profile.scheduler_name
    explanation = Explanation(
        pod.key,
        profile,
        Result.GATED,
        framework.handle.snapshot.table.names,
        message=status.message,
        pre_filter=PreFilterStep(refusal=status),
    )
    key = group_key(pod)
    members = framework.handle.groups.get(key) if key else None
    if members is None:
        return explanation
    group = framework.handle.cluster.get(PodGroup, key)
    step = GroupStep(
        key,
        profile,
        Result.GATED,
        GroupStage.GATE,
        message=status.message,
        min_count=None if group is None else group.min_count,
        scheduled=members.number_scheduled,
        topology_key="" if group is None else group.topology_key,
        members=[each.key for each in members.unscheduled],
    )
    return attrs.evolve(explanation, group=step)


def _candidate(candidate: Candidate) -> PreemptionCandidate:
    victims = candidate.victims
    return PreemptionCandidate(
        candidate.node_name,
        tuple(Victim(pod.key, pod.priority) for pod in victims.pods),
        victims.num_pdb_violations,
    )
