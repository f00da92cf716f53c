"""The handling of failed attempts: requeueing, condition and event (kube-scheduler `handleSchedulingFailure`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from kschedfw.api import KschedfwError, Pod, PodCondition
from kschedfw.api.records import define
from kschedfw.cluster.errors import LostRaceError
from kschedfw.framework.cluster_client import ClusterClient, record_event
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.metrics import AttemptResult
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.parts import Parts
from kschedfw.framework.results import NominatingMode, PostFilterResult
from kschedfw.framework.status import PluginFailure, Status
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.queue import PodAlreadyQueuedError, SchedulingQueue
from kschedfw.scheduler.queue.protocol import QueueProfile
from kschedfw.scheduler.structured import Structured

REASON_UNSCHEDULABLE = "Unschedulable"
REASON_SCHEDULER_ERROR = "SchedulerError"
REASON_SCHEDULING_GATED = "SchedulingGated"

# API servers refuse longer notes of events (kube-scheduler cuts at `NoteLengthLimit`, too).
_MAX_MESSAGE = 1024
_CUT = " ..."
_RACES = 5
"""The number of failures in a row after which even a lost race is followed by a backoff."""

_log = logging.getLogger(__name__)


@define(eq=False)
class FailureHandler:
    """The handler of failed attempts, in scheduling and in binding cycles. Thread-safe."""

    _parts: Parts
    _queue: SchedulingQueue

    def handle(self, attempt: Attempt, status: Status, nomination: PostFilterResult | None) -> None:
        """Requeue the pod if it still exists and is unbound; set its nomination, and record why it isn't scheduled.

        `nomination` None keeps an earlier one. Nothing is recorded for an attempt that Ctrl-C has ended. A pod
        that lost a race is tried again at once, without a record, unless it keeps losing.
        """
        pod = attempt.pod
        interrupted = isinstance(status.error, KeyboardInterrupt)
        at_once = _lost_race(status.error) and attempt.info.consecutive_errors_count < _RACES
        if not interrupted:
            self._note(attempt, status)
        present = look_up(self._parts.cluster, pod)
        if present is None or present.uid != pod.uid or present.node_name:
            # The pod is gone, or bound after all: the response to a binding may get lost.
            self._queue.done(pod.uid)
            self._parts.nominator.delete(pod)
            return
        self._requeue(attempt, status, present)
        # Before the cluster is written to: the next cycle must count the nomination, whose event comes later.
        self._nominate(attempt.info.pod_info, nomination)
        if interrupted or at_once:
            patch_nomination(self._parts.cluster, present, "")
        else:
            self._tell(present, status, nomination)
        if at_once:
            self._queue.activate((present,))

    def _note(self, attempt: Attempt, status: Status) -> None:
        if not status.is_rejected:
            _log.log(
                logging.INFO if _lost_race(status.error) else logging.ERROR,
                "scheduling %s failed: %s",
                attempt.pod.key,
                status.message,
                exc_info=bug_behind(status.error),
            )
        elif _log.isEnabledFor(logging.INFO):
            why = "no fit; " if isinstance(status.error, FitError) else ""
            message = f"Unable to schedule pod; {why}waiting"
            _log.info(Structured(message, pod=attempt.pod.key, err=status.message))
        self._parts.metrics.scheduling_attempt(
            AttemptResult.UNSCHEDULABLE if status.is_rejected else AttemptResult.ERROR,
            attempt.framework.profile.scheduler_name,
            self._parts.clock.monotonic() - attempt.started,
        )

    def _requeue(self, attempt: Attempt, status: Status, present: Pod) -> None:
        info = attempt.info
        if isinstance(status.error, FitError) and not status.error.diagnosis.post_filter_failed:
            # Otherwise no plugin is named, and the queue tries the pod again after a backoff, as after an
            # error.
            info.unschedulable_plugins = set(status.error.diagnosis.unschedulable_plugins)
            info.pending_plugins = set(status.error.diagnosis.pending_plugins)
            info.retry_at = status.error.diagnosis.retry_at
        info.update(present)
        # Raised if the pod was deleted and created again in the meantime.
        with suppress(PodAlreadyQueuedError):
            self._queue.add_unschedulable_if_not_present(info, keeps_turn=attempt.keeps_turn)

    def _nominate(self, info: PodInfo, nomination: PostFilterResult | None) -> None:
        if nomination is None or nomination.mode is NominatingMode.NOOP:
            self._parts.nominator.add(info)
        elif nomination.nominated_node_name:
            self._parts.nominator.add(info, nomination.nominated_node_name)
        else:
            self._parts.nominator.delete(info.pod)

    def _tell(self, pod: Pod, status: Status, nomination: PostFilterResult | None) -> None:
        reason = REASON_UNSCHEDULABLE if status.is_rejected else REASON_SCHEDULER_ERROR
        message = status.message
        record_event(self._parts.cluster, pod, "Warning", "FailedScheduling", truncated(message))
        nominated: str | None = None
        if nomination is not None and nomination.mode is NominatingMode.OVERRIDE:
            nominated = nomination.nominated_node_name
        patch_condition(
            self._parts.cluster, pod, PodCondition("PodScheduled", "False", reason, message), nominated
        )


def patch_condition(
    cluster: ClusterClient, pod: Pod, condition: PodCondition, nominated_node_name: str | None = None
) -> None:
    """Set a condition and the nomination (None keeps it) if that changes anything; never raise."""
    same_nomination = nominated_node_name is None or nominated_node_name == pod.status.nominated_node_name
    # An unchanged condition isn't written: each write is a request, and a pod may fail many times for one
    # reason.
    if condition in pod.status.conditions and same_nomination:
        return
    try:
        cluster.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)
    # A cluster may raise anything; the pod is retried all the same.
    except Exception as error:
        _log.warning("can't patch the status of %s: %s", pod.key, error)


def patch_nomination(cluster: ClusterClient, pod: Pod, node_name: str) -> None:
    """Set the pod's nominated node, or clear it with an empty name; never raise."""
    if pod.status.nominated_node_name == node_name:
        return
    try:
        cluster.patch_pod_status(pod, nominated_node_name=node_name)
    # A cluster may raise anything; the pod is retried all the same.
    except Exception as error:
        _log.warning("can't nominate %s to node %s: %s", pod.key, node_name, error)


class FailedGates:
    """Pods that are gated because a pre_enqueue plugin failed, until that is reported. Thread-safe.

    The queue calls plugins with its lock held, under which the cluster must not be called. So failures are
    reported later, by `tell`: in the log, the pod's condition and an event.
    """

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._failed: dict[str, tuple[Pod, Status]] = {}
        self._lock = threading.Lock()

    def watching(self, profile: QueueProfile) -> QueueProfile:
        """Return the same profile, with its failures collected."""
        return _WatchedProfile(profile, self._note)

    def _note(self, pod: Pod, status: Status) -> None:
        with self._lock:
            self._failed[pod.uid] = pod, status

    def tell(self) -> None:
        """Report the collected failures of pods that still exist. Each failure is reported once."""
        # Without the lock: what is noted at this moment is told the next time.
        if not self._failed:
            return
        with self._lock:
            failed, self._failed = self._failed, {}
        for pod, status in failed.values():
            present = look_up(self._cluster, pod)
            condition = PodCondition("PodScheduled", "False", REASON_SCHEDULER_ERROR, status.message)
            if (
                present is None
                or present.uid != pod.uid
                or present.node_name
                or condition in present.status.conditions
            ):
                continue
            _log.error("%s is gated: %s", pod.key, status.message, exc_info=bug_behind(status.error))
            record_event(self._cluster, present, "Warning", "FailedScheduling", truncated(status.message))
            patch_condition(self._cluster, present, condition)


class _WatchedProfile:
    def __init__(self, profile: QueueProfile, note: Callable[[Pod, Status], None]) -> None:
        # The profile's own method, without a wrapper: a queue compares pods often.
        self.less = profile.less
        self.events_to_register = profile.events_to_register
        self._ask = profile.run_pre_enqueue_plugins
        self._note = note

    def run_pre_enqueue_plugins(self, pod: Pod) -> Status:
        status = self._ask(pod)
        if not (status.is_success or status.is_rejected):
            self._note(pod, status)
        return status


def look_up(cluster: ClusterClient, pod: Pod) -> Pod | None:
    """Return the pod as it is in the cluster; the given state if the cluster can't be reached."""
    try:
        return cluster.get(Pod, pod.key)
    # Take the pod as pending: an unneeded attempt is better than a lost pod.
    except Exception:
        _log.exception("can't look up %s", pod.key)
        return pod


def truncated(message: str) -> str:
    """Return a message short enough for an event: at most 1024 characters."""
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - len(_CUT)] + _CUT


def bug_behind(error: BaseException | None) -> BaseException | None:
    """Return the error if it is a bug, whose traceback is needed; None if its message suffices."""
    *_, root = [None, *_causes(error)]
    return None if isinstance(root, KschedfwError | PluginFailure) else error


def _lost_race(error: BaseException | None) -> bool:
    """Return whether another scheduler has bound a pod to the node in the meantime."""
    return any(isinstance(each, LostRaceError) for each in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, then its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__
