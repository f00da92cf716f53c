"""What the queue tells about itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Place(StrEnum):
    """Where a pod that isn't bound can be; it is in exactly one of them."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


class QueueMetrics(Protocol):
    """Receives the queue's metrics. Called while the queue is locked: must be fast and must not call the queue."""

    def pod_incoming(self, queue: Place, event: str) -> None:
        """A pod entered ACTIVE, BACKOFF or UNSCHEDULABLE (which here includes GATED) because of the event.

        kube-scheduler `scheduler_queue_incoming_pods_total`.
        """
        ...

    def pending_pods(self, queue: Place, count: int) -> None:
        """So many pods are in ACTIVE, BACKOFF, UNSCHEDULABLE or GATED now; told on change.

        kube-scheduler `scheduler_pending_pods`.
        """
        ...


class NoMetrics:
    """Tells nobody."""

    def pod_incoming(self, queue: Place, event: str) -> None:
        pass

    def pending_pods(self, queue: Place, count: int) -> None:
        pass
