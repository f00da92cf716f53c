"""The protocols of a queue, and of a profile as the queue uses it."""

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
    """The place of an unbound pod: one part of the queue, or in flight. Every pod has exactly one."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


PreCheck = Callable[[Pod], bool]
"""A predicate for the pods that an event may concern."""


class PodAlreadyQueuedError(KschedfwError):
    """The error of returning a pod that is queued already: each popped pod may be returned only once."""

    def __init__(self, pod: Pod, place: Place) -> None:
        super().__init__(pod, place)
        self.pod = pod
        self.place = place

    def __str__(self) -> str:
        return f"pod {self.pod.key} is already present in the {self.place} queue"


class PodInFlightError(KschedfwError):
    """The error of taking a pod out of the queue that is being scheduled or bound."""

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
        """Add a new pod. A pod that is in the queue or in flight is updated."""
        ...

    def add_if_not_present(self, pod: Pod) -> None:
        """Add a pod unless it is in the queue or in flight."""
        ...

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo) -> None:
        """Take back a pod whose attempt failed, and end its flight; drop it if it was deleted in the meantime.

        Raises:
            PodAlreadyQueuedError: the pod is in the queue; its flight has ended all the same.
        """
        ...

    def pop(self, timeout: float | None = None) -> QueuedPodInfo | None:
        """Return the next pod; wait until there is one. None if the queue is closed, or after `timeout` seconds."""
        ...

    def try_pop(self) -> QueuedPodInfo | None:
        """Return the next pod, or None if there is none now."""
        ...

    def take(self, pod: Pod) -> QueuedPodInfo:
        """Pop this pod out of turn, regardless of gates and backoff; an unknown pod counts as new.

        Raises:
            PodInFlightError: the pod is being scheduled or bound.
        """
        ...

    def take_members(self, pods: Iterable[Pod]) -> Sequence[QueuedPodInfo]:
        """Pop the pods among these that wait here and aren't gated."""
        ...

    def next_deadline(self) -> float | None:
        """Return when to call `try_pop` again if nothing else happens; None if time alone changes nothing."""
        ...

    def done(self, uid: str) -> None:
        """End a pod's flight: it was bound, or isn't to be scheduled here. May be called again."""
        ...

    def update(self, old: Pod | None, new: Pod) -> None:
        """Set a pod's new state, which may make it schedulable. An unknown pod is added."""
        ...

    def delete(self, pod: Pod) -> None:
        """Remove a pod that is gone or bound. If it is in flight, it won't come back."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods soon, whatever their plugins wait for. Unknown pods are ignored."""
        ...

    def activate_at(self, time: float, pods: Iterable[Pod]) -> None:
        """Call `activate` at that time, in seconds on the queue's clock, for the pods that still wait then."""
        ...

    def wake_times(self) -> Mapping[str, float]:
        """Return the times at which plugins have asked for pods to be tried again, by uid.

        Ends of backoff and the flush aren't included.
        """
        ...

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, old: object | None, new: object | None, pre_check: PreCheck | None = None
    ) -> None:
        """Handle an event of the cluster: pods that it may make schedulable are tried again.

        `old` and `new` are the object before and after the event, or None.
        """
        ...

    def assigned_pod_added(self, pod: Pod) -> None:
        """Handle the appearance of a bound pod."""
        ...

    def assigned_pod_updated(self, old: Pod, new: Pod, event: ClusterEvent) -> None:
        """Handle the change of a bound pod; `event` is one of `pod_change_events(old, new)`."""
        ...

    def flush_backoff_completed(self) -> None:
        """Make the pods active whose backoff is over. `pop` and `try_pop` call it."""
        ...

    def flush_unschedulable_leftover(self) -> None:
        """Retry pods that have waited for an event for too long. `pop` and `try_pop` call it."""
        ...

    def close(self) -> None:
        """Close the queue: `pop` returns None, also where it waits; all flights end."""
        ...

    def place(self, uid: str) -> Place | None:
        """Return the pod's place; None for an unknown pod."""
        ...

    def counts(self) -> Mapping[Place, int]:
        """Return the number of pods in each place, without those in flight."""
        ...

    def pending_pods(self) -> tuple[Sequence[Pod], str]:
        """Return the pods in the queue, without those in flight, and a summary of their number by place."""
        ...

    def in_flight_pods(self) -> Sequence[Pod]: ...

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]: ...
