"""What follows when an attempt fails: back to the queue, and word to the cluster (`handleSchedulingFailure`)."""

from __future__ import annotations

import logging
from contextlib import suppress

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import Cluster
from kschedfw.framework.clock import Clock
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.metrics import NO_METRICS, AttemptResult, MetricsRecorder
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.results import NominatingMode, PostFilterResult
from kschedfw.framework.status import PluginFailure, Status
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.nominator import Nominator
from kschedfw.scheduler.queue import PodAlreadyQueuedError, PodQueue

REASON_UNSCHEDULABLE = "Unschedulable"
REASON_SCHEDULER_ERROR = "SchedulerError"
REASON_SCHEDULING_GATED = "SchedulingGated"

_MAX_MESSAGE = 1024
_CUT = " ..."

_log = logging.getLogger(__name__)


class FailureHandler:
    """Takes failed attempts to their end. Thread-safe, as scheduling and binding cycles both fail."""

    def __init__(
        self,
        cluster: Cluster,
        queue: PodQueue,
        nominator: Nominator,
        clock: Clock,
        metrics: MetricsRecorder = NO_METRICS,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._nominator = nominator
        self._clock = clock
        self._metrics = metrics

    def handle(self, attempt: Attempt, status: Status, nomination: PostFilterResult | None) -> None:
        """Requeue the pod if it is still there and unbound, note its nomination, record why it isn't scheduled.

        `nomination` None leaves an earlier one as it is.
        """
        pod = attempt.pod
        reason = REASON_UNSCHEDULABLE if status.is_rejected else REASON_SCHEDULER_ERROR
        if reason == REASON_SCHEDULER_ERROR:
            _log.error(
                "scheduling %s failed: %s", pod.key, status.message, exc_info=_bug_behind(status.error)
            )
        self._metrics.scheduling_attempt(
            AttemptResult.UNSCHEDULABLE if status.is_rejected else AttemptResult.ERROR,
            attempt.framework.profile.scheduler_name,
            self._clock.monotonic() - attempt.started,
        )
        present = self._look_up(pod)
        if present is None or present.uid != pod.uid or present.node_name:
            # It is gone, or bound after all: an answer may get lost after the deed was done.
            self._queue.done(pod.uid)
            self._nominator.delete(pod)
            return
        self._requeue(attempt, status, present)
        self._nominate(attempt.info.pod_info, nomination)
        self._tell(present, reason, status.message, nomination)

    def _look_up(self, pod: Pod) -> Pod | None:
        try:
            return self._cluster.get(Pod, pod.key)
        except (
            Exception
        ):  # it can't be reached: rather an attempt too many than a pod that nobody looks after
            _log.exception("can't look up %s", pod.key)
            return pod

    def _requeue(self, attempt: Attempt, status: Status, present: Pod) -> None:
        info = attempt.info
        if isinstance(status.error, FitError):
            info.unschedulable_plugins = set(status.error.diagnosis.unschedulable_plugins)
            info.pending_plugins = set(status.error.diagnosis.pending_plugins)
            info.retry_at = status.error.diagnosis.retry_at
        info.pod_info = PodInfo.of(present)
        with suppress(PodAlreadyQueuedError):  # deleted and made again meanwhile
            self._queue.add_unschedulable_if_not_present(info)

    def _nominate(self, info: PodInfo, nomination: PostFilterResult | None) -> None:
        if nomination is None or nomination.mode is NominatingMode.NOOP:
            self._nominator.add(info)
        elif nomination.nominated_node_name:
            self._nominator.add(info, nomination.nominated_node_name)
        else:
            self._nominator.delete(info.pod)

    def _tell(self, pod: Pod, reason: str, message: str, nomination: PostFilterResult | None) -> None:
        self._cluster.record_event(pod, "Warning", "FailedScheduling", truncated(message))
        nominated: str | None = None
        if nomination is not None and nomination.mode is NominatingMode.OVERRIDE:
            nominated = nomination.nominated_node_name
        patch_condition(self._cluster, pod, PodCondition("PodScheduled", "False", reason, message), nominated)


def patch_condition(
    cluster: Cluster, pod: Pod, condition: PodCondition, nominated_node_name: str | None = None
) -> None:
    """Set a condition and the nomination (None: leave it) where that changes anything; never raises."""
    same_nomination = nominated_node_name is None or nominated_node_name == pod.status.nominated_node_name
    if condition in pod.status.conditions and same_nomination:
        return
    try:
        cluster.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)
    except Exception as error:  # whatever kind of cluster this is
        _log.warning("can't patch the status of %s: %s", pod.key, error)


def truncated(message: str) -> str:
    """A message short enough for an event: at most 1024 characters."""
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - len(_CUT)] + _CUT


def _bug_behind(error: BaseException | None) -> BaseException | None:
    """The error, if it shouldn't happen and so needs its traceback; not one that says clearly what is wrong."""
    root = error
    while root is not None and root.__cause__ is not None:
        root = root.__cause__
    return None if isinstance(root, KschedfwError | PluginFailure) else error
