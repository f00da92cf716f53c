"""The changes of a queue that time makes: ends of backoff, flushes, and times that plugins have set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cmp_to_key

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.scheduler.queue.appointments import Appointments
from kschedfw.scheduler.queue.blocking import BlockingQueue
from kschedfw.scheduler.queue.cluster_events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    RETRY_TIME,
    UNSCHEDULABLE_TIMEOUT,
)
from kschedfw.scheduler.queue.hints import QueueingHints, Requeue
from kschedfw.scheduler.queue.in_flight import Occurrence
from kschedfw.scheduler.queue.stillness import Stillness
from kschedfw.scheduler.queue.sub_queues import SubQueues


class TimedQueue(BlockingQueue):
    """The part of a `SchedulingQueue` that time changes. It has no threads: `pop` and `try_pop` do what is due."""

    _hints: QueueingHints
    _sub_queues: SubQueues
    _appointments: Appointments
    _stillness: Stillness | None

    def note_change(self) -> None:
        """Note that decisions may come out differently from now on (see `retry_unchanged`).

        Call it before anything is made of the change: pods that rest are brought up to the present first.
        """
        if self._stillness is None:
            return
        with self._lock:
            self._catch_up()
            self._stillness.end()

    def rests(self, uid: str) -> bool:
        """Return whether another attempt of the pod could differ from its last one only after a change."""
        return self._stillness is not None and uid in self._stillness

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make these pods active, whatever their plugins wait for, unless they are gated.

        A pod in flight is tried again if it comes back. Unknown pods are ignored.
        """
        if pods := tuple(pods):  # mostly there are no pods, and the lock isn't needed
            with self._changing:
                for pod in pods:
                    self._activate(pod.uid)

    def activate_at(self, time: float, pods: Iterable[Pod]) -> None:
        """Call `activate` at that time, in seconds on the queue's clock; at once if it has come.

        A pod may have several times. They are dropped when the pod is deleted or bound. Unknown pods are ignored.

        Raises:
            ValueError: the time isn't finite.
        """
        if not math.isfinite(time):
            raise ValueError(f"time: expected seconds since the epoch, found {time!r}")
        with self._changing:
            self.note_change()
            for pod in pods:
                if time <= self._clock.now():
                    self._activate(pod.uid)
                elif pod.uid in self._in_flight or self._sub_queues.find(pod.uid) is not None:
                    self._appointments.add(pod.uid, time)

    def wake_times(self) -> Mapping[str, float]:
        """Return the times at which plugins have asked for pods to be tried again, by uid.

        Ends of backoff and the flush aren't included.
        """
        with self._lock:
            times = self._sub_queues.unschedulable.retry_times()
            for uid, time in self._appointments.next_by_pod().items():
                times[uid] = min(time, times.get(uid, time))
            return times

    def flush_backoff_completed(self) -> None:
        """Make the pods active whose backoff is over. `pop` and `try_pop` call it."""
        with self._changing:
            for info in self._sub_queues.backoff.pop_completed(self._clock.now()):
                self._sub_queues.from_backoff_to_active(info, BACKOFF_COMPLETE)

    def flush_unschedulable_leftover(self) -> None:
        """Try the pods again that have been unschedulable or gated for longer than the timeout.

        Also try pods for which a plugin has set a time that has come.
        """
        with self._changing:
            now = self._clock.now()
            asked_for: list[QueuedPodInfo] = []
            flushed: list[QueuedPodInfo] = []
            for info in self._sub_queues.unschedulable.overdue(now):
                (asked_for if info.retry_at is not None and info.retry_at <= now else flushed).append(info)
            for info in asked_for:
                # The time is used up. A gate that goes on holding the pod back may name another one.
                info.retry_at = None
            self._move(asked_for, Occurrence(RETRY_TIME, None, None))
            if not flushed:
                return
            for info in flushed:
                info.flush_timestamp = now
                info.was_flushed_from_unschedulable = True
                if self._stillness is not None:
                    # For those that are gated: asking their gates again is all that their flush does.
                    self._stillness.begin_attempt(info.pod.uid)
            self._move(flushed, Occurrence(UNSCHEDULABLE_TIMEOUT, None, None))
            # A flush is an event like others, as in kube-scheduler: pods in flight that are refused are
            # tried again, too.
            self._in_flight.record(UNSCHEDULABLE_TIMEOUT, None, None)
            if self._stillness is not None:
                for info in flushed:
                    if (
                        info.gated
                        and info.retry_at is None
                        and info.pod.uid in self._sub_queues.unschedulable
                    ):
                        self._stillness.end_attempt(info.pod.uid)

    # Under the lock

    def _activate(self, uid: str) -> None:
        self.note_change()
        if (flight := self._in_flight.get(uid)) is not None:
            self._in_flight.record(FORCE_ACTIVATE, None, flight.pod)
        elif (info := self._sub_queues.backoff.remove(uid)) is not None:
            self._sub_queues.from_backoff_to_active(info, FORCE_ACTIVATE.label)
        elif (info := self._sub_queues.unschedulable.get(uid)) is not None:
            self._sub_queues.to_active(info, FORCE_ACTIVATE.label)

    def _move(self, candidates: Iterable[QueuedPodInfo], occurrence: Occurrence) -> None:
        event, moved = occurrence.event, set[str]()
        self._sub_queues.wakes += 1
        for info in candidates:
            uid, profile = info.pod.uid, info.pod.spec.scheduler_name
            entity = self._sub_queues.entity_of(info)
            # A hint may have called back and moved the pod; or its group was moved, and its gates asked, with another.
            if uid not in self._sub_queues.unschedulable or entity in moved:
                continue
            if info.gated and not self._hints.concerns((profile, info.gating_plugin), event):
                continue
            verdict = self._hints.judge(info, occurrence)
            if verdict is not Requeue.SKIP:
                moved.add(entity)
                self._sub_queues.unschedulable.remove(uid)
                self._sub_queues.requeue(info, verdict, self._name_of(event))

    def _rests(self) -> bool:
        """Return whether all pods wait, and only a change could make a difference."""
        still, waiting = self._stillness, self._sub_queues.unschedulable
        return (
            still is not None
            and len(still) == len(waiting) > 0
            and not self._sub_queues.active
            and not self._sub_queues.backoff
            and not self._in_flight
            and math.isinf(self._appointments.next())
        )

    def _catch_up(self) -> None:
        """Bring pods that rest to the state that their flushes up to now would have left."""
        if not self._rests():
            return

        def compare(one: QueuedPodInfo, other: QueuedPodInfo) -> int:
            if one.timestamp == other.timestamp:
                return -1 if self._sub_queues.before(one, other) else 1
            return -1 if one.timestamp < other.timestamp else 1

        for tried in self._sub_queues.unschedulable.rest(self._clock.now()):
            # In the order of their last attempts, since each attempt gave its pod the next number.
            for info in sorted(tried, key=cmp_to_key(compare)):
                self._sequence += 1
                info.sequence = self._sequence

    def _do_what_is_due(self, now: float) -> None:
        if now >= self._sub_queues.backoff.next_release():
            self.flush_backoff_completed()
        if now >= self._sub_queues.unschedulable.next_due() and not self._rests():
            self.flush_unschedulable_leftover()
        for uid in self._appointments.pop_due(now):
            self._activate(uid)

    def _next_due(self) -> float:
        return min(
            self._sub_queues.backoff.next_release(),
            math.inf if self._rests() else self._sub_queues.unschedulable.next_due(),
            self._appointments.next(),
        )
