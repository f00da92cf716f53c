"""The scheduling queue."""

from kschedfw.scheduler.queue.cluster_events import node_change_events, pod_change_events
from kschedfw.scheduler.queue.idle_queue import IdleQueue
from kschedfw.scheduler.queue.protocol import (
    Place,
    PodAlreadyQueuedError,
    PodInFlightError,
    PreCheck,
    QueueProfile,
)
from kschedfw.scheduler.queue.scheduling_queue import SchedulingQueue

PodQueue = SchedulingQueue
"""The queue by its earlier name."""

__all__ = [
    "IdleQueue",
    "Place",
    "PodAlreadyQueuedError",
    "PodInFlightError",
    "PodQueue",
    "PreCheck",
    "QueueProfile",
    "SchedulingQueue",
    "node_change_events",
    "pod_change_events",
]
