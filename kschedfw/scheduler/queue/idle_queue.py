"""The queue of a scheduler that is never run, only asked to place pods."""

from __future__ import annotations

from kschedfw.api.pod import Pod
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.scheduler.queue.protocol import PodInFlightError, PreCheck
from kschedfw.scheduler.queue.scheduling_queue import SchedulingQueue


class IdleQueue(SchedulingQueue):
    """A queue that keeps no pods: none waits for an event, and none is ever popped.

    It knows the pods in flight, and keeps the nominations that pods' statuses name.
    """

    def add_if_not_present(self, pod: Pod) -> None:
        self._nominate(pod)

    def update(self, old: Pod | None, new: Pod) -> None:
        if old is not None and old.uid == new.uid:
            if not self.nominator.is_empty or new.status.nominated_node_name:
                self.nominator.update(old, PodInfo.of(new))
            return
        if old is not None:
            self.delete(old)
        self._nominate(new)

    def delete(self, pod: Pod) -> None:
        if not self.nominator.is_empty:
            self.nominator.delete(pod)

    def take(self, pod: Pod) -> QueuedPodInfo:
        """Return a queued pod with this state, to be placed.

        Raises:
            PodInFlightError: the pod is being scheduled or bound.
        """
        with self._lock:
            if pod.uid in self._in_flight:
                raise PodInFlightError(pod)
            info = QueuedPodInfo(PodInfo.of(pod), self._clock.now())
            self._begin_flight(info)
            return info

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo, *, keeps_turn: bool = False) -> None:  # noqa: ARG002  # nothing waits
        self.done(info.pod.uid)

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: object | None, new: object | None, pre_check: PreCheck | None = None
    ) -> None:
        """Do nothing: the queue has no waiting pods."""

    def _nominate(self, pod: Pod) -> None:
        if not self.nominator.is_empty or pod.status.nominated_node_name:
            self.nominator.add(PodInfo.of(pod))
