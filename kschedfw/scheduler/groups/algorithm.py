"""Finds nodes for all members of a group at once (kube-scheduler `podGroupSchedulingAlgorithm`).

Members are tried one after the other, in order, on each placement; each sees those before it as if they were bound.
Nothing of that lasts: what is found is submitted afterwards, by `GroupCycle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

import attrs

from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.gate_table import TOPOLOGY_AWARE_WORKLOAD_SCHEDULING
from kschedfw.framework.groups import (
    CALL_IN,
    MEMBER_STATES,
    CallIn,
    GroupPlacement,
    MemberStates,
    PlacedGroup,
    QueuedGroup,
)
from kschedfw.framework.parts import Parts
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.placement_hooks import PlacementScore
from kschedfw.framework.status import Code, Status
from kschedfw.framework.versions.v1_37 import PLACEMENT_FEASIBLE
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.binding_cycle import as_fit_error
from kschedfw.scheduler.decision_observer import DecisionObserver
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler, ScheduleResult
from kschedfw.scheduler.groups.equal_members import EqualMembers, MemberVerdicts
from kschedfw.scheduler.groups.trial import (
    UNSCHEDULABLE,
    AffinityLists,
    Feasible,
    GroupResult,
    MemberResult,
    MemberTrial,
    PlacementResult,
    outcome,
)
from kschedfw.scheduler.scheduling_cycle import make_room

_WAITING: Final = "pod group is waiting for preemption to complete"


class GroupAlgorithm:
    """Tries the members of a group on its placements.

    Without the gate TopologyAwareWorkloadScheduling the one placement is all nodes, and no plugin is asked.
    """

    def __init__(
        self,
        algorithm: GenericScheduler,
        parts: Parts,
    ) -> None:
        gates = parts.feature_gates
        self._algorithm = algorithm
        self._by_placements = gates.enabled(TOPOLOGY_AWARE_WORKLOAD_SCHEDULING)
        self._asks_whether_feasible = gates.follows(PLACEMENT_FEASIBLE)
        self._snapshot = parts.snapshot
        self._nominator = parts.nominator

    def run(
        self,
        framework: Framework,
        group: QueuedGroup,
        states: MemberStates,
        lists: AffinityLists,
        attempts: Sequence[Attempt],
        *,
        makes_room: bool,
        observe: GroupObservation | None = None,
        one_by_one: bool = False,
    ) -> GroupResult:
        """Try all placements, and choose one. With `makes_room`, post_filter runs for members that fit nowhere.

        With `one_by_one`, equal members are tried one by one as well, so that each has its cycle state and reservation.
        The snapshot and what plugins have reserved are afterwards as they were before.
        """
        state = CycleState()
        state.write(MEMBER_STATES, states)
        placements: Sequence[GroupPlacement] = (GroupPlacement("", self._snapshot.selection),)
        if self._by_placements:
            placements, status = framework.run_placement_generate_plugins(state, group, placements[0])
            # A rejection comes without placements, and ends as such below.
            if not status.is_success and not status.is_rejected:
                return GroupResult(status)
            if not placements:
                return GroupResult(Status.unschedulable("no feasible placements found"))
        feasible: Feasible | None = None
        if self._asks_whether_feasible and framework.can_stop_trials:
            feasible = partial(framework.run_placement_feasible_plugins, state, group)
        # Equal members get no decision each. So it must be that no plugin is asked between them, and nobody follows
        # them.
        equal = None
        if not one_by_one and (observe is None or not observe.follows_placed):

            def refuse(
                placement: GroupPlacement, member: MemberResult, before: Sequence[MemberResult]
            ) -> None:
                trial = MemberTrial(self._snapshot, self._nominator, states, lists)
                self._refuse(placement, member, before, trial, makes_room=makes_room, observe=observe)

            equal = EqualMembers.of(
                self._algorithm,
                framework,
                states,
                attempts,
                len(placements),
                refuse,
                makes_room=makes_room,
                verdicts=MemberVerdicts(feasible, len(attempts), states.number_scheduled)
                if self._asks_whether_feasible
                else None,
            )
        results = [] if equal is None else equal.on_each(placements)
        # Found out one by one where members differ, or can't be told from each other without a search.
        for placement in placements[len(results) :]:
            trial = MemberTrial(self._snapshot, self._nominator, states, lists)
            found = self._try(
                framework,
                placement,
                trial,
                attempts,
                makes_room=makes_room,
                observe=observe,
                feasible=feasible,
            )
            results.append(found)
            if found.status.code is Code.ERROR and self._by_placements:
                return GroupResult(found.status, results, taken=found)
        if self._by_placements:
            result = self._choice(framework, state, group, results)
        else:
            result = GroupResult(
                results[0].status, results, taken=results[0], is_waiting=results[0].is_waiting
            )
        if equal is not None:
            equal.end(result)
        return result

    def _choice(
        self,
        framework: Framework,
        state: CycleState,
        group: QueuedGroup,
        results: Sequence[PlacementResult],
    ) -> GroupResult:
        good = [each for each in results if each.status.is_success or each.is_waiting]
        if not good:
            first = results[0]
            # v1.37 prints the error that it ends with, without what the plugins said.
            why = UNSCHEDULABLE if self._asks_whether_feasible else first.status.message
            text = f"0/{len(results)} placements are available, first placement status: {why}"
            return GroupResult(Status.unschedulable(text), results, taken=first)
        best = good[0]
        scores: Sequence[PlacementScore] = ()
        if len(good) > 1:
            placed = [PlacedGroup(each.placement, each.node_names) for each in good]
            scores, status = framework.run_placement_score_plugins(state, group, placed)
            if not status.is_success:
                return GroupResult(status, results, taken=best)
            totals = [each.total for each in scores]
            # kube-scheduler draws among equals. Here the first by name wins, so that runs are reproducible.
            best = good[totals.index(max(totals))]
        return GroupResult(best.status, results, scores, best, best.is_waiting)

    def _try(
        self,
        framework: Framework,
        placement: GroupPlacement,
        trial: MemberTrial,
        attempts: Sequence[Attempt],
        *,
        makes_room: bool,
        observe: GroupObservation | None,
        feasible: Feasible | None,
    ) -> PlacementResult:
        members: list[MemberResult] = []
        # Up to v1.36, the group is schedulable from the first member on that permit lets pass: GangScheduling lets
        # none pass before `minCount` have a node. Since v1.37, plugins say whether it is, and permit comes later.
        status, is_waiting, preempts = Status.unschedulable(UNSCHEDULABLE), False, False
        call, before = CallIn(), trial.states.number_scheduled

        def progress() -> Status:
            assert feasible is not None
            node_names = {each.attempt.pod.uid: each.node_name for each in members if each.node_name}
            scheduled = before + len(node_names)
            return feasible(PlacedGroup(placement, node_names), len(attempts) - len(members), scheduled)

        try:
            if feasible is not None:
                status, is_over = outcome(progress())
                if is_over:
                    return PlacementResult(placement, status, members)
            for attempt in attempts:
                state = CycleState()
                state.record_plugin_metrics = attempt.state.record_plugin_metrics
                state.write(MEMBER_STATES, trial.states)
                state.write(CALL_IN, call)
                member = MemberResult(attrs.evolve(attempt, state=state))
                members.append(member)
                self._find_node(placement, member, makes_room=makes_room, observe=observe)
                if member.result is not None:
                    self._take_place(trial, member)
                if member.status.code is Code.ERROR:
                    failed = f"failed to schedule other pod from a pod group: {member.status.message}"
                    return PlacementResult(placement, Status.from_error(failed), members)
                preempts |= member.preempts
                if feasible is not None:
                    status, is_over = outcome(progress())
                    if is_over:
                        return PlacementResult(placement, status, members)
                elif self._asks_whether_feasible:
                    # Without a plugin that decides, one member with a node is enough.
                    status = Status.success()
                elif member.permit is not None and member.permit.is_success:
                    is_waiting = preempts
                    status = Status.unschedulable(UNSCHEDULABLE, _WAITING) if preempts else Status.success()
            if status.is_success and not any(each.node_name for each in members):
                status = Status.unschedulable(UNSCHEDULABLE)
            if self._asks_whether_feasible and status.is_success and preempts:
                is_waiting, status = True, Status.unschedulable(UNSCHEDULABLE, _WAITING)
            return PlacementResult(placement, status, members, is_waiting)
        finally:
            # In reverse order, as plugins have reserved.
            for member in reversed(members):
                if member.assumed is not None:
                    framework.run_reserve_plugins_unreserve(
                        member.attempt.state, member.assumed, member.node_name
                    )
            trial.undo()

    def _find_node(
        self,
        placement: GroupPlacement,
        member: MemberResult,
        *,
        makes_room: bool,
        observe: GroupObservation | None,
    ) -> None:
        attempt = member.attempt
        handle = attempt.framework.handle
        begun = handle.clock.monotonic()
        self._ask(placement, member, makes_room=makes_room, observe=observe)
        handle.metrics.scheduling_algorithm(handle.clock.monotonic() - begun)

    def _ask(
        self,
        placement: GroupPlacement,
        member: MemberResult,
        *,
        makes_room: bool,
        observe: GroupObservation | None,
    ) -> None:
        attempt = member.attempt
        observer = None if observe is None else observe.member(placement, attempt)
        try:
            member.result = self._algorithm.schedule_within(
                attempt.framework, attempt.state, attempt.pod, placement.nodes, observer=observer
            )
        except NoNodesAvailableError as error:
            member.status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (str(error),), error=error)
        except FitError as error:
            nomination = make_room(attempt, error) if makes_room else None
            member.status = Status(Code.UNSCHEDULABLE, (str(error),), error=error)
            member.nomination = nomination
            if nomination is not None and nomination.nominated_node_name:
                member.result = ScheduleResult(nomination.nominated_node_name, len(placement.nodes), 0)
                member.preempts = True
        except SchedulingError as error:
            member.status = error.status

    def _refuse(
        self,
        placement: GroupPlacement,
        member: MemberResult,
        before: Sequence[MemberResult],
        trial: MemberTrial,
        *,
        makes_room: bool,
        observe: GroupObservation | None,
    ) -> None:
        """Find out why a member fits on no node once those before it have theirs."""
        try:
            trial.assume([(each.attempt.info.pod_info, each.node_name) for each in before])
            with self._algorithm.trial():
                self._ask(placement, member, makes_room=makes_room, observe=observe)
        finally:
            trial.undo()
        assert member.result is None, f"{member.attempt.pod.key} fits on {member.node_name} after all"

    def _take_place(self, trial: MemberTrial, member: MemberResult) -> None:
        attempt, host = member.attempt, member.node_name
        framework, info = attempt.framework, attempt.info.pod_info
        (assumed,) = trial.assume([(info, host)])
        member.assumed = assumed
        status = framework.run_reserve_plugins_reserve(attempt.state, assumed, host)
        # Since v1.37 permit is asked when the member is submitted, as for a single pod.
        if status.is_success and not self._asks_whether_feasible:
            status = framework.ask_permit_plugins(attempt.state, assumed, host)
            member.permit = status
        if status.is_success or status.is_wait:
            return
        framework.run_reserve_plugins_unreserve(attempt.state, assumed, host)
        trial.forget(info, assumed)
        member.assumed = member.result = None
        member.preempts = False
        member.status = as_fit_error(attempt, host, status) if status.is_rejected else status


class GroupObservation(Protocol):
    """Follows the trials of a group."""

    @property
    def follows_placed(self) -> bool:
        """Tell whether decisions on members that get a node are followed, and not only those on members that get none.

        Equal members are placed without a decision on each (`EqualMembers`) unless they are followed.
        """
        ...

    def member(self, placement: GroupPlacement, attempt: Attempt) -> DecisionObserver | None:
        """Return the observer of the decision on a member; None if nobody follows it.

        Of equal members that are refused one after the other, only the first may be asked about (`MemberResult.like`).
        The attempt has the cycle state of this trial.
        """
        ...
