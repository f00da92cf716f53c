"""The cycle of a group: takes its members from the queue, finds nodes for them together, and submits what was found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import (
    POD_GROUP_INITIALLY_SCHEDULED,
    POD_GROUP_SCHEDULED,
    PodGroup,
    PodGroupCondition,
    group_key,
)
from kschedfw.api.records import define, frozen
from kschedfw.framework.cluster_client import retry_on_conflict
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.gate_table import POD_GROUP_PREEMPTION_POLICY, WORKLOAD_AWARE_PREEMPTION
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.groups import CALL_IN, MEMBER_STATES, CallIn, MemberStates, QueuedGroup
from kschedfw.framework.metrics import AttemptResult
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.parts import Parts
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Code, Status
from kschedfw.framework.versions.v1_37 import (
    GROUP_CONDITION,
    GROUP_LEFTOVERS,
    GROUP_POST_FILTER,
    GROUP_PREEMPTION_POLICIES,
    GROUP_PRIORITIES,
)
from kschedfw.scheduler.attempt import CLEAR_NOMINATION, Attempt, MemberRefusal, Start
from kschedfw.scheduler.failure import REASON_SCHEDULER_ERROR, REASON_UNSCHEDULABLE
from kschedfw.scheduler.groups.algorithm import GroupAlgorithm, GroupObservation
from kschedfw.scheduler.groups.preemption import PLUGIN, GroupPreemption, plan_preemption, start_eviction
from kschedfw.scheduler.groups.trial import UNSCHEDULABLE, AffinityLists, GroupResult, MemberResult
from kschedfw.scheduler.queue import SchedulingQueue
from kschedfw.scheduler.scheduling_cycle import Attempts, SchedulingCycle

_log = logging.getLogger(__name__)

_PREEMPTION: Final = "pod group preemption"
"""The prefix of what preemption says about a group."""


@frozen(eq=False)
class GroupDecision:
    """The decision that was made in the cycle of a group.

    `states` are the members when the cycle began. `result` is None if the cycle ended before the algorithm, or by an
    exception; `preemption` if none was tried. `status` is that of the group in the end. `is_mixed` says that members
    differ in what must be the same for all of them, so that nothing was tried.
    """

    group: QueuedGroup
    states: MemberStates
    result: GroupResult | None
    preemption: GroupPreemption | None
    status: Status
    is_mixed: bool = False

    @property
    def is_waiting(self) -> bool:
        """True if the group waits for victims to go."""
        if self.preemption is not None and self.preemption.status.is_success:
            return True
        return self.result is not None and self.result.is_waiting

    @property
    def refusals(self) -> Mapping[str, MemberRefusal]:
        """Return why members go back to the queue, by uid; without the members that get their node."""
        tried = () if self.result is None else self.result.members
        found = {pod.uid: MemberRefusal(self.status) for pod in self.group.pods}
        for member in tried:
            uid = member.attempt.pod.uid
            if _gets_its_node(member, self.status):
                del found[uid]
            else:
                failure = _failure(member, self.status, is_waiting=self.is_waiting)
                found[uid] = MemberRefusal(failure, member.node_name)
        return found


class GroupObserver(GroupObservation, Protocol):
    """Follows the cycles of groups, for example to explain them. It must not change what it is given."""

    def decided(self, decision: GroupDecision) -> None:
        """Receive the decision on a group, before it is submitted."""
        ...


@define(eq=False)
class GroupCycle:
    """Schedules groups, each when one of its members is popped."""

    _parts: Parts
    _queue: SchedulingQueue
    algorithm: GroupAlgorithm
    _cycle: SchedulingCycle
    _attempts: Attempts
    observer: GroupObserver | None = attrs.field(default=None, init=False)

    def run(self, popped: QueuedPodInfo) -> None:
        """Schedule the group of a pod that was popped."""
        key = group_key(popped.pod)
        states = self._parts.groups.get(key)
        if states is None:
            self._queue.add_unschedulable_if_not_present(popped)
            return
        self._queue.begin_group(popped)
        try:
            self._run(key, states, popped)
        finally:
            self._queue.end_group(key)

    def _run(self, key: str, states: MemberStates, popped: QueuedPodInfo) -> None:
        others = [pod for pod in states.unscheduled if pod.uid != popped.pod.uid]
        taken = [popped, *self._queue.take_members(others)]
        attempts = [
            attempt for info in sorted(taken, key=turn) if (attempt := self._attempts.of(info)) is not None
        ]
        if not attempts:
            return
        try:
            self._schedule(key, states, attempts, self._attempts.bind_if)
        except BaseException as error:
            # Whatever fails, no member may stay in flight: its events would be kept for ever.
            self._cycle.fail_those_in_flight(attempts, error)
            if not isinstance(error, Exception):
                raise

    def place(self, attempts: Sequence[Attempt], hold: Start) -> Mapping[str, MemberRefusal]:
        """Schedule members of a group out of turn, in this order. Return those that got no place, by uid.

        `hold` takes the place of a member by the function that it is given. Members that aren't in the cluster count
        as well.
        """
        key = group_key(attempts[0].pod)
        states = self._parts.groups.get(key) or MemberStates()
        for attempt in attempts:
            states.put(attempt.pod)
        self._queue.begin_group(attempts[0].info)
        try:
            return self._schedule(key, states, attempts, hold)
        except BaseException as error:
            self._cycle.fail_those_in_flight(attempts, error)
            raise
        finally:
            self._queue.end_group(key)

    def _schedule(
        self, key: str, states: MemberStates, attempts: Sequence[Attempt], start: Start
    ) -> Mapping[str, MemberRefusal]:
        metrics, begun = attempts[0].framework.handle.metrics, self._parts.clock.monotonic()
        group = QueuedGroup(key, None, tuple(attempt.pod for attempt in attempts))
        try:
            group = attrs.evolve(group, object=self._parts.cluster.get(PodGroup, key))
            decision = self._decide(group, states, attempts)
        # A cluster or a plugin may raise anything. The cycle still ends in a decision: whoever counts the attempts by
        # its observer (a simulation ends after so many in vain) would otherwise never learn of this one.
        except HOOK_FAILURES as error:
            decision = GroupDecision(group, states, None, None, Status.from_error(error))
        self._end(decision)
        refused = self._submit(attempts, decision, start)
        if not decision.is_mixed:
            profile = attempts[0].framework.profile.scheduler_name
            metrics.group_attempt(_outcome(decision.status), profile, self._parts.clock.monotonic() - begun)
        if not decision.is_mixed or self._parts.feature_gates.follows(GROUP_PRIORITIES):
            self._tell(decision.group, decision.status)
        return refused

    def _decide(self, group: QueuedGroup, states: MemberStates, attempts: Sequence[Attempt]) -> GroupDecision:
        """Find nodes for the members, and room if there are none; submit nothing."""
        if (mixed := _unlike_members(group, states, self._parts.feature_gates)) is not None:
            return GroupDecision(group, states, None, None, mixed, is_mixed=True)
        framework, begun = attempts[0].framework, self._parts.clock.monotonic()
        self._cycle.look(group.pods)
        lists = AffinityLists.of(self._parts.snapshot)

        in_place = self._parts.feature_gates.follows(GROUP_POST_FILTER)

        def run_without_victims() -> GroupResult:
            # The trials of preemption aren't the group's decision. Victims that are put back meet members one by one.
            return self.algorithm.run(
                framework, group, states, lists, attempts, makes_room=False, one_by_one=in_place
            )

        result = self.algorithm.run(
            framework, group, states, lists, attempts, makes_room=not in_place, observe=self.observer
        )
        status, preemption = result.status, None
        preempts = self._parts.feature_gates.enabled(WORKLOAD_AWARE_PREEMPTION) and all(
            each.may_preempt for each in attempts
        )
        framework.handle.metrics.group_algorithm(self._parts.clock.monotonic() - begun)
        # A group that waits has members whose victims go already.
        if preempts and status.is_rejected and not result.is_waiting:
            preemption = self._make_room(framework, group, run_without_victims)
            status = self._after(preemption.status, status)
        return GroupDecision(group, states, result, preemption, status)

    # Preemption

    def _make_room(
        self, framework: Framework, group: QueuedGroup, try_group: Callable[[], GroupResult]
    ) -> GroupPreemption:
        if self._parts.feature_gates.follows(GROUP_POST_FILTER):
            plans: list[GroupPreemption] = []

            def preempt() -> Status:
                plans.append(self._preempt(framework, group, try_group))
                return plans[-1].status

            status = framework.run_pod_group_post_filter_plugins(CycleState(), group, preempt)
            # Evictions that have begun aren't taken back, whatever status a plugin returns.
            started = next((each for each in plans if each.status.is_success), None)
            return started or attrs.evolve(plans[-1] if plans else GroupPreemption(status), status=status)
        if PLUGIN not in framework.plugins_at(ExtensionPoint.POST_FILTER):
            missing = "default preemption plugin is not registered, workload aware preemption is disabled"
            return GroupPreemption(Status.unschedulable(missing))
        return self._preempt(framework, group, try_group)

    def _preempt(
        self, framework: Framework, group: QueuedGroup, try_group: Callable[[], GroupResult]
    ) -> GroupPreemption:
        """Find victims, and begin to evict them."""
        handle = framework.handle
        try:
            preemption = plan_preemption(handle, group, try_group)
        # A cluster may raise anything, which must cost only this cycle.
        except Exception as error:
            _log.exception("looking for room for group %s failed", group.key)
            return GroupPreemption(Status.from_error(error))
        if preemption.status.is_success:
            start_eviction(handle, group, preemption, framework.profile.scheduler_name)
        return preemption

    def _after(self, said: Status, status: Status) -> Status:
        """Return the group's status once preemption has said this; since v1.37 its text is always in it."""
        introduces = self._parts.feature_gates.follows(GROUP_POST_FILTER)
        if introduces and said.message:
            said = said.prefixed(_PREEMPTION, PLUGIN) if said.code is Code.ERROR else _introduced(said)
        if not (said.is_success or said.is_rejected):
            return said
        tells = said.is_rejected or introduces
        return Status.unschedulable(status.message, said.message) if tells and said.message else status

    # Submission

    def _submit(
        self, attempts: Sequence[Attempt], decision: GroupDecision, start: Start
    ) -> Mapping[str, MemberRefusal]:
        status, is_waiting = decision.status, decision.is_waiting
        preemption = decision.preemption
        tried = () if decision.result is None else decision.result.members
        members = {each.attempt.pod.uid: each for each in tried}
        refused: dict[str, MemberRefusal] = {}
        call = CallIn()
        keeps_turn = status.is_success and self._parts.feature_gates.follows(GROUP_LEFTOVERS)
        for attempt in attempts:
            member = members.get(attempt.pod.uid)
            if member is not None and _gets_its_node(member, status):
                self._take_place(member, call, start)
                continue
            # The member goes back to the queue; the next member that waits activates it again.
            call.is_done = False
            (attempt if member is None else member.attempt).keeps_turn = keeps_turn
            if member is None:
                refusal = MemberRefusal(status)
                self._cycle.fail(attempt, status, _wait_for(preemption, attempt.pod) or CLEAR_NOMINATION)
            else:
                refusal = MemberRefusal(_failure(member, status, is_waiting=is_waiting), member.node_name)
                nomination = _nomination(member, status, preemption, is_waiting=is_waiting)
                self._cycle.fail(member.attempt, refusal.status, nomination)
            refused[attempt.pod.uid] = refusal
        self._queue.end_group(decision.group.key, keeps_turn=keeps_turn, is_refused=status.is_rejected)
        return refused

    def _take_place(self, member: MemberResult, call: CallIn, start: Start) -> None:
        attempt, result = member.attempt, member.result
        assert result is not None
        # From now on, plugins count members in the cache instead of those on trial.
        attempt.state.delete(MEMBER_STATES)
        attempt.state.write(CALL_IN, call)
        start(attempt, lambda: self._cycle.assume(attempt, result))
        call.is_done = call.is_done and attempt.is_binding

    def _end(self, decision: GroupDecision) -> None:
        if self.observer is not None:
            self.observer.decided(decision)

    def _tell(self, group: QueuedGroup, status: Status) -> None:
        """Write the group's condition, if it changes. A group that was scheduled once stays so."""
        present = self._parts.cluster.get(PodGroup, group.key)
        if present is None:
            _log.warning("group %s is gone, its condition isn't written", group.key)
            return
        try:
            # As kube-scheduler's patch, which names no version: a controller that writes its own conditions at the same
            # time must not cost the group this one.
            retry_on_conflict(
                self._parts.cluster,
                present,
                lambda each: self._told(each, status, present.metadata.generation),
            )
        # A cluster may raise anything; the condition isn't worth a failed cycle.
        except Exception as error:
            _log.warning("can't write the condition of group %s: %s", group.key, error)

    def _told(self, group: PodGroup, status: Status, generation: int) -> PodGroup:
        """Return the group with the condition; as it is if it has it, or was scheduled once and isn't now.

        `generation` is that of the group that was decided on.
        """
        told = (
            POD_GROUP_INITIALLY_SCHEDULED
            if self._parts.feature_gates.follows(GROUP_CONDITION)
            else POD_GROUP_SCHEDULED
        )
        known = next((each for each in group.status.conditions if each.type == told), None)
        if known is not None and known.status == "True" and not status.is_success:
            return group
        value = "True" if status.is_success else "False"
        changed = datetime.fromtimestamp(self._parts.clock.now(), UTC)
        condition = PodGroupCondition(
            told,
            value,
            _reason(status),
            "" if status.is_success else status.message,
            generation,
            known.last_transition_time if known is not None and known.status == value else changed,
        )
        return group if condition == known else group.with_condition(condition)


def _outcome(status: Status) -> AttemptResult:
    if status.is_success:
        return AttemptResult.SCHEDULED
    return AttemptResult.UNSCHEDULABLE if status.is_rejected else AttemptResult.ERROR


def turn(info: QueuedPodInfo) -> tuple[int, float, int, str]:
    """The sort key of the order in which members are tried: priority, then the time when first active."""
    return (
        -info.pod.priority,
        info.initial_attempt_timestamp or 0.0,
        info.initial_attempt_sequence,
        info.pod.key,
    )


def _unlike_members(group: QueuedGroup, states: MemberStates, gates: FeatureGates) -> Status | None:
    """Return an ERROR if members differ in what must be the same for all of them; None if they don't.

    Since v1.37 that is more than the scheduler, and members that are scheduled already count.
    """
    first, given = group.pods[0], group.object
    priority = given.priority if given is not None and gates.follows(GROUP_PRIORITIES) else None
    policy, whose = None, ""
    if gates.follows(GROUP_PREEMPTION_POLICIES):
        policy = first.spec.preemption_policy
        if given is not None and gates.enabled(POD_GROUP_PREEMPTION_POLICY):
            policy, whose = given.spec.preemption_policy, " as the pod group's preemption policy"
    checks_all = priority is not None or policy is not None
    for pod in (*group.pods, *(states.scheduled if checks_all else ())):
        differs = ""
        if pod.spec.scheduler_name != first.spec.scheduler_name:
            names = (first, pod) if not checks_all else (pod, first)
            one, other = (f'"{each.spec.scheduler_name}"' for each in names)
            differs = f".spec.schedulerName set, got: {one} and {other}"
        elif priority is not None and pod.priority != priority:
            differs = f"priority as the pod group's priority, got {pod.priority} and {priority}"
        elif policy is not None and pod.spec.preemption_policy is not policy:
            differs = f"preemption policy{whose}, got {pod.spec.preemption_policy} and {policy}"
        if differs:
            return Status.from_error(f"all pods in a single pod group should have the same {differs}")
    return None


def _gets_its_node(member: MemberResult, status: Status) -> bool:
    """Return whether the member is bound now that its group has this status.

    A member whose victims still take its room never is, though its group may be scheduled without it: where another
    permit plugin than GangScheduling has it wait, the group doesn't. As in kube-scheduler it goes back like a member
    of an unschedulable group then: without its nomination, though its victims go.
    """
    return status.is_success and bool(member.node_name) and not member.preempts


def _failure(member: MemberResult, status: Status, *, is_waiting: bool) -> Status:
    """The status with which a member that isn't bound goes back to the queue."""
    if status.code is Code.ERROR:
        return member.status if member.status.code is Code.ERROR else status
    if not member.node_name:
        return member.status
    if is_waiting:
        return member.status if member.preempts else status
    if member.permit is None:
        # Since v1.37, where permit isn't asked in a trial, the reasons are the group's.
        return Status.unschedulable(UNSCHEDULABLE, status.message)
    reasons = member.permit.reasons if member.permit.is_wait else ()
    return Status.unschedulable(UNSCHEDULABLE, *reasons)


def _nomination(
    member: MemberResult, status: Status, preemption: GroupPreemption | None, *, is_waiting: bool
) -> PostFilterResult | None:
    if status.code is Code.ERROR:
        return CLEAR_NOMINATION
    if preemption is not None and preemption.nominations:
        # Since v1.37 members wait for the nodes that they got without the victims.
        return _wait_for(preemption, member.attempt.pod)
    if member.node_name:
        return PostFilterResult.nominate(member.node_name) if is_waiting else CLEAR_NOMINATION
    return member.nomination


def _wait_for(preemption: GroupPreemption | None, pod: Pod) -> PostFilterResult | None:
    """Return the nomination to the node that a member waits for; None if there is none."""
    if preemption is None or pod.uid not in preemption.nominations:
        return None
    return PostFilterResult.nominate(preemption.nominations[pod.uid])


def _introduced(said: Status) -> Status:
    return attrs.evolve(said, reasons=(f"{_PREEMPTION}: {said.message}",))


def _reason(status: Status) -> str:
    if status.is_success:
        return "Scheduled"
    return REASON_UNSCHEDULABLE if status.is_rejected else REASON_SCHEDULER_ERROR
