"""The durations of handling events (kube-scheduler's metric `event_handling_duration_seconds`)."""

from __future__ import annotations

from collections.abc import Container, Sequence

from kschedfw.api.custom import CustomObject
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.cluster.protocol import Handler
from kschedfw.framework.clock import Clock
from kschedfw.framework.events import EVENT_RESOURCES, ActionType, ClusterEvent
from kschedfw.framework.metrics import MetricsRecorder, listens
from kschedfw.scheduler.queue.cluster_events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    node_change_events,
    pod_change_events,
)


def measured(
    handler: Handler,
    metrics: MetricsRecorder,
    clock: Clock,
    scheduler_names: Container[str],
) -> Handler:
    """Return a handler that also records its duration; the handler itself if metrics are disabled."""
    if not listens(metrics):
        return handler

    def handle(event: WatchEvent) -> None:
        began = clock.monotonic()
        handler(event)
        seconds = clock.monotonic() - began
        for each in happened(event, scheduler_names):
            metrics.event_handled(each.label, seconds)

    return handle


def happened(event: WatchEvent, scheduler_names: Container[str]) -> Sequence[ClusterEvent]:
    """Return the cluster events for a change of an object; none if neither queue nor cache use it."""
    obj, old = event.object, event.old
    if isinstance(obj, Pod):
        return _happened_to_pod(event, obj, scheduler_names)
    if isinstance(obj, Node):
        if event.type is EventType.MODIFIED and isinstance(old, Node):
            return node_change_events(old, obj)
        return (NODE_DELETE,) if event.type is EventType.DELETED else (NODE_ADD,)
    resource = obj.kind if isinstance(obj, CustomObject) else EVENT_RESOURCES.get(type(obj))
    return () if resource is None else (ClusterEvent(resource, _ACTIONS[event.type]),)


_ACTIONS = {
    EventType.ADDED: ActionType.ADD,
    EventType.MODIFIED: ActionType.UPDATE_OTHER,
    EventType.DELETED: ActionType.DELETE,
}


def _happened_to_pod(event: WatchEvent, pod: Pod, scheduler_names: Container[str]) -> Sequence[ClusterEvent]:
    if not pod.node_name and pod.spec.scheduler_name not in scheduler_names:
        return ()
    if event.type is EventType.DELETED or pod.is_terminal:
        return (ASSIGNED_POD_DELETE if pod.node_name else UNSCHEDULED_POD_DELETE,)
    old = event.old
    if isinstance(old, Pod) and old.uid == pod.uid and bool(old.node_name) is bool(pod.node_name):
        return pod_change_events(old, pod)
    return (ASSIGNED_POD_ADD if pod.node_name else UNSCHEDULED_POD_ADD,)
