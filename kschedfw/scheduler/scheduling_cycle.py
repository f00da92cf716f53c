"""The scheduling cycle: from a pod to its reserved and permitted place (kube-scheduler `schedulingCycle`).

`Attempts` begins cycles: for pods of the queue, in turn, and for pods that a caller names, whose places are held.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from kschedfw.api import group_key
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cluster_client import record_event
from kschedfw.framework.cycle_state import CycleState, StateKeyError, take_pods_to_activate
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.parts import Parts
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.calls import named
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler.attempt import CLEAR_NOMINATION, Attempt, MemberRefusal, Start
from kschedfw.scheduler.binding_cycle import as_fit_error, release, take_place
from kschedfw.scheduler.bindings import Bindings
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import CacheError, SchedulingError
from kschedfw.scheduler.failure import FailureHandler, bug_behind, look_up
from kschedfw.scheduler.generic_scheduler import ScheduleResult
from kschedfw.scheduler.placement import GroupPlaces, Placement, Placements, as_exception
from kschedfw.scheduler.queue import SchedulingQueue
from kschedfw.scheduler.queue.protocol import Place

_log = logging.getLogger(__name__)


class Algorithm(Protocol):
    """An algorithm that finds the node for a pod: the protocol of `GenericScheduler`, with the same errors."""

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult: ...


@define(eq=False)
class SchedulingCycle:
    """The serial part of an attempt: find a node, or make room, and take the place."""

    _parts: Parts
    _cache: Cache
    _queue: SchedulingQueue
    _failures: FailureHandler

    def run(self, attempt: Attempt, algorithm: Algorithm) -> Status:
        """Return success if the pod is assumed, reserved and permitted, or waits for permission; handle failures."""
        try:
            result = algorithm.schedule(attempt.framework, attempt.state, attempt.pod)
        except NoNodesAvailableError as error:
            self._algorithm_done(attempt)
            status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (str(error),), error=error)
            return self.fail(attempt, status)
        except FitError as error:
            return self._make_room(attempt, error)
        except SchedulingError as error:
            self._algorithm_done(attempt)
            return self.fail(attempt, error.status)
        self._algorithm_done(attempt)
        return self.assume(attempt, result)

    def fail(
        self, attempt: Attempt, status: Status, nomination: PostFilterResult | None = CLEAR_NOMINATION
    ) -> Status:
        """Give the pod back to the queue, and record why. Return the status."""
        self._failures.handle(attempt, status, nomination)
        return status

    def is_superfluous(self, pod: Pod) -> bool:
        """Tell whether the pod is being deleted, of which there is an event, or has a place already."""
        if pod.is_terminating:
            record_event(
                self._parts.cluster,
                pod,
                "Warning",
                "FailedScheduling",
                f"skip schedule deleting pod: {pod.key}",
            )
            return True
        # An event during its flight may have put it into the queue again before it was assumed.
        return self._cache.is_assumed(pod)

    def take_back(self, attempt: Attempt, error: BaseException) -> None:
        """Undo a failed attempt. No error of a single pod may end the loop, or leave the pod assumed."""
        if attempt.assumed is not None:
            # Permit may have had the pod wait before something else raised.
            attempt.framework.waiting_pods.remove(attempt.pod.uid)
            release(attempt, self._cache)
        self.fail(attempt, Status.from_error(error))

    def look(self, members: Sequence[Pod]) -> None:
        """Update the snapshot for the cycle of these members of a group."""
        self._cache.update_snapshot(self._parts.snapshot, members=members)

    def fail_those_in_flight(self, attempts: Sequence[Attempt], error: BaseException) -> None:
        """Give back the pods of these attempts that are still in flight and have no place."""
        for attempt in attempts:
            pod = attempt.pod
            if self._queue.place(pod.uid) is Place.IN_FLIGHT and not self._cache.is_assumed(pod):
                self.fail(attempt, Status.from_error(error))

    def _algorithm_done(self, attempt: Attempt) -> None:
        self._parts.metrics.scheduling_algorithm(self._parts.clock.monotonic() - attempt.started)

    def _make_room(self, attempt: Attempt, error: FitError) -> Status:
        # Before the duration is told: kube-scheduler's latency of the algorithm contains post_filter.
        nomination = make_room(attempt, error)
        self._algorithm_done(attempt)
        return self.fail(attempt, Status(Code.UNSCHEDULABLE, (str(error),), error=error), nomination)

    def assume(self, attempt: Attempt, result: ScheduleResult) -> Status:
        """Take the place that was found; return success if the pod is permitted, or waits for permission."""
        host = result.suggested_host
        # Set before the call: if Ctrl-C interrupts it, the caller must know what to undo.
        attempt.result, attempt.assumed = result, attempt.pod.bound_to(host)
        try:
            status = take_place(attempt, self._cache, self._parts.nominator)
        except CacheError as error:
            # Nothing was assumed, so nothing is to be undone.
            attempt.assumed = None
            return self.fail(attempt, Status.from_error(error))
        if not (status.is_success or status.is_wait):
            return self.fail(attempt, as_fit_error(attempt, host, status) if status.is_rejected else status)
        self._queue.activate(take_pods_to_activate(attempt.state))
        return Status.success()


def make_room(attempt: Attempt, error: FitError) -> PostFilterResult | None:
    """Let post_filter plugins make room, and add their messages to the error.

    Return the change of the pod's nomination.
    """
    if not (attempt.may_preempt and attempt.framework.has_post_filter_plugins):
        return CLEAR_NOMINATION
    nomination, status = attempt.framework.run_post_filter_plugins(
        attempt.state, attempt.pod, error.diagnosis.node_to_status
    )
    error.diagnosis.post_filter_message = status.message
    if nomination is not None:
        error.diagnosis.nominated_node_name = nomination.nominated_node_name
    # A plugin's state is missing if another one's pre_filter refused the pod first: nothing has failed. The condition
    # has the text, as kube-scheduler's has for each pod whose PersistentVolumeClaim is missing.
    is_refused_early = error.diagnosis.pre_filter_message is not None
    unprepared = is_refused_early and isinstance(status.error, StateKeyError)
    if status.code is Code.ERROR and not unprepared:
        # The diagnosis has the message alone, as in kube-scheduler's condition. The log also names plugin and hook.
        failure = named(status, "post_filter", status.plugin)
        bug = bug_behind(failure.error)
        # Raised, for example since the cluster can't be reached.
        error.diagnosis.post_filter_failed = bug is not None
        _log.error("making room for %s failed: %s", attempt.pod.key, failure.message, exc_info=bug)
    return nomination


PlaceMembers: TypeAlias = Callable[[Sequence[Attempt], Start], Mapping[str, MemberRefusal]]
"""Schedules members of a group, and returns those without a place, by uid (`GroupCycle.place`)."""


@define(eq=False)
class Attempts:
    """Begins attempts, and undoes those that raise. The caller sees to it that cycles run one after another.

    Plugins are measured in the attempts that the parts' `plugin_sampling` picks.
    """

    _parts: Parts
    _frameworks: Mapping[str, Framework]
    _queue: SchedulingQueue
    _cycle: SchedulingCycle
    _bindings: Bindings
    _placements: Placements
    remember: Callable[[], Callable[[], None]] | None = None
    """Returns a function that undoes the draws of an attempt; for virtual time, where refused pods rest."""
    run_group: Callable[[QueuedPodInfo], object] | None = None
    """Schedules a popped pod's group; None without the gate GenericWorkload."""
    _number: int = 0
    """The number of pods taken from the queue."""

    # In turn

    def begin(self, info: QueuedPodInfo) -> Attempt | None:
        """Return the attempt of a popped pod; None if it needs none, or was scheduled with its group."""
        self._number += 1
        if self.run_group is not None and group_key(info.pod):
            self.run_group(info)
            self._parts.evictions.carry_out()
            return None
        attempt = self.of(info)
        if attempt is not None:
            sampling = self._parts.plugin_sampling
            attempt.state.record_plugin_metrics = sampling is not None and sampling()
            attempt.state.scheduling_cycle = self._number
        return attempt

    def of(self, info: QueuedPodInfo) -> Attempt | None:
        """Return the attempt of a pod in flight; end the flight and return None if it needs none."""
        framework = self._frameworks.get(info.pod.spec.scheduler_name)
        if framework is None or self._cycle.is_superfluous(info.pod):
            # It goes back to no queue, so its flight ends here: the queue keeps events for as long as a pod
            # is in flight.
            self._queue.done(info.pod.uid)
            return None
        return Attempt(info, framework, self._parts.clock.monotonic())

    def make(self, attempt: Attempt, algorithm: Algorithm) -> None:
        """Find the pod a node, and begin its binding cycle."""
        # A pod that rests is tried again though nothing has changed since its last attempt, since others don't rest.
        rested = self.remember is not None and self._queue.rests(attempt.pod.uid)
        undo = self.remember() if self.remember is not None and rested else None
        self.bind_if(attempt, partial(self._cycle.run, attempt, algorithm))
        if undo is not None and self._queue.rests(attempt.pod.uid):
            # Otherwise decisions would depend on how often it was tried in vain.
            undo()
        self._parts.evictions.carry_out()

    def bind_if(self, attempt: Attempt, take_place: Callable[[], Status]) -> None:
        """Begin the binding cycle of a pod if `take_place` succeeds."""
        try:
            if take_place().is_success:
                attempt.is_binding = True
                self._bindings.start(attempt)
        except BaseException as error:
            # Once the binding cycle is started, `Bindings` undoes the attempt, on whatever thread it runs.
            if not attempt.is_binding:
                self._cycle.take_back(attempt, error)
            if not isinstance(error, Exception):
                raise

    # Out of turn

    def place(self, pod: Pod, algorithm: Algorithm, *, preempt: bool) -> Placement:
        """Find a node for the pod, and hold the place. Raises what `Scheduler.place` does."""
        framework = self._framework_of(pod)
        # A pod from the queue has passed its gates; this one may never have been there.
        if not (allowed := framework.run_pre_enqueue_plugins(pod)).is_success:
            raise SchedulingError(allowed)
        attempt = self._out_of_turn(pod, framework, preempt=preempt)
        try:
            status = self._cycle.run(attempt, algorithm)
        except BaseException as error:
            self._cycle.take_back(attempt, error)
            raise
        if attempt.assumed is None or not status.is_success:
            raise as_exception(status)
        return self._placements.hold(attempt)

    def place_group(
        self,
        pods: Sequence[Pod],
        together: PlaceMembers,
        *,
        preempt: bool,
    ) -> GroupPlaces:
        """Find nodes for these members of a group, and hold the places. Raises what `Scheduler.place_group` does."""
        placements: list[Placement] = []

        def hold(attempt: Attempt, take_place: Callable[[], Status]) -> None:
            status = take_place()
            if attempt.assumed is not None and status.is_success:
                placements.append(self._placements.hold(attempt))

        refused: dict[str, MemberRefusal] = {}
        attempts: list[Attempt] = []
        try:
            for pod in pods:
                framework = self._framework_of(pod)
                if (allowed := framework.run_pre_enqueue_plugins(pod)).is_success:
                    attempts.append(self._out_of_turn(pod, framework, preempt=preempt))
                else:
                    refused[pod.uid] = MemberRefusal(allowed)
        except BaseException as error:
            # Pods before the one that failed are in flight already.
            for attempt in attempts:
                self._cycle.take_back(attempt, error)
            raise
        if attempts:
            refused |= together(attempts, hold)
        return GroupPlaces(tuple(placements), refused)

    def _framework_of(self, pod: Pod) -> Framework:
        if not isinstance(pod, Pod):
            raise TypeError(f"pod: expected a Pod, found {pod!r}")
        framework = self._frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            known = ", ".join(map(repr, self._frameworks))
            raise ProfileError(
                f"no profile has the scheduler name {pod.spec.scheduler_name!r}; there are {known}"
            )
        return framework

    def _out_of_turn(self, pod: Pod, framework: Framework, *, preempt: bool) -> Attempt:
        present = look_up(self._parts.cluster, pod)
        if present is not None and present.node_name:
            problem = f"pod {pod.key} is bound to node {present.node_name} already"
            raise SchedulingError(Status.from_error(problem))
        attempt = Attempt(self._queue.take(pod), framework, self._parts.clock.monotonic())
        attempt.may_preempt = preempt and present is not None
        return attempt
