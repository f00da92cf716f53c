"""First in, first out, as before there were priorities (kube-scheduler v1.9 `FIFO`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.pod_info import PodInfo, QueuedPodInfo
from kschedfw.scheduler.nominator import Nominator
from kschedfw.scheduler.queue.backoff import BackoffPolicy, BackoffQueue
from kschedfw.scheduler.queue.blocking import BlockingQueue
from kschedfw.scheduler.queue.cluster_events import (
    BACKOFF_COMPLETE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULED_POD_ADD,
)
from kschedfw.scheduler.queue.place import Place
from kschedfw.scheduler.queue.protocol import PodAlreadyQueuedError, PreCheck


class FifoQueue(BlockingQueue):
    """A queue without priorities, gates and hints. See `PodQueue`.

    A pod whose attempt failed goes to the end of the queue after a backoff of 1 second that doubles with every
    attempt, up to 60 seconds; in v1.9 that was the business of the scheduler's error handler. Events neither
    shorten nor prolong this wait.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        nominator: Nominator | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 60.0,
        metrics: MetricsRecorder = NO_METRICS,
    ) -> None:
        super().__init__(SystemClock() if clock is None else clock, nominator, metrics)
        self._policy = BackoffPolicy(initial_backoff, max_backoff, windows=False)
        self._line: OrderedDict[str, QueuedPodInfo] = OrderedDict()
        self._backoff = BackoffQueue(self._policy, lambda one, other: one.sequence < other.sequence)

    def add(self, pod: Pod) -> None:
        """Take in a new pod. One that is in the queue or in flight is updated."""
        self.update(None, pod)

    def add_if_not_present(self, pod: Pod) -> None:
        """Take in a pod unless it is in the queue or in flight."""
        with self._changing:
            if self._place(pod.uid) is None:
                self._add(pod)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Take note of a pod's new state; it keeps its place. An unknown pod is added."""
        with self._changing:
            if old is not None and old.uid != new.uid:
                self._delete(old)
                old = None
            flight = self._in_flight.get(new.uid)
            info = self._line.get(new.uid) or self._backoff.get(new.uid)
            if flight is not None:
                flight.deleted = False
            elif info is not None:
                old = old or info.pod
                info.update(new)
                self.nominator.update(old, info.pod_info)
            else:
                self._add(new)

    def delete(self, pod: Pod) -> None:
        """Forget the pod: it is gone, or bound. If it is in flight, it won't come back."""
        with self._changing:
            self._delete(pod)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> None:
        """Take back a pod whose attempt failed; ends its flight.

        Raises:
            PodAlreadyQueuedError: the pod is in the queue; its flight has ended all the same.
        """
        with self._changing:
            uid = info.pod.uid
            flight = self._in_flight.get(uid)
            self._in_flight.end(uid)
            if (place := self._place(uid)) is not None:
                raise PodAlreadyQueuedError(info.pod, place)
            if flight is not None and flight.deleted:
                return
            info.unschedulable_count += 1
            info.backoff_expiration = None
            self._enter(info)
            self._backoff.add(info)
            self._metrics.pod_incoming(Place.BACKOFF, SCHEDULE_ATTEMPT_FAILURE)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Nothing: every pod is on its way to the head of the queue."""

    def activate_at(self, time: float, pods: Iterable[Pod]) -> None:
        """Nothing, for the same reason."""

    def wake_times(self) -> Mapping[str, float]:
        """None: no pod waits for anything but its backoff."""
        return {}

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: object | None, new: object | None, pre_check: PreCheck | None = None
    ) -> None:
        """Nothing: no pod waits for an event."""

    def assigned_pod_added(self, pod: Pod) -> None:
        """Nothing: no pod waits for an event."""

    def assigned_pod_updated(self, old: Pod, new: Pod, event: ClusterEvent) -> None:
        """Nothing: no pod waits for an event."""

    def flush_backoff_completed(self) -> None:
        """Put the pods at the end of the queue whose backoff is over."""
        with self._changing:
            completed = self._backoff.pop_completed(self._clock.now())
            for info in sorted(completed, key=self._policy.expiration):
                self._line_up(info, BACKOFF_COMPLETE)

    def flush_unschedulable_leftover(self) -> None:
        """Nothing: no pod waits for an event."""

    def place(self, uid: str) -> Place | None:
        """Where the pod is: ACTIVE, BACKOFF or IN_FLIGHT; None if it isn't known."""
        with self._condition:
            return self._place(uid)

    def pending_pods(self) -> tuple[Sequence[Pod], str]:
        """The pods in the queue in their order, those in flight left out, and how many are where."""
        with self._condition:
            line, backoff = [*self._line.values()], self._backoff.ordered()
        summary = f"activeQ:{len(line)}; backoffQ:{len(backoff)}; unschedulableEntities:0"
        return [info.pod for info in (*line, *backoff)], summary

    def _place(self, uid: str) -> Place | None:
        if uid in self._in_flight:
            return Place.IN_FLIGHT
        if uid in self._line:
            return Place.ACTIVE
        return Place.BACKOFF if uid in self._backoff else None

    def _add(self, pod: Pod) -> None:
        info = QueuedPodInfo(PodInfo.of(pod))
        self._enter(info)
        self.nominator.add(info.pod_info)
        self._line_up(info, UNSCHEDULED_POD_ADD.label)

    def _line_up(self, info: QueuedPodInfo, event: str) -> None:
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp = self._clock.now()
        self._line[info.pod.uid] = info
        self._metrics.pod_incoming(Place.ACTIVE, event)

    def _delete(self, pod: Pod) -> None:
        self.nominator.delete(pod)
        flight = self._in_flight.get(pod.uid)
        if flight is not None:
            flight.deleted = True
        self._line.pop(pod.uid, None)
        self._backoff.remove(pod.uid)

    def _take(self, now: float) -> QueuedPodInfo | None:
        if now >= self._next_due():
            self.flush_backoff_completed()
        return self._line.popitem(last=False)[1] if self._line else None

    def _next_due(self) -> float:
        return self._backoff.next_release()

    def _counts(self) -> dict[Place, int]:
        return {Place.ACTIVE: len(self._line), Place.BACKOFF: len(self._backoff)}
