"""Records the cycle of a group, and makes explanations from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.explain.asking import ask_all_filters
from kschedfw.explain.decision_record import DecisionRecord, ProfileOrder
from kschedfw.explain.explanation import Explanation, Result
from kschedfw.explain.groups import GroupPreemptionStep, GroupStage, GroupStep, MemberStep, PlacementStep
from kschedfw.explain.steps import Beyond, Refusals
from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import Totals
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import Attempt, MemberRefusal
from kschedfw.scheduler.errors import SchedulingError

if TYPE_CHECKING:
    from kschedfw.scheduler.groups import GroupDecision, MemberResult, PlacementResult


@define(eq=False)
class MemberRecord(DecisionRecord):
    """The steps of the decision on a member on one placement. Scores aren't kept.

    The further questions to filters are asked during the decision, since the members before it leave their nodes
    afterwards. They are asked only if `is_new` returns true for the refusals.
    """

    within: NodeSelection = attrs.field(kw_only=True)
    is_new: Callable[[Diagnosis], bool] = attrs.field(kw_only=True)

    def nodes_found(self, feasible: NodeSelection, diagnosis: Diagnosis) -> None:
        super().nodes_found(feasible, diagnosis)
        if self.searched is None or len(feasible) or not self.is_new(diagnosis):
            return
        self.beyond = ask_all_filters(self.framework, self.state.clone(), self.pod, self.within)

    def nodes_scored(self, nodes: Sequence[NodeInfo], totals: Totals) -> None:
        pass


class GroupRecords:
    """Follows the cycles of groups, and explains them: a `GroupObserver`.

    Members for which `wanted` is true are explained, each by an `Explanation` given to `take`. With `beyond`, every
    filter is asked about members without a node on a placement, once for those that are refused for the same reasons.
    Unless it `follows_placed`, members with a node have no decision.
    """

    def __init__(
        self,
        take: Callable[[Explanation], None],
        wanted: Callable[[Pod], bool],
        order_of: Callable[[Framework], ProfileOrder],
        attempts: Counter[str],
        *,
        beyond: bool,
        follows_placed: bool,
    ) -> None:
        self._take = take
        self._wanted = wanted
        self._order_of = order_of
        self._attempts = attempts
        self._cycles: Counter[str] = Counter()
        self._beyond = beyond
        self.follows_placed = follows_placed
        self._records: dict[tuple[str, str], MemberRecord] = {}
        self._seen: set[object] = set()

    def member(self, placement: GroupPlacement, attempt: Attempt) -> MemberRecord | None:
        if not self._wanted(attempt.pod):
            return None
        framework = attempt.framework

        def is_new(diagnosis: Diagnosis) -> bool:
            if not self._beyond:
                return False
            # The refusals without the nodes that they are about.
            kinds = frozenset((status.plugin, status.reasons) for _, status in diagnosis.node_to_status)
            known = len(self._seen)
            self._seen.add((placement.name, kinds))
            return len(self._seen) > known

        record = self._records[placement.name, attempt.pod.uid] = MemberRecord(
            framework,
            attempt.state,
            attempt.pod,
            self._order_of(framework),
            is_decision_only=True,
            within=placement.nodes,
            is_new=is_new,
        )
        return record

    def decided(self, decision: GroupDecision) -> None:
        wanted = [pod for pod in decision.group.pods if self._wanted(pod)]
        if wanted:
            key = decision.group.key
            self._cycles[key] += 1
            step = self._group(decision, self._cycles[key])
            taken = None if decision.result is None else decision.result.taken
            name = None if taken is None else taken.placement.name
            at = next((each for each in step.placements if each.name == name), None)
            members = {} if at is None else {each.pod: each for each in at.members}
            refusals = decision.refusals
            for pod in wanted:
                self._attempts[pod.uid] += 1
                explained = _of_member(step, pod, members.get(pod.key), refusals.get(pod.uid))
                self._take(attrs.evolve(explained, attempt=self._attempts[pod.uid]))
        # A record keeps the state of its attempt, and the snapshot changes with the next cycle.
        self._records.clear()
        self._seen.clear()

    def _group(self, decision: GroupDecision, attempt: int) -> GroupStep:
        group, result = decision.group, decision.result
        tried = () if result is None else result.placements
        scores = {} if result is None else {each.name: each.by_plugin for each in result.scores}
        placements = [self._placement(each, scores.get(each.placement.name, {})) for each in tried]
        taken = None if result is None or not decision.status.is_success else result.taken
        name = None if taken is None else taken.placement.name
        step = GroupStep(
            group=group.key,
            profile=group.pods[0].spec.scheduler_name,
            result=_result(decision),
            ended_by=None,
            attempt=attempt,
            message="" if decision.status.is_success else decision.status.message,
            min_count=None if group.object is None else group.object.min_count,
            scheduled=decision.states.number_scheduled,
            topology_key="" if group.object is None else group.object.topology_key,
            members=[pod.key for pod in group.pods],
            placements=placements,
            taken=name,
            preemption=_preemption(decision),
        )
        return step if decision.status.is_success else attrs.evolve(step, ended_by=_stage(decision, step))

    def _placement(self, tried: PlacementResult, scores: Mapping[str, int]) -> PlacementStep:
        return PlacementStep(
            tried.placement.name,
            tuple(tried.placement.nodes.names),
            tried.status.is_success or tried.is_waiting,
            "" if tried.status.is_success else tried.status.message,
            self._members(tried),
            scores,
        )

    def _members(self, tried: PlacementResult) -> Sequence[MemberStep]:
        steps: dict[MemberResult, MemberStep] = {}
        for member in tried.members:
            if member.like is None:
                steps[member] = self._member(tried.placement, member)
            else:
                # The member that it is like was tried before it.
                steps[member] = _like(member.attempt.pod, steps[member.like])
        return list(steps.values())

    def _member(self, placement: GroupPlacement, member: MemberResult) -> MemberStep:
        pod = member.attempt.pod
        record = self._records.get((placement.name, pod.uid))
        decision = None
        if record is not None and (self.follows_placed or not member.node_name):
            record.host = member.node_name or None
            record.error = None if member.node_name else _error(member.status)
            decision = _restricted(record.explanation(), placement.nodes.rows)
        message = "" if member.node_name else member.status.message
        return MemberStep(pod.key, member.node_name, message, member.permit, decision, member.preempts)


def _like(pod: Pod, other: MemberStep) -> MemberStep:
    """The step of a pod that was refused as an equal one was, of which it is known what is beyond the decision."""
    known = other.decision
    decision = None if known is None else attrs.evolve(known, pod=pod.key, beyond=None)
    return attrs.evolve(other, pod=pod.key, decision=decision)


def _error(status: Status) -> Exception:
    known = status.error
    return known if isinstance(known, FitError | NoNodesAvailableError) else SchedulingError(status)


def _result(decision: GroupDecision) -> Result:
    if decision.status.is_success:
        return Result.PLACED
    if not decision.status.is_rejected:
        return Result.FAILED
    return Result.NOMINATED if decision.is_waiting else Result.UNSCHEDULABLE


def _stage(decision: GroupDecision, step: GroupStep) -> GroupStage:
    result = decision.result
    if result is None:
        return GroupStage.UNLIKE_MEMBERS if decision.is_mixed else GroupStage.FAILURE
    if not result.placements:
        return GroupStage.PLACEMENT_GENERATION
    failed = decision.preemption is not None and not decision.preemption.status.is_rejected
    if decision.is_waiting or failed:
        return GroupStage.PREEMPTION
    nearest = step.nearest
    assert nearest is not None
    if nearest.suffices:
        return GroupStage.PLACEMENT_SCORE
    if not nearest.refused:
        return GroupStage.PERMIT
    decisions = [each.decision for each in nearest.refused]
    if all(each is not None and each.pre_filter.refusal is not None for each in decisions):
        return GroupStage.PRE_FILTER
    return GroupStage.MEMBERS


def _preemption(decision: GroupDecision) -> GroupPreemptionStep | None:
    found = decision.preemption
    if found is None:
        return None
    return GroupPreemptionStep(
        found.status.is_success,
        "" if found.status.is_success else found.status.message,
        len(found.potential),
        [[pod.key for pod in unit.pods] for unit in found.victims],
        found.num_pdb_violations,
    )


def _of_member(
    step: GroupStep, pod: Pod, member: MemberStep | None, refusal: MemberRefusal | None
) -> Explanation:
    """The explanation of a member: its decision on the placement that counts, and what becomes of it."""
    known = None if member is None else member.decision
    if known is None:
        known = Explanation(pod.key, step.profile, step.result)
    if refusal is None:
        return attrs.evolve(known, result=Result.PLACED, group=step)
    is_nominated = step.result is Result.NOMINATED and bool(refusal.node_name)
    result = Result.UNSCHEDULABLE if refusal.status.is_rejected else Result.FAILED
    return attrs.evolve(
        known,
        result=Result.NOMINATED if is_nominated else result,
        nominated=refusal.node_name if is_nominated else None,
        message=refusal.status.message,
        group=step,
    )


def _restricted(explanation: Explanation, rows: IntArray) -> Explanation:
    """The explanation with these nodes alone, the only ones that were in question."""
    if len(rows) == len(explanation.nodes):
        return explanation
    # The new row of each old one. All rows in the steps are of the placement, so none becomes -1.
    places = np.full(len(explanation.nodes), -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))

    def of(refusals: Refusals) -> Refusals:
        return Refusals(refusals.codes[rows], refusals.statuses)

    pre_filter, step, beyond = explanation.pre_filter, explanation.filter, explanation.beyond
    if pre_filter.left_over is not None:
        pre_filter = attrs.evolve(pre_filter, left_over=places[pre_filter.left_over])
    if step is not None:
        step = attrs.evolve(
            step,
            candidates=places[step.candidates],
            refusals=of(step.refusals),
            by_extenders=None if step.by_extenders is None else places[step.by_extenders],
        )
    if beyond is not None:
        beyond = Beyond(
            {plugin: of(refusals) for plugin, refusals in beyond.refusals.items()},
            {
                plugin: {int(places[row]): found for row, found in by_row.items()}
                for plugin, by_row in beyond.evidence.items()
            },
        )
    return attrs.evolve(
        explanation,
        nodes=tuple(explanation.nodes[row] for row in rows.tolist()),
        pre_filter=pre_filter,
        filter=step,
        beyond=beyond,
    )
