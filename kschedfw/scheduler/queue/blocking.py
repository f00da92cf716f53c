"""The base of queues: the lock, waiting in `pop`, closing, and pods in flight."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.clock import Clock
from kschedfw.framework.metrics import EntityKind, MetricsRecorder, listens
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nominator import Nominator
from kschedfw.scheduler.queue.cluster_events import EventName
from kschedfw.scheduler.queue.in_flight import InFlight
from kschedfw.scheduler.queue.protocol import Place


class _Changing:
    """A context manager that holds the lock of a queue, and notifies waiting threads on exit.

    A class, since a context manager made from a generator takes longer than most of the work inside.
    """

    __slots__ = ("_lock", "_told")

    def __init__(self, lock: threading.RLock, told: Callable[[], None]) -> None:
        self._lock = lock
        self._told = told

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        try:
            # Before the lock is released: a Condition notifies only for the thread that holds its lock.
            self._told()
        finally:
            self._lock.release()


class BlockingQueue(ABC):
    """A queue with one reentrant lock, held while plugins are called, as in kube-scheduler; plugins may call back."""

    def __init__(
        self, clock: Clock, nominator: Nominator | None, metrics: MetricsRecorder, name_of: EventName
    ) -> None:
        self._name_of = name_of
        self.nominator = Nominator() if nominator is None else nominator
        self._clock = clock
        self._metrics = metrics
        # A recorder that is read now and then needs no numbers in between.
        self._reports = listens(metrics) and not metrics.before_reading(self._report_now)
        self._in_flight = InFlight(metrics, name_of)
        # Methods that never wait take the lock itself, which is faster: a Condition's methods are in Python.
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)
        self._changing = _Changing(self._lock, self._tell)
        self._waiting = 0
        self._closed = False
        self._sequence = 0
        self._reported: dict[str, int] = {}
        self._reported_entities: dict[tuple[Place, EntityKind], int] = {}

    def pop(self, timeout: float | None = None) -> QueuedPodInfo | None:
        """Return the next pod; wait until there is one. None if the queue is closed, or after `timeout` seconds."""
        deadline = math.inf if timeout is None else self._clock.now() + timeout
        with self._condition:
            while True:
                info = self.try_pop()
                if info is not None or self._closed or self._clock.now() >= deadline:
                    return info
                self._wait_until(min(deadline, self._next_due()))

    def try_pop(self) -> QueuedPodInfo | None:
        """Return the next pod, or None if there is none now or the queue is closed."""
        with self._lock:
            if self._closed:
                return None
            info = self._take(self._clock.now())
            if info is not None:
                self._begin_flight(info)
            if self._reports:
                self._report()
            return info

    def next_deadline(self) -> float | None:
        """Return when to call `try_pop` again if nothing else happens; None if time alone changes nothing."""
        with self._lock:
            due = self._next_due()
        return None if math.isinf(due) else due

    def done(self, uid: str) -> None:
        """End a pod's flight: it was bound, or isn't to be scheduled here. May be called again."""
        with self._lock:
            # No pod becomes ready by this, so nobody is notified.
            self._in_flight.end(uid)

    def close(self) -> None:
        """Close the queue: `pop` returns None, also where it waits; all flights end."""
        with self._changing:
            self._closed = True
            self._in_flight.end_all()

    def in_flight_pods(self) -> Sequence[Pod]:
        """Return the pods in flight, as they were when they were popped."""
        with self._lock:
            return self._in_flight.pods

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        return self.nominator.nominated_pods_for_node(node_name)

    @abstractmethod
    def _take(self, now: float) -> QueuedPodInfo | None:
        """Remove the next pod, after the changes that are due by now."""

    @abstractmethod
    def _next_due(self) -> float:
        """Return the time of the next change that is due; infinity if there is none."""

    @abstractmethod
    def _counts(self) -> Mapping[str, int]:
        """Return pod counts by place, without pods in flight, as metrics have them."""

    @abstractmethod
    def _entity_counts(self) -> Mapping[tuple[Place, EntityKind], int]:
        """Return the number of groups, and of pods without one, by place; empty if they aren't counted."""

    def _begin_flight(self, info: QueuedPodInfo) -> None:
        info.attempts += 1
        info.clear_rejector_plugins()
        self._in_flight.begin(info.pod)

    def _enter(self, info: QueuedPodInfo) -> None:
        """Set the timestamp of a pod that enters the queue."""
        self._sequence += 1
        info.sequence = self._sequence
        info.timestamp = self._clock.now()

    def _tell(self) -> None:
        """Tell metrics and waiting threads of a change; the lock is held."""
        if self._reports:
            self._report()
        # A Condition's `notify_all` is written in Python. A scheduler that calls `try_pop` never waits.
        if self._waiting:
            self._condition.notify_all()

    def _report_now(self) -> None:
        with self._lock:
            self._report()

    def _report(self) -> None:
        for place, count in self._counts().items():
            if self._reported.get(place, 0) != count:
                self._reported[place] = count
                self._metrics.pending_pods(place, count)
        for entity, count in self._entity_counts().items():
            if self._reported_entities.get(entity, 0) != count:
                self._reported_entities[entity] = count
                self._metrics.queued_entities(*entity, count)

    def _wait_until(self, deadline: float) -> None:
        self._waiting += 1
        try:
            if math.isinf(deadline):
                self._condition.wait()
            else:
                self._clock.wait_until(self._condition, deadline)
        finally:
            self._waiting -= 1
