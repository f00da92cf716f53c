"""The scheduling queue (kube-scheduler `PriorityQueue`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kschedfw.api import Pod, group_key
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.metrics import NO_METRICS, EntityKind, MetricsRecorder
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nominator import Nominator
from kschedfw.scheduler.queue.appointments import Appointments
from kschedfw.scheduler.queue.backoff import WINDOW, BackoffPolicy
from kschedfw.scheduler.queue.cluster_events import (
    ASSIGNED_POD_ADD,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULED_POD_ADD,
    EventName,
    label_of,
    pod_update_events,
)
from kschedfw.scheduler.queue.group_sub_queues import GroupSubQueues
from kschedfw.scheduler.queue.hints import QueueingHints, Requeue
from kschedfw.scheduler.queue.in_flight import Occurrence
from kschedfw.scheduler.queue.protocol import (
    Place,
    PodAlreadyQueuedError,
    PodInFlightError,
    PreCheck,
    QueueProfile,
)
from kschedfw.scheduler.queue.stillness import Stillness
from kschedfw.scheduler.queue.sub_queues import SubQueues
from kschedfw.scheduler.queue.timed_queue import TimedQueue
from kschedfw.scheduler.queue.unschedulable import UnschedulablePool


def _every_group(_key: str) -> bool:
    return True


class SchedulingQueue(TimedQueue):
    """Pods that wait to be scheduled, in the order of the profiles' queue sort plugin. Thread-safe.

    A pod is *active* if it can be popped. It is *backing off* for a while after an attempt that failed, before it is
    tried again. It is *unschedulable* until an event makes another attempt worthwhile (decided by the queueing hints
    of the plugins that rejected it), or until `unschedulable_timeout` seconds have passed. It is *gated* while a
    pre_enqueue plugin holds it back. And it is *in flight* from `pop` until `done` or
    `add_unschedulable_if_not_present`: while it is being scheduled or bound. It is always in exactly one place.

    The queue has no threads: changes that are due with time are made by `pop`, `try_pop` and the two `flush_…`
    methods.

    Semantics are those of kube-scheduler v1.36 with its default feature gates, plus these later fixes:
    gated pods take part in the flush after `unschedulable_timeout`; bound pods that appear or change are announced
    to every plugin that subscribed to them, not to those of inter-pod affinity and topology spread alone; a
    nomination counts also while its pod is gated. kube-scheduler looks into its informers' store before it requeues
    a pod; this queue remembers which pods were deleted in flight.

    Args:
        profiles: the frameworks by scheduler name; they all have the same queue sort plugin.
        clock: the source of the time.
        nominator: shared with the frameworks.
        initial_backoff: seconds of backoff after the first failure; it doubles with each more.
        max_backoff: the longest backoff, in seconds; 0 for no backoff.
        unschedulable_timeout: seconds after which an unschedulable pod is tried again in any case.
        pop_from_backoff: whether a refused pod that backs off is popped if no pod is active
            (SchedulerPopFromBackoffQ, on by default since v1.33). It also moves ends of backoff to full seconds.
        groups: whether members of groups are scheduled together (GenericWorkload); then a member that failed is tried
            again after its backoff, whatever plugin refused it.
        size_of: the number of pods that are scheduled together with a pod, by which the longest backoff grows (v1.37);
            None if it doesn't.
        entities: whether a group is one entity of the queue (v1.37), as `GroupSubQueues` says.
        has_group: tells whether the PodGroup of a key exists; for v1.37's metrics.
        name_of: returns the names of events in metrics.
        retry_unchanged: whether pods are flushed even if nothing has changed since all of them were tried last. False
            is for virtual time, which then passes in one step up to the next event: the queue is as if they had been
            tried, and refused as before. `note_change` has to be called before anything changes of which the queue
            isn't told.
        metrics: the recorder of metrics.

    Raises:
        ProfileError: there is no profile.
        PluginError: a plugin's `events_to_register` fails.
    """

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        *,
        clock: Clock | None = None,
        nominator: Nominator | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        unschedulable_timeout: float = 300.0,
        pop_from_backoff: bool = True,
        groups: bool = False,
        size_of: Callable[[Pod], int] | None = None,
        entities: bool = False,
        has_group: Callable[[str], bool] = _every_group,
        name_of: EventName = label_of,
        retry_unchanged: bool = True,
        metrics: MetricsRecorder = NO_METRICS,
    ) -> None:
        super().__init__(SystemClock() if clock is None else clock, nominator, metrics, name_of)
        if not profiles:
            raise ProfileError("profiles: expected at least one, found none")
        self._hints = QueueingHints(
            {name: profile.events_to_register() for name, profile in profiles.items()},
            self._clock,
            metrics,
            name_of,
        )
        kind = partial(GroupSubQueues, grouped=groups, has_group=has_group) if entities else SubQueues
        self._sub_queues: SubQueues = kind(
            dict(profiles),
            BackoffPolicy(initial_backoff, max_backoff, windows=pop_from_backoff, size_of=size_of),
            self._clock,
            self._metrics,
            UnschedulablePool(unschedulable_timeout),
        )
        self._appointments = Appointments()
        self._groups = groups
        # A backoff that outlasts the timeout would delay attempts beyond the flush; that of a large group may.
        may_rest = (
            not (retry_unchanged or entities)
            and size_of is None
            and max_backoff < unschedulable_timeout - WINDOW
        )
        self._stillness = Stillness() if may_rest else None

    # Pods come and go

    def add(self, pod: Pod) -> None:
        """Add a new pod. A pod that is in the queue or in flight is updated."""
        self.update(None, pod)

    def add_if_not_present(self, pod: Pod) -> None:
        """Add a pod unless it is in the queue or in flight."""
        with self._changing:
            if pod.uid not in self._in_flight and self._sub_queues.find(pod.uid) is None:
                self._add(pod)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Set a pod's new state; if its plugins' hints say that this may help, it is tried again.

        An unknown pod is added. A pod with the name of `old` and another uid replaces it.
        """
        with self._changing:
            if old is not None and old.uid != new.uid:
                self._delete(old)
                old = None
            flight = self._in_flight.get(new.uid)
            info = self._sub_queues.find(new.uid)
            if flight is not None:
                # If the pod comes back, the scheduler reads its newest state.
                flight.deleted = False
                old = old or flight.pod
                for event in pod_update_events(old, new):
                    self._in_flight.record(event, old, new)
            elif info is not None:
                self._update(info, old or info.pod, new)
            else:
                self._add(new)

    def delete(self, pod: Pod) -> None:
        """Remove a pod that is gone or bound. If it is in flight, it won't come back."""
        with self._changing:
            self._delete(pod)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo, *, keeps_turn: bool = False) -> None:
        """Take back a pod whose attempt failed, with the plugins that rejected it, and end its flight.

        With `keeps_turn` it is tried again at once, as if it had not been: in its old turn, and without a backoff.

        Without such plugins the attempt ended with an error, and the pod is tried again after backoff.
        Otherwise it is tried again if an event during its flight may help; else it is unschedulable.

        Raises:
            PodAlreadyQueuedError: the pod is in the queue; its flight has ended all the same.
        """
        with self._changing:
            uid = info.pod.uid
            flight = self._in_flight.get(uid)
            occurrences = None if flight is None else self._in_flight.events_during(flight)
            self._in_flight.end(uid)
            if (place := self._sub_queues.place(uid)) is not None:
                raise PodAlreadyQueuedError(info.pod, place)
            if flight is not None and flight.deleted:
                return
            if self._sub_queues.waits_for_cycle(info, keeps_turn=keeps_turn):
                return
            if keeps_turn:
                self._sub_queues.requeue(info, Requeue.IMMEDIATELY, SCHEDULE_ATTEMPT_FAILURE)
                return
            # Two counts, since their backoffs differ: that of errors protects what fails, and a refusal shows that it
            # works again.
            if info.rejector_plugins:
                info.unschedulable_count += 1
                info.consecutive_errors_count = 0
            else:
                info.consecutive_errors_count += 1
            self._enter(info)
            info.backoff_expiration = None
            info.was_flushed_from_unschedulable = False
            info.flush_timestamp = None
            # Without a flight nobody has kept the events since the pod was popped, and without a rejector no hint
            # judges them. Such a pod would miss the event that it waits for, so only its backoff delays it.
            is_time = info.retry_at is not None and info.retry_at <= self._clock.now()
            is_member = self._groups and bool(group_key(info.pod))
            if occurrences is None or not info.rejector_plugins or is_time or is_member:
                verdict = Requeue.AFTER_BACKOFF
            else:
                verdict = self._hints.judge_all(info, occurrences)
            if self._stillness is not None:
                if verdict is Requeue.SKIP and info.retry_at is None:
                    self._stillness.end_attempt(uid)
                else:
                    self._stillness.forget(uid)
            # A hint may have called back and added the pod, in a newer state. It must not be popped twice.
            if self._sub_queues.place(uid) is None:
                self._sub_queues.requeue(info, verdict, SCHEDULE_ATTEMPT_FAILURE)

    def begin_group(self, info: QueuedPodInfo) -> None:
        """Begin the cycle of the group of a pod that was popped.

        Since v1.37 members that come, or come back, wait for its end.
        """
        with self._changing:
            self._sub_queues.begin_group(info)

    def end_group(self, key: str, *, keeps_turn: bool = False, is_refused: bool = False) -> None:
        """End the cycle of a group; may be called again.

        Members that have waited for it come back together: with `keeps_turn` at once and in their old turn, else after
        the backoff of a refusal (`is_refused`) or of an error.
        """
        with self._changing:
            for info in self._sub_queues.waiting_members(key):
                self._enter(info)
            self._sub_queues.wakes += 1
            self._sub_queues.end_group(key, keeps_turn=keeps_turn, is_refused=is_refused)

    def take(self, pod: Pod) -> QueuedPodInfo:
        """Pop this pod out of turn, regardless of gates and backoff; an unknown pod counts as new.

        Raises:
            PodInFlightError: the pod is being scheduled or bound.
        """
        with self._changing:
            if pod.uid in self._in_flight:
                raise PodInFlightError(pod)
            self.note_change()
            info = self._sub_queues.find(pod.uid)
            if info is None:
                info = QueuedPodInfo(PodInfo.of(pod))
                self._enter(info)
            else:
                self._sub_queues.discard(pod.uid)
                self._appointments.cancel(pod.uid)
            if info.initial_attempt_timestamp is None:
                info.initial_attempt_timestamp = self._clock.now()
            self._begin_flight(info)
            return info

    def take_members(self, pods: Iterable[Pod]) -> Sequence[QueuedPodInfo]:
        """Pop the pods among these that wait here and aren't gated; they are in flight from now on."""
        with self._changing:
            self.note_change()
            self._sub_queues.wakes += 1
            taken = []
            for pod in pods:
                if (info := self._sub_queues.take_member(pod.uid)) is not None:
                    self._appointments.cancel(pod.uid)
                    # As in kube-scheduler: otherwise members would keep room for each other. A failure nominates the
                    # pod again.
                    self.nominator.delete(pod)
                    self._begin_flight(info)
                    taken.append(info)
            return taken

    # Events

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: object | None, new: object | None, pre_check: PreCheck | None = None
    ) -> None:
        """Handle an event of the cluster: unschedulable pods that it may help are tried again.

        `old` and `new` are the object before and after the event, or None. Pods for which `pre_check` is false are
        skipped.
        """
        with self._changing:
            self.note_change()
            occurrence = Occurrence(event, old, new)
            candidates = self._sub_queues.unschedulable.rejected_by(
                lambda rejector: self._hints.may_wake(rejector, occurrence)
            )
            if candidates:
                self._move(
                    [info for info in candidates if pre_check is None or pre_check(info.pod)], occurrence
                )
            # For pods in flight: if they are refused, the event may help their next attempt, so `judge_all`
            # sees it.
            self._in_flight.record(event, old, new)

    def assigned_pod_added(self, pod: Pod) -> None:
        """Handle the appearance of a bound pod."""
        self.move_all_to_active_or_backoff(ASSIGNED_POD_ADD, None, pod)

    def assigned_pod_updated(self, old: Pod, new: Pod, event: ClusterEvent) -> None:
        """Handle the change of a bound pod; `event` is one of `pod_change_events(old, new)`."""
        self.move_all_to_active_or_backoff(event, old, new)

    # Contents

    def place(self, uid: str) -> Place | None:
        """Return the pod's place; None for an unknown pod."""
        with self._lock:
            return Place.IN_FLIGHT if uid in self._in_flight else self._sub_queues.place(uid)

    def get(self, uid: str) -> QueuedPodInfo | None:
        """Return the pod with its history; None if it is in flight or unknown."""
        with self._lock:
            self._catch_up()
            return self._sub_queues.find(uid)

    def counts(self) -> Mapping[Place, int]:
        """Return the number of pods in each place, without those in flight."""
        with self._lock:
            return self._sub_queues.counts()

    def next_pod(self) -> Pod | None:
        """Return the pod that `try_pop` would return now, without removing it."""
        with self._lock:
            self._do_what_is_due(self._clock.now())
            info = self._sub_queues.peek()
            return None if info is None else info.pod

    def pods_in(self, place: Place) -> Sequence[Pod]:
        """Return the pods in a place: active ones in the order of popping, others in the order of arrival."""
        with self._lock:
            self._catch_up()
            return self._in_flight.pods if place is Place.IN_FLIGHT else self._sub_queues.pods_in(place)

    def pending_pods(self) -> tuple[Sequence[Pod], str]:
        """Return the pods in the queue, without those in flight, and kube-scheduler's summary of numbers by place."""
        with self._lock:
            active, backoff = self.pods_in(Place.ACTIVE), self.pods_in(Place.BACKOFF)
            waiting = [info.pod for info in self._sub_queues.unschedulable.ordered()]
        summary = f"activeQ:{len(active)}; backoffQ:{len(backoff)}; unschedulableEntities:{len(waiting)}"
        return [*active, *backoff, *waiting], summary

    def in_flight_events(self) -> Sequence[ClusterEvent]:
        """Return the events that are kept for the pods in flight."""
        with self._lock:
            return [occurrence.event for occurrence in self._in_flight.events]

    # Under the lock

    def _add(self, pod: Pod) -> None:
        self.note_change()
        info = QueuedPodInfo(PodInfo.of(pod))
        self._enter(info)
        # Before the gates are asked: a gated pod's nomination counts, too.
        self.nominator.add(info.pod_info)
        self._sub_queues.wakes += 1
        self._sub_queues.to_active(info, self._name_of(UNSCHEDULED_POD_ADD))

    def _update(self, info: QueuedPodInfo, old: Pod, new: Pod) -> None:
        self.note_change()
        info.update(new)
        # At once, as the heaps require, and before a hint may call back.
        self._sub_queues.rearrange(info)
        self.nominator.update(old, info.pod_info)
        for event in pod_update_events(old, new):
            # An earlier event of this update has moved the pod already.
            if new.uid not in self._sub_queues.unschedulable:
                return
            verdict = self._hints.judge(info, Occurrence(event, old, new))
            self._sub_queues.requeue(info, verdict, self._name_of(event))

    def _delete(self, pod: Pod) -> None:
        self.note_change()
        self.nominator.delete(pod)
        flight = self._in_flight.get(pod.uid)
        if flight is not None:
            flight.deleted = True
        self._sub_queues.discard(pod.uid)
        self._appointments.cancel(pod.uid)

    def _take(self, now: float) -> QueuedPodInfo | None:
        self._do_what_is_due(now)
        info = self._sub_queues.pop()
        if info is not None and self._stillness is not None:
            self._stillness.begin_attempt(info.pod.uid)
        return info

    def _counts(self) -> Mapping[str, int]:
        return self._sub_queues.told_counts()

    def _entity_counts(self) -> Mapping[tuple[Place, EntityKind], int]:
        return self._sub_queues.entity_counts()
