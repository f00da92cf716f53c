"""Attempts: for pods of the queue, in turn, and for pods that a caller names, whose places are held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.cluster import Cluster
from kschedfw.framework.clock import Clock
from kschedfw.framework.cluster_client import record_event
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.metrics import PluginSampling
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Status
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.binding_cycle import release
from kschedfw.scheduler.bindings import Bindings
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.failure import look_up
from kschedfw.scheduler.groups import GroupCycle, MemberRefusal
from kschedfw.scheduler.placement import GroupPlaces, Placement, Placements, as_exception
from kschedfw.scheduler.queue import SchedulingQueue
from kschedfw.scheduler.scheduling_cycle import Algorithm, SchedulingCycle


@define(eq=False)
class Attempts:
    """Begins attempts, and undoes those that raise. The caller sees to it that cycles run one after another.

    With `sampling`, plugins are measured in the attempts that it picks.
    """

    _cluster: Cluster
    _frameworks: Mapping[str, Framework]
    _cache: Cache
    _queue: SchedulingQueue
    _clock: Clock
    _cycle: SchedulingCycle
    _bindings: Bindings
    _placements: Placements
    _sampling: PluginSampling | None

    # In turn

    def begin(self, info: QueuedPodInfo, number: int) -> Attempt | None:
        """Return the attempt of a popped pod, in the cycle of that number; None if it needs none."""
        framework = self._frameworks.get(info.pod.spec.scheduler_name)
        if framework is None or self.is_superfluous(info.pod):
            # It goes back to no queue, so its flight ends here: the queue keeps events for as long as a pod
            # is in flight.
            self._queue.done(info.pod.uid)
            return None
        attempt = Attempt(info, framework, self._clock.monotonic())
        attempt.state.record_plugin_metrics = self._sampling is not None and self._sampling()
        attempt.state.scheduling_cycle = number
        return attempt

    def is_superfluous(self, pod: Pod) -> bool:
        """Tell whether the pod is being deleted, of which there is an event, or has a place already."""
        if pod.is_terminating:
            record_event(
                self._cluster, pod, "Warning", "FailedScheduling", f"skip schedule deleting pod: {pod.key}"
            )
            return True
        # An event during its flight may have put it into the queue again before it was assumed.
        return self._cache.is_assumed(pod)

    def bind_if(self, attempt: Attempt, take_place: Callable[[], Status]) -> None:
        """Begin the binding cycle of a pod if `take_place` succeeds."""
        try:
            if take_place().is_success:
                attempt.is_binding = True
                self._bindings.start(attempt)
        except BaseException as error:
            # Once the binding cycle is started, `Bindings` undoes the attempt, on whatever thread it runs.
            if not attempt.is_binding:
                self._take_back(attempt, error)
            if not isinstance(error, Exception):
                raise

    def _take_back(self, attempt: Attempt, error: BaseException) -> None:
        """Undo a failed attempt. No error of a single pod may end the loop, or leave the pod assumed."""
        if attempt.assumed is not None:
            # Permit may have had the pod wait before something else raised.
            attempt.framework.waiting_pods.remove(attempt.pod.uid)
            release(attempt, self._cache)
        self._cycle.fail(attempt, Status.from_error(error))

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
            self._take_back(attempt, error)
            raise
        if attempt.assumed is None or not status.is_success:
            raise as_exception(status)
        return self._placements.hold(attempt)

    def place_group(self, pods: Sequence[Pod], groups: GroupCycle, *, preempt: bool) -> GroupPlaces:
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
                self._take_back(attempt, error)
            raise
        if attempts:
            refused |= groups.place(attempts, hold)
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
        present = look_up(self._cluster, pod)
        if present is not None and present.node_name:
            problem = f"pod {pod.key} is bound to node {present.node_name} already"
            raise SchedulingError(Status.from_error(problem))
        attempt = Attempt(self._queue.take(pod), framework, self._clock.monotonic())
        attempt.may_preempt = preempt and present is not None
        return attempt
