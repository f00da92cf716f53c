"""Decisions whether a pod is retried after an event (kube-scheduler `isPodWorthRequeuing`; KEP-4247)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from kschedfw.api.pod import Pod
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.events import ClusterEvent, QueueingHint, QueueingHintFunction
from kschedfw.framework.metrics import NO_METRICS, HintResult, MetricsRecorder, listens
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.runtime.hook_answers import as_hint, as_pre_hint
from kschedfw.scheduler.queue.cluster_events import EventName, label_of
from kschedfw.scheduler.queue.in_flight import Occurrence
from kschedfw.scheduler.queue.unschedulable import Rejector

logger = logging.getLogger(__name__)

Subscriptions = Mapping[str, Sequence[ClusterEvent]]
"""The events that each plugin subscribes to. A missing plugin subscribes to all events."""


class Requeue(Enum):
    """The handling of a rejected pod after an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


class QueueingHints:
    """The queueing hints of the plugins that rejected a pod.

    A hint that raises counts as QUEUE: an unneeded attempt is better than a pod that waits forever. `metrics`
    records how long each hint takes, on `clock`. A subscription without a hint counts as QUEUE.
    """

    def __init__(
        self,
        subscriptions: Mapping[str, Subscriptions],
        clock: Clock | None = None,
        metrics: MetricsRecorder = NO_METRICS,
        name_of: EventName = label_of,
    ) -> None:
        self._name_of = name_of
        self._subscriptions = subscriptions
        self._clock = SystemClock() if clock is None else clock
        self._metrics = metrics if listens(metrics) else None
        # Cached by event: there are few different events, but they come often.
        self._matching: dict[tuple[Rejector, ClusterEvent], tuple[ClusterEvent, ...] | None] = {}

    def concerns(self, rejector: Rejector, event: ClusterEvent) -> bool:
        """Return whether the plugin subscribes to the event, whatever its hint says."""
        return event.is_wildcard or self._of(rejector, event) != ()

    def may_wake(self, rejector: Rejector, occurrence: Occurrence) -> bool:
        """Return whether the event may wake pods that the plugin rejected: it subscribes, and its pre_hint agrees."""
        event = occurrence.event
        subscriptions = None if event.is_wildcard else self._of(rejector, event)
        return subscriptions is None or any(
            _may_wake(each, rejector[1], occurrence) for each in subscriptions
        )

    def judge(self, info: QueuedPodInfo, occurrence: Occurrence) -> Requeue:
        """Return the handling of the pod after one event."""
        rejectors = info.rejector_plugins
        # No plugin refused the pod: the last attempt ended with an error, and only backoff delays the next.
        if not rejectors:
            return Requeue.AFTER_BACKOFF
        if occurrence.event.is_wildcard:
            # An event with an object concerns that pod alone.
            meant = occurrence.new is None or (
                isinstance(occurrence.new, Pod) and occurrence.new.uid == info.pod.uid
            )
            return Requeue.AFTER_BACKOFF if meant else Requeue.SKIP
        # A pending pod waits for something outside the cluster, not for room, so backoff would only delay it
        # (KEP-4247).
        if self._any_queues(info, info.pending_plugins, occurrence):
            return Requeue.IMMEDIATELY
        if self._any_queues(info, info.unschedulable_plugins - info.pending_plugins, occurrence):
            return Requeue.AFTER_BACKOFF
        return Requeue.SKIP

    def judge_all(self, info: QueuedPodInfo, occurrences: Iterable[Occurrence]) -> Requeue:
        """Return the handling of the pod after the events during its flight: the most urgent answer."""
        verdict = Requeue.SKIP
        for occurrence in occurrences:
            match self.judge(info, occurrence):
                case Requeue.IMMEDIATELY:
                    return Requeue.IMMEDIATELY
                case Requeue.AFTER_BACKOFF:
                    verdict = Requeue.AFTER_BACKOFF
                    # Only a pending plugin could make it more urgent.
                    if not info.pending_plugins:
                        return verdict
        return verdict

    def _any_queues(self, info: QueuedPodInfo, plugins: Iterable[str], occurrence: Occurrence) -> bool:
        # Sorted, so that hints are called in the same order in every run.
        return any(self._queues(info.pod, plugin, occurrence) for plugin in sorted(plugins))

    def _queues(self, pod: Pod, plugin: str, occurrence: Occurrence) -> bool:
        subscriptions = self._of((pod.spec.scheduler_name, plugin), occurrence.event)
        hints = (None,) if subscriptions is None else (each.hint for each in subscriptions)
        return any(self._says_queue(hint, pod, plugin, occurrence) for hint in hints)

    def _says_queue(
        self, hint: QueueingHintFunction | None, pod: Pod, plugin: str, occurrence: Occurrence
    ) -> bool:
        if self._metrics is None:
            return _answer(hint, pod, plugin, occurrence) is not HintResult.SKIP
        began = self._clock.monotonic()
        result = _answer(hint, pod, plugin, occurrence)
        took = self._clock.monotonic() - began
        self._metrics.queueing_hint(plugin, self._name_of(occurrence.event), result, took)
        return result is not HintResult.SKIP

    def _of(self, rejector: Rejector, event: ClusterEvent) -> tuple[ClusterEvent, ...] | None:
        """Return the plugin's subscriptions that match; None if the plugin has none, so that any event counts."""
        key = (rejector, event)
        if key not in self._matching:
            profile, plugin = rejector
            own = self._subscriptions.get(profile, {}).get(plugin)
            self._matching[key] = None if own is None else tuple(each for each in own if each.matches(event))
        return self._matching[key]


def _may_wake(subscription: ClusterEvent, plugin: str, occurrence: Occurrence) -> bool:
    if subscription.pre_hint is None:
        return True
    try:
        return as_pre_hint("pre_queueing_hint", subscription.pre_hint(occurrence.old, occurrence.new))
    except HOOK_FAILURES:
        logger.exception("pre-queueing hint of %s failed on %s", plugin, occurrence.event.label)
        return True


def _answer(hint: QueueingHintFunction | None, pod: Pod, plugin: str, occurrence: Occurrence) -> HintResult:
    if hint is None:
        return HintResult.QUEUE
    try:
        answer = as_hint("queueing_hint", hint(pod, occurrence.old, occurrence.new))
    except HOOK_FAILURES:
        logger.exception(
            "queueing hint of %s failed on %s for pod %s", plugin, occurrence.event.label, pod.key
        )
        return HintResult.ERROR
    return HintResult.QUEUE if answer is QueueingHint.QUEUE else HintResult.SKIP
