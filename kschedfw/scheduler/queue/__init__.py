"""The scheduling queue."""

from kschedfw.scheduler.queue.cluster_events import node_change_events, pod_change_events
from kschedfw.scheduler.queue.idle_queue import IdleQueue
from kschedfw.scheduler.queue.protocol import (
    Place,
    PodAlreadyQueuedError,
    PodInFlightError,
    PodQueue,
    PreCheck,
    QueueProfile,
)
from kschedfw.scheduler.queue.scheduling_queue import SchedulingQueue

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
