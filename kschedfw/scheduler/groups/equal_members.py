"""Trials of groups whose members are of a few kinds, without a search for each member.

Where no plugin has to be asked about a member (`Framework.planned_member`), equal members that are tried one after the
other differ in the amounts that those before them have taken. They are placed together (`turns`), with the
same draws as one by one. What a trial says of its members is made only for the placement that is taken.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol, overload

import attrs

from kschedfw.api.records import define, frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.groups import (
    CALL_IN,
    MEMBER_STATES,
    CallIn,
    GroupPlacement,
    MemberStates,
    PlacedGroup,
)
from kschedfw.framework.metrics import NO_METRICS
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.engine.plan import PlannedPod
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.generic_scheduler import GenericScheduler, ScheduleResult
from kschedfw.scheduler.groups.trial import (
    UNSCHEDULABLE,
    Feasible,
    GroupResult,
    MemberResult,
    PlacementResult,
    outcome,
)
from kschedfw.scheduler.groups.turns import EqualPlaces, compiled_search, place_in_turn

_FEWEST_TRIALS: Final = 2_000
"""The least number of searches for which loading the compiled search pays, which takes a second."""
_FEWEST_NODES: Final = 256
"""The number of nodes from which compiled loops are loaded for other pods as well."""
_FEWEST_MEMBERS: Final = 16
"""The least number of searches for which it is worth while to see whether members are equal."""
_PREEMPTION: Final = "DefaultPreemption"


class RefuseMember(Protocol):
    """Writes to the member why it fits on no node of the placement once the members before it have theirs."""

    def __call__(
        self, placement: GroupPlacement, member: MemberResult, before: Sequence[MemberResult], /
    ) -> None: ...


@frozen(eq=False)
class MemberVerdicts:
    """The answers of plugins to whether a placement suffices, before the first member and after each (v1.37).

    `feasible` is None where no plugin is asked: one member with a place is enough then. For equal members plugins
    answer by the numbers of members alone, and once too few are left that stays so (`TakesMembersAlike`).
    """

    _feasible: Feasible | None
    _members: int
    _scheduled: int
    """Count of members that have a node already."""

    def end_at_once(self, placement: GroupPlacement) -> bool:
        """Return whether trials end before their first member."""
        return self._after(0, placement, {})[1]

    def on(self, placement: GroupPlacement, places: Mapping[str, str]) -> tuple[Status, int]:
        """Return the status of the group whose first members get these places, and how many members are tried."""
        status, is_over = self._after(self._members, placement, places)
        if is_over:
            # While members get places, the number that may still be scheduled stays the same.
            tried = 1 + bisect(
                range(1, self._members + 1),
                False,
                key=lambda number: self._after(number, placement, places)[1],
            )
            return self._after(tried, placement, places)[0], tried
        if status.is_success and not places:
            status = Status.unschedulable(UNSCHEDULABLE)
        return status, self._members

    def _after(self, tried: int, placement: GroupPlacement, places: Mapping[str, str]) -> tuple[Status, bool]:
        """Return the status after this number of members, and whether the trial ends there."""
        if self._feasible is None:
            return Status.success(), False
        scheduled = self._scheduled + min(tried, len(places))
        return outcome(self._feasible(PlacedGroup(placement, places), self._members - tried, scheduled))


class EqualMembers:
    """The trials of one run of a group's algorithm.

    With `verdicts` (v1.37) permit isn't asked, and a trial may end before its last member.
    """

    def __init__(
        self,
        algorithm: GenericScheduler,
        framework: Framework,
        states: MemberStates,
        attempts: Sequence[Attempt],
        pods: Sequence[PlannedPod],
        refuse: RefuseMember,
        *,
        makes_room: bool,
        verdicts: MemberVerdicts | None,
    ) -> None:
        """Make the trials; `pods` are the members of `attempts` as planned."""
        self._algorithm = algorithm
        self._framework = framework
        self._states = states
        self._attempts = attempts
        self._uids = [attempt.pod.uid for attempt in attempts]
        self._pods = pods
        self._runs = _runs(pods)
        self._refuse = refuse
        self._verdicts = verdicts
        self._tried = 0
        """Count of members that were tried on all placements."""
        self._call = CallIn()
        self._permits: dict[int, Status] = {}
        points = framework.plugins_at(ExtensionPoint.POST_FILTER)
        self._counts_refusals = makes_room and _PREEMPTION in points and attempts[0].may_preempt
        self._refusals = 0
        """Count of members for which DefaultPreemption, which counts refusals, was not asked."""

    @classmethod
    def of(
        cls,
        algorithm: GenericScheduler,
        framework: Framework,
        states: MemberStates,
        attempts: Sequence[Attempt],
        placements: int,
        refuse: RefuseMember,
        *,
        makes_room: bool,
        verdicts: MemberVerdicts | None = None,
    ) -> EqualMembers | None:
        """Return the trials on this number of placements; None if each member needs a search of its own."""
        trials = len(attempts) * placements
        is_large = len(framework.handle.snapshot) >= _FEWEST_NODES or trials >= _FEWEST_TRIALS
        if trials < _FEWEST_MEMBERS or not is_large or compiled_search() is None:
            return None
        pods: list[PlannedPod] = []
        for attempt in attempts:
            planned = None
            # The node that a pod is nominated to is tried first, so such a member isn't like the others.
            if not attempt.pod.status.nominated_node_name:
                planned = framework.planned_member(attempt.pod, len(attempts))
            if planned is None:
                return None
            # A trial that ends early draws nothing for the members after its end, of which only more kinds have any.
            if verdicts is not None and pods and not pods[0].is_like(planned):
                return None
            pods.append(planned)
        return cls(
            algorithm, framework, states, attempts, pods, refuse, makes_room=makes_room, verdicts=verdicts
        )

    def on_each(self, placements: Sequence[GroupPlacement]) -> list[PlacementResult]:
        """Try the members on each placement. Return nothing where that takes searches one by one."""
        if self._verdicts is not None and self._verdicts.end_at_once(placements[0]):
            return []
        handle, begun = self._framework.handle, self._framework.handle.clock.monotonic()
        turns = place_in_turn(
            self._algorithm, self._framework, self._runs, [placement.nodes for placement in placements]
        )
        if turns is None:
            return []
        results = [self._result(*each) for each in zip(placements, turns, strict=True)]
        if handle.metrics is not NO_METRICS and self._tried:
            seconds = (handle.clock.monotonic() - begun) / self._tried
            for _ in range(self._tried):
                handle.metrics.scheduling_algorithm(seconds)
        return results

    def _result(self, placement: GroupPlacement, turns: Sequence[EqualPlaces]) -> PlacementResult:
        names, first = placement.nodes.table.names, 0
        places: dict[str, str] = {}
        for (_, number), found in zip(self._runs, turns, strict=True):
            uids = self._uids[first : first + len(found)]
            places.update(zip(uids, map(names.__getitem__, found.rows), strict=True))
            first += number
        if self._verdicts is not None:
            status, tried = self._verdicts.on(placement, places)
            self._tried += tried
            return PlacementResult(
                placement,
                status,
                _Members(self, placement, turns, tried),
                node_names=places,
            )
        self._tried += len(self._attempts)
        if self._counts_refusals:
            self._refusals += len(self._attempts) - len(places)
        does = bool(places) and (self._permit(1).is_success or self._permit(len(places)).is_success)
        status = Status.success() if does else Status.unschedulable(UNSCHEDULABLE)
        return PlacementResult(
            placement, status, _Members(self, placement, turns, len(self._attempts)), node_names=places
        )

    def end(self, result: GroupResult) -> None:
        """Make the members of the taken placement, while the snapshot is that of the cycle."""
        len(result.members)
        for _ in range(self._refusals):
            self._framework.handle.metrics.preemption_attempt()
        self._refusals = 0

    def _permit(self, scheduled: int) -> Status:
        """Return permit's answer when `scheduled` members have places; it is the same for equal members."""
        known = self._permits.get(scheduled)
        if known is None:
            attempt, states = self._attempts[0], self._states.copy()
            # Any node will do: permit answers by the number of scheduled members alone
            # (`TakesMembersAlike`).
            assumed = attempt.pod.bound_to(self._framework.handle.snapshot.node_infos[0].name)
            states.assume(assumed)
            states.number_scheduled = self._states.number_scheduled + scheduled
            known = self._permits[scheduled] = self._framework.ask_permit_plugins(
                self._state(attempt, states), assumed, assumed.node_name
            )
        return known

    def _state(self, attempt: Attempt, states: MemberStates) -> CycleState:
        state = CycleState()
        state.record_plugin_metrics = attempt.state.record_plugin_metrics
        state.write(MEMBER_STATES, states)
        state.write(CALL_IN, self._call)
        return state

    def members(
        self, placement: GroupPlacement, turns: Sequence[EqualPlaces], tried: int
    ) -> list[MemberResult]:
        """Return how each of the members that were tried fared."""
        names = placement.nodes.table.names
        members: list[MemberResult] = []
        placed: list[MemberResult] = []
        for (_, number), found in zip(self._runs, turns, strict=True):
            first = len(members)
            run = [self._member(position) for position in range(first, first + number)]
            members += run
            columns = zip(run, found.rows, found.feasible, found.looked_at, strict=False)
            for position, (member, row, feasible, looked_at) in enumerate(columns, start=first):
                member.result = ScheduleResult(names[row], looked_at, feasible)
                self._pods[position].write_to(member.attempt.state)
                placed.append(member)
            if left := run[len(found) :]:
                self._refuse(placement, left[0], placed)
                if self._counts_refusals:
                    # DefaultPreemption was asked for this member, and has counted it itself.
                    self._refusals -= 1
                for member in left[1:]:
                    _refuse_like(member, left[0])
        if self._verdicts is not None:
            return members[:tried]
        # Permit has members wait until enough have places, and lets all pass from then on.
        passing = bisect(range(1, len(placed) + 1), False, key=lambda number: self._permit(number).is_success)
        for position, member in enumerate(placed):
            member.permit = self._permit(1 if position < passing else len(placed))
        return members

    def _member(self, position: int) -> MemberResult:
        attempt = self._attempts[position]
        state = self._state(attempt, self._states)
        own = Attempt(
            attempt.info, attempt.framework, attempt.started, state, may_preempt=attempt.may_preempt
        )
        return MemberResult(own)


@define(eq=False)
class _Members(Sequence[MemberResult]):
    """The members of a trial, made when first read."""

    _trials: EqualMembers
    _placement: GroupPlacement
    _turns: Sequence[EqualPlaces]
    _tried: int
    _made: list[MemberResult] | None = attrs.field(default=None, init=False)

    def _all(self) -> list[MemberResult]:
        if self._made is None:
            self._made = self._trials.members(self._placement, self._turns, self._tried)
        return self._made

    @overload
    def __getitem__(self, index: int) -> MemberResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MemberResult]: ...
    def __getitem__(self, index: int | slice) -> MemberResult | Sequence[MemberResult]:
        return self._all()[index]

    def __iter__(self) -> Iterator[MemberResult]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _runs(pods: Sequence[PlannedPod]) -> list[tuple[PlannedPod, int]]:
    """Runs of equal consecutive pods: the first pod of each run, and the number of its pods."""
    runs: list[tuple[PlannedPod, int]] = []
    for pod in pods:
        if runs and runs[-1][0].is_like(pod):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((pod, 1))
    return runs


def _refuse_like(member: MemberResult, other: MemberResult) -> None:
    """Refuse a member as an equal one was refused just before."""
    status, error = other.status, other.status.error
    if isinstance(error, FitError):
        error = FitError(member.attempt.pod, error.number_of_nodes, error.diagnosis)
    member.status = Status(status.code, status.reasons, error=error)
    member.nomination = other.nomination
    member.like = other
