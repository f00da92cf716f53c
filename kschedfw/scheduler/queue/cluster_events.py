"""The cluster events that the queue handles, and their derivation from changes of objects.

Semantics: kube-scheduler v1.36 `framework/events.go`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from kschedfw.api import Node, Pod
from kschedfw.api.requests import total_requests
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource

ASSIGNED_POD_ADD: Final = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_UPDATE: Final = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_OTHER)
ASSIGNED_POD_DELETE: Final = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD: Final = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE_OTHER)
UNSCHEDULED_POD_DELETE: Final = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE)
NODE_ADD: Final = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE: Final = ClusterEvent(EventResource.NODE, ActionType.DELETE)

UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(
    EventResource.WILDCARD, ActionType.ALL, custom_label="UnschedulableTimeout"
)
"""The event of a pod that has waited so long that it is retried without asking its plugins."""

FORCE_ACTIVATE: Final = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, custom_label="ForceActivate")
"""The event of a call, usually by a plugin, that wants a pod to be retried."""

RETRY_TIME: Final = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, custom_label="RetryTime")
"""The event of the time at which a plugin that rejected a pod wants it to be retried."""

# Two reasons for a move that aren't events of the cluster; the metric of moves has them, too.
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
# The entry of a pod in the list of events for pods in flight; no event of the cluster either.
POD_POPPED: Final = "PodPopped"

EventName = Callable[[ClusterEvent], str]
"""Returns the name of an event in metrics."""


def label_of(event: ClusterEvent) -> str:
    """Return the name that an event has in metrics up to v1.36."""
    return event.label


@functools.cache
def name_since_v1_37(event: ClusterEvent) -> str:
    """Return the name that an event has since v1.37 in metrics of handling events."""
    return event.label.replace(EventResource.UNSCHEDULED_POD, "UnscheduledPod", 1)


@functools.cache
def queue_name_since_v1_37(event: ClusterEvent) -> str:
    """Return the name that an event has since v1.37 in the queue's metrics, where an update is the pod's own."""
    if event.resource is EventResource.UNSCHEDULED_POD and event.action & ActionType.UPDATE:
        return event.label.replace(EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD, 1)
    return name_since_v1_37(event)


def pod_change_events(old: Pod, new: Pod) -> Sequence[ClusterEvent]:
    """Return the events of a pod's update; at least one (`PodSchedulingPropertiesChange`)."""
    if new.node_name:
        changes, otherwise = _ASSIGNED_POD_CHANGES, ASSIGNED_POD_UPDATE
    else:
        changes, otherwise = _UNSCHEDULED_POD_CHANGES, UNSCHEDULED_POD_UPDATE
    return [event for event, happened in changes if happened(old, new)] or [otherwise]


def pod_update_events(old: Pod, new: Pod) -> Sequence[ClusterEvent]:
    """Return the events of an update; none if nothing has changed, as after a new listing of all objects."""
    version = new.metadata.resource_version
    if old is new or (version and version == old.metadata.resource_version):
        return ()
    return pod_change_events(old, new)


def node_change_events(old: Node, new: Node) -> Sequence[ClusterEvent]:
    """Return the events of a node's update; none if no plugin depends on it (`NodeSchedulingPropertiesChange`)."""
    return [event for event, happened in _NODE_CHANGES if happened(old, new)]


def _scaled_down(old: Pod, new: Pod) -> bool:
    """Return whether the pod requests less of a resource, or no longer names one, be it one of which it requested 0."""
    if old.spec is new.spec and not (old.status.tells_of_resources or new.status.tells_of_resources):
        return False  # the usual case: only the status has changed
    before, after = total_requests(old), total_requests(new)
    return any(
        name not in after or amount.milli_value() > after[name].milli_value()
        for name, amount in before.items()
    )


def _gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _taints_changed(old: Node, new: Node) -> bool:
    # kube-scheduler has no action of its own for a node that is uncordoned: it counts as a change of taints.
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    return uncordoned or old.spec.taints != new.spec.taints


def _condition_statuses(node: Node) -> dict[str, str]:
    # Only the status: heartbeats change the other fields of conditions all the time.
    return {condition.type: condition.status for condition in node.status.conditions}


T = TypeVar("T", Node, Pod)
_Changes = Sequence[tuple[ActionType, Callable[[T, T], bool]]]
_Events = Sequence[tuple[ClusterEvent, Callable[[T, T], bool]]]


def _changed(read: Callable[[T], object]) -> Callable[[T, T], bool]:
    """Return a function that tells whether what `read` returns differs between two objects."""
    return lambda old, new: read(old) != read(new)


def _events(resource: EventResource, changes: _Changes[T]) -> _Events[T]:
    return tuple((ClusterEvent(resource, action), happened) for action, happened in changes)


_POD_CHANGES: Final[_Changes[Pod]] = (
    (ActionType.UPDATE_POD_LABEL, _changed(lambda each: each.labels)),
    (ActionType.UPDATE_POD_SCALE_DOWN, _scaled_down),
    (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_eliminated),
    # The API only allows adding tolerations, so comparing their number suffices.
    (ActionType.UPDATE_POD_TOLERATION, _changed(lambda pod: len(pod.spec.tolerations))),
    (
        ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        _changed(lambda pod: (pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status)),
    ),
)
_ASSIGNED_POD_CHANGES: Final = _events(EventResource.ASSIGNED_POD, _POD_CHANGES)
_UNSCHEDULED_POD_CHANGES: Final = _events(EventResource.UNSCHEDULED_POD, _POD_CHANGES)
_NODE_CHANGES: Final[_Events[Node]] = _events(
    EventResource.NODE,
    (
        (ActionType.UPDATE_NODE_TAINT, _taints_changed),
        (ActionType.UPDATE_NODE_ALLOCATABLE, _changed(lambda node: node.status.allocatable)),
        (ActionType.UPDATE_NODE_LABEL, _changed(lambda each: each.labels)),
        (ActionType.UPDATE_NODE_CONDITION, _changed(_condition_statuses)),
        (ActionType.UPDATE_NODE_ANNOTATION, _changed(lambda node: node.annotations)),
        (ActionType.UPDATE_NODE_DECLARED_FEATURE, _changed(lambda node: node.status.declared_features)),
    ),
)
