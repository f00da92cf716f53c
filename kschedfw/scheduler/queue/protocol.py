"""The places of pods in a queue, its errors, and the part of a profile that it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from kschedfw.api import KschedfwError, Pod
from kschedfw.api.records import define
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
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


@define(eq=False)
class PodAlreadyQueuedError(KschedfwError):
    """The error of returning a pod that is queued already: each popped pod may be returned only once."""

    pod: Pod
    place: Place

    def __str__(self) -> str:
        return f"pod {self.pod.key} is already present in the {self.place} queue"


@define(eq=False)
class PodInFlightError(KschedfwError):
    """The error of taking a pod out of the queue while it is being scheduled or bound."""

    pod: Pod

    def __str__(self) -> str:
        return f"pod {self.pod.key} is being scheduled or bound"


class QueueProfile(Protocol):
    """The part of a `Framework` that the queue calls."""

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool: ...

    def run_pre_enqueue_plugins(self, pod: Pod) -> Status: ...

    def events_to_register(self) -> Mapping[str, Sequence[ClusterEvent]]: ...
