"""The preemption algorithm, from a pod without a node to a nominated node (kube-scheduler `preemption.Evaluator`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import cached_property

import attrs

from kschedfw.api import KschedfwError, Pod, PodDisruptionBudget
from kschedfw.api.records import define, frozen
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.diagnosis import Diagnosis, FitError, NodeToStatus
from kschedfw.framework.extender import Extender, Victims
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import Candidate, best_candidates
from kschedfw.framework.preemption.dry_run import DryRun, LowestPriorities, Outcomes, dry_run, no_candidates
from kschedfw.framework.preemption.rules import PreemptionRules
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.status import Code, PluginFailure, Status
from kschedfw.framework.versions.v1_37 import FIRST_BUDGET


@frozen(eq=False)
class PreemptionPlan:
    """The decision of a preemption with its reasons, not yet carried out.

    * SUCCESS: `chosen` is set, and `result` nominates its node.
    * UNSCHEDULABLE: no room can be made. With a `result`, the pod's earlier nomination is cleared. Without one
      it stays, since the pod still waits for victims, or an extender rejected all candidates.
    * ERROR: a plugin or an extender failed.

    `candidates` are those of the dry run. `tied` are the candidates left by extenders that are equally good by
    every criterion. `rejected` has the reasons of nodes that were tried and are no candidates.
    """

    status: Status
    result: PostFilterResult | None = None
    candidates: Sequence[Candidate] = ()
    tied: Sequence[Candidate] = ()
    rejected: NodeToStatus = attrs.field(factory=no_candidates)

    @property
    def chosen(self) -> Candidate | None:
        """The node and victims that preemption would take: the first of `tied`."""
        return self.tied[0] if self.tied else None


PREEMPTION_PLAN: StateKey[PreemptionPlan] = StateKey("preemption.plan")
"""The plan of this cycle's preemption, carried out or not; for explanations."""


@define(eq=False)
class PreemptionEvaluator:
    """The search for the node where evictions do least harm, and the evictions; used by post_filter plugins.

    `plugin_name` is named in the rejection of victims that wait at permit. All calls belong into a scheduling
    cycle, since the handle's snapshot is read.
    """

    _plugin_name: str
    _handle: Handle
    _rules: PreemptionRules

    def preempt(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Make room for the pod: `plan`, then evict the victims. Return the answer of a post_filter hook.

        The pod is looked up in the cluster first, since its nomination may have changed since it was queued.
        """
        self._handle.metrics.preemption_attempt()
        present = self._handle.cluster.get(Pod, pod.key)
        if present is None:
            return None, Status.from_error(f'pod "{pod.name}" not found')
        plan = self.plan(state, present, node_to_status)
        state.write(PREEMPTION_PLAN, plan)
        if plan.chosen is None:
            return plan.result, plan.status
        try:
            self._handle.evict(
                plan.chosen.victims.pods,
                preemptor=present,
                node_name=plan.chosen.node_name,
                plugin=self._plugin_name,
                violations=plan.chosen.victims.num_pdb_violations,
            )
        except Exception as error:
            # A cluster may raise anything; only this attempt should fail. The pod isn't nominated, and its next
            # attempt sees the node as it is then.
            return None, Status.from_error(error)
        return plan.result, plan.status

    def plan(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> PreemptionPlan:
        """Return the preemption that `preempt` would carry out, given each node's refusal of the pod.

        Changes nothing but the state of the random generator. Exceptions of the rules and of the cluster are
        raised; the framework makes an ERROR of them.
        """
        nominated_node_status = node_to_status.get(pod.status.nominated_node_name)
        if objection := self._rules.objection(pod, nominated_node_status):
            return PreemptionPlan(Status.unschedulable(objection))
        if not len(self._handle.snapshot):
            return PreemptionPlan(Status.from_error("no nodes available"))
        found = self._find_candidates(state, pod, node_to_status)
        if not found.candidates:
            if found.errors:
                return PreemptionPlan(_joined(found.errors), rejected=found.node_to_status)
            return self._no_candidates(pod, found)
        try:
            left = ask_extenders(self._handle.extenders, pod, found.candidates, self._handle.snapshot)
        except Exception as error:
            # As with filters, what an extender raises is its failure.
            return PreemptionPlan(
                Status.from_error(error), candidates=found.candidates, rejected=found.node_to_status
            )
        tied = best_candidates(left, self._rules.score_functions())
        return PreemptionPlan(
            status=Status.success() if tied else Status.unschedulable("no candidate node for preemption"),
            result=PostFilterResult.nominate(tied[0].node_name) if tied else None,
            candidates=found.candidates,
            tied=tied,
            rejected=found.node_to_status,
        )

    def _find_candidates(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> DryRun:
        table = self._handle.snapshot.table
        # A refusal other than UNSCHEDULABLE doesn't change when pods leave the node.
        nodes = node_to_status.nodes_with(Code.UNSCHEDULABLE, NodeSelection.whole(table))
        if not len(nodes):
            return DryRun()
        budgets = DisruptionBudgets.of(
            self._handle.cluster.list(PodDisruptionBudget),
            ends_at_first=self._handle.feature_gates.follows(FIRST_BUDGET),
        )
        # One number is drawn for each dry run, even if all outcomes are known: what is kept must not change
        # later draws.
        offset, wanted = self._rules.offset_and_num_candidates(len(nodes))
        return dry_run(
            self._rules,
            state,
            pod,
            nodes,
            budgets,
            offset=offset,
            wanted=wanted,
            outcomes=self._known_outcomes(state, pod, budgets),
            priorities=self._priorities,
        )

    def _known_outcomes(self, state: CycleState, pod: Pod, budgets: DisruptionBudgets) -> Outcomes | None:
        if not self._rules.are_default:
            return None
        table, nominator = self._handle.snapshot.table, self._handle.nominator
        # Beside what the filters read of a pod, its priority alone decides who may be evicted for it.
        key = ("preemption", pod.priority)
        outcomes = self._handle.framework.kept_column(state, pod, key, lambda: Outcomes(table))
        if outcomes is not None:
            outcomes.follow_all(table, budgets, nominator, pod)
        return outcomes

    @cached_property
    def _priorities(self) -> LowestPriorities | None:
        return LowestPriorities(self._handle.snapshot.table) if self._rules.are_default else None

    def _no_candidates(self, pod: Pod, found: DryRun) -> PreemptionPlan:
        diagnosis = Diagnosis(node_to_status=found.node_to_status)
        reason = str(FitError(pod, len(self._handle.snapshot), diagnosis))
        # Where no room can be made, an earlier nomination means nothing any more.
        return PreemptionPlan(
            Status.unschedulable(reason), result=PostFilterResult.nominate(""), rejected=found.node_to_status
        )


def _joined(errors: Sequence[Status]) -> Status:
    """Return several errors as one, in the format of Kubernetes' aggregated errors.

    Equal texts are given once, several texts in brackets.
    """
    texts = list(dict.fromkeys(status.message for status in errors))
    failure = PluginFailure(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    failure.__cause__ = errors[0].as_error()
    return Status.from_error(failure)


logger = logging.getLogger(__name__)


@define(eq=False)
class NoVictimsError(KschedfwError):
    """The error of an extender that named a node for preemption but no victims."""

    node_name: str

    def __str__(self) -> str:
        return f'expected at least one victim pod on node "{self.node_name}"'


def ask_extenders(
    extenders: Iterable[Extender], pod: Pod, candidates: Sequence[Candidate], snapshot: Snapshot
) -> Sequence[Candidate]:
    """Return the candidates that all extenders accept, with the victims that they chose.

    Extenders are called one after the other, each with the candidates left by the one before, until none is
    left. If an ignorable extender fails, or names no victims for a node, it or the node is skipped.

    Raises:
        NoVictimsError: an extender that isn't ignorable left a node without victims.
        Exception: the failure of an extender that isn't ignorable.
    """
    asked = [each for each in extenders if each.supports_preemption and each.is_interested(pod)]
    if not asked:
        return candidates
    victims_by_node = {candidate.node_name: candidate.victims for candidate in candidates}
    for extender in asked:
        if not victims_by_node:
            break
        try:
            answer = extender.process_preemption(pod, dict(victims_by_node), snapshot)
        except Exception:
            if not extender.is_ignorable:
                raise
            logger.info(
                "extender %s failed and is ignorable, so it is passed over", extender.name, exc_info=True
            )
            continue
        victims_by_node = {
            node_name: victims
            for node_name, victims in answer.items()
            if _has_victims(extender, node_name, victims)
        }
    # The extender's order decides among equally good candidates. In kube-scheduler a Go map does, whose order
    # is random.
    return tuple(Candidate(node_name, victims) for node_name, victims in victims_by_node.items())


def _has_victims(extender: Extender, node_name: str, victims: Victims) -> bool:
    if victims.pods:
        return True
    if not extender.is_ignorable:
        raise NoVictimsError(node_name)
    return False
