"""What the scheduler asks of a queue, and what a queue asks of a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.status import Status


class Place(StrEnum):
    """Where a pod that isn't bound can be; it is in exactly one of them."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


PreCheck = Callable[[Pod], bool]
"""Picks the pods that an event may be for."""


class PodAlreadyQueuedError(KschedfwError):
    """A pod came back to the queue that is in the queue; a scheduler gives back each pod that it popped only once."""

    def __init__(self, pod: Pod, place: Place) -> None:
        super().__init__(pod, place)
        self.pod = pod
        self.place = place

    def __str__(self) -> str:
        return f"pod {self.pod.key} is already present in the {self.place} queue"


class PodInFlightError(KschedfwError):
    """A pod that is being scheduled or bound can't be taken out of the queue."""

    def __init__(self, pod: Pod) -> None:
        super().__init__(pod)
        self.pod = pod

    def __str__(self) -> str:
        return f"pod {self.pod.key} is being scheduled or bound"


class QueueProfile(Protocol):
    """The part of a `Framework` that the queue calls."""

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool: ...

    def run_pre_enqueue_plugins(self, pod: Pod) -> Status: ...

    def events_to_register(self) -> Mapping[str, Sequence[ClusterEvent]]: ...


class PodQueue(Protocol):
    """Pods that wait to be scheduled (kube-scheduler `SchedulingQueue`). Thread-safe.

    A pod that was popped is *in flight* until `add_unschedulable_if_not_present` or `done` is called for it.
    """

    def add(self, pod: Pod) -> None:
        """Take in a new pod. One that is in the queue or in flight is updated."""
        ...

    def add_if_not_present(self, pod: Pod) -> None:
        """Take in a pod unless it is in the queue or in flight."""
        ...

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> None:
        """Take back a pod whose attempt failed; ends its flight. One that was deleted meanwhile is dropped.

        Raises:
            PodAlreadyQueuedError: the pod is in the queue; its flight has ended all the same.
        """
        ...

    def pop(self, timeout: float | None = None) -> QueuedPodInfo | None:
        """The next pod; waits until there is one. None once the queue is closed, or after `timeout` seconds."""
        ...

    def try_pop(self) -> QueuedPodInfo | None:
        """The next pod, or None if there is none now."""
        ...

    def take(self, pod: Pod) -> QueuedPodInfo:
        """Pop this pod out of turn, gates and backoff notwithstanding; one that isn't known is taken as new.

        Raises:
            PodInFlightError: the pod is being scheduled or bound.
        """
        ...

    def next_deadline(self) -> float | None:
        """When, if nothing happens until then, `try_pop` should be asked again; None if time alone changes nothing."""
        ...

    def done(self, uid: str) -> None:
        """End a pod's flight: it was bound, or somebody else takes care of it. May be called again."""
        ...

    def update(self, old: Pod | None, new: Pod) -> None:
        """Take note of a pod's new state, which may make it schedulable. An unknown pod is added."""
        ...

    def delete(self, pod: Pod) -> None:
        """Forget the pod: it is gone, or bound. If it is in flight, it won't come back."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods soon, whatever their plugins wait for; not those that aren't known."""
        ...

    def activate_at(self, time: float, pods: Iterable[Pod]) -> None:
        """Do at that time (seconds on the queue's clock) what `activate` does; not for pods that have gone by then."""
        ...

    def wake_times(self) -> Mapping[str, float]:
        """By uid, when time alone will have a pod tried again: as a plugin asked, backoff and flush left out."""
        ...

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: object | None, new: object | None, pre_check: PreCheck | None = None
    ) -> None:
        """Tell of an event in the cluster; pods that it may make schedulable are tried again.

        `old` and `new` are the object before and after; None if it wasn't or isn't there.
        """
        ...

    def assigned_pod_added(self, pod: Pod) -> None:
        """Tell that a bound pod appeared."""
        ...

    def assigned_pod_updated(self, old: Pod, new: Pod, event: ClusterEvent) -> None:
        """Tell that a bound pod changed; `event` is one of `pod_change_events(old, new)`."""
        ...

    def flush_backoff_completed(self) -> None:
        """Make the pods active whose backoff is over. `pop` and `try_pop` do it."""
        ...

    def flush_unschedulable_leftover(self) -> None:
        """Retry the pods that have waited too long for an event. `pop` and `try_pop` do it."""
        ...

    def close(self) -> None:
        """From now on `pop` gives None, also to those who wait in it; ends all flights."""
        ...

    def place(self, uid: str) -> Place | None:
        """Where the pod is; None if it isn't known."""
        ...

    def pending_pods(self) -> tuple[Sequence[Pod], str]:
        """The pods in the queue, those in flight left out, and a summary of how many are where."""
        ...

    def in_flight_pods(self) -> Sequence[Pod]: ...

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]: ...
