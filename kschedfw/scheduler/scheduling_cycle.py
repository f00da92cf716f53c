"""The scheduling cycle: from a pod to its reserved and permitted place (kube-scheduler `schedulingCycle`)."""

from __future__ import annotations

import logging
from typing import Protocol

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.clock import Clock
from kschedfw.framework.cycle_state import CycleState, take_pods_to_activate
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.metrics import MetricsRecorder
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler.attempt import CLEAR_NOMINATION, Attempt
from kschedfw.scheduler.binding_cycle import as_fit_error, take_place
from kschedfw.scheduler.cache import Cache, CacheError
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.failure import FailureHandler, bug_behind
from kschedfw.scheduler.generic_scheduler import ScheduleResult
from kschedfw.scheduler.queue import SchedulingQueue

_log = logging.getLogger(__name__)


class Algorithm(Protocol):
    """An algorithm that finds the node for a pod: the protocol of `GenericScheduler`, with the same errors."""

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult: ...


@define(eq=False)
class SchedulingCycle:
    """The serial part of an attempt: find a node, or make room, and take the place."""

    _cache: Cache
    _queue: SchedulingQueue
    _nominator: Nominator
    _failures: FailureHandler
    _clock: Clock
    _metrics: MetricsRecorder

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

    def _algorithm_done(self, attempt: Attempt) -> None:
        self._metrics.scheduling_algorithm(self._clock.monotonic() - attempt.started)

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
            status = take_place(attempt, self._cache, self._nominator)
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
    # post_filter failed, for example since the cluster can't be reached
    if bug_behind(status.error) is not None:
        error.diagnosis.post_filter_failed = True
        _log.error("making room for %s failed: %s", attempt.pod.key, status.message, exc_info=status.error)
    return nomination
