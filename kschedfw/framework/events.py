"""Cluster events that may make a rejected pod schedulable (kube-scheduler `ClusterEvent`, KEP-4247)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, Flag, StrEnum, auto
from functools import cached_property
from typing import Final

from kschedfw.api import KINDS, CustomKind, Named, Pod
from kschedfw.api.records import frozen


class EventResource(StrEnum):
    """The kinds of object whose changes a plugin can subscribe to; the texts are those in kube-scheduler's metrics.

    A subscription to POD is one to both ASSIGNED_POD and UNSCHEDULED_POD. TARGET_POD stands for updates of the rejected
    pod itself (v1.37), which a subscription to UNSCHEDULED_POD covers, too. These are
    v1.36's names; metrics have those of the version.
    """

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    TARGET_POD = "TargetPod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    WILDCARD = "*"


EVENT_RESOURCES: Final[Mapping[type[Named], EventResource]] = {
    kind.cls: EventResource(kind.event_resource)
    for kind in KINDS.values()
    if kind.event_resource in set(EventResource)
}
"""The event resource of a class of objects, for the kinds whose changes a plugin can subscribe to."""


class ActionType(Flag):
    """The kinds of change of an object.

    UPDATE_OTHER is a change that none of the other members covers, such as one of a pod's annotations, and any
    change of an object that is neither pod nor node (kube-scheduler `updatePodOther`, which plugins there get
    by Update alone).
    """

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE_OTHER = auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE

    def __str__(self) -> str:
        """Return kube-scheduler's spelling, e.g. `UpdateNodeLabel`; several are joined by `|`."""
        if self is ActionType.UPDATE_OTHER:
            return "Update"
        return (self.name or "").title().replace("_", "")


class QueueingHint(Enum):
    """The answer to whether an event may make a rejected pod schedulable."""

    SKIP = "skip"
    QUEUE = "queue"


QueueingHintFunction = Callable[[Pod, object | None, object | None], QueueingHint]
"""(pod, old object, new object) -> hint; old is None for an addition, new for a deletion."""
PreQueueingHintFunction = Callable[[object | None, object | None], bool]
"""(old object, new object) -> whether the event may wake any pod at all (kube-scheduler v1.37 `PreQueueingHintFn`)."""


@frozen(cache_hash=True)
class ClusterEvent:
    """An event in the cluster, or a plugin's subscription to such events.

    A subscription may have a hint, which decides for each event and pod whether the pod is tried again. Without
    a hint every event of the subscription is worth an attempt. Changes of custom objects are ADD, DELETE and
    UPDATE; a hint reads the objects by its own class for the kind (`CustomResource.of`).

    A `pre_hint` is asked once for an event, and if it is False, no pod's hint is. It is for events that wake nobody
    most of the time, while many pods wait. Where it is False, the hint has to skip every pod.
    """

    resource: EventResource | CustomKind
    action: ActionType
    hint: QueueingHintFunction | None = None
    custom_label: str = ""
    pre_hint: PreQueueingHintFunction | None = None

    def __attrs_post_init__(self) -> None:
        """Raise TypeError where a field is of another type: such an event would silently never match."""
        if not isinstance(self.resource, EventResource | CustomKind):
            raise TypeError(f"resource: expected an EventResource or a CustomKind, found {self.resource!r}")
        if not isinstance(self.action, ActionType):
            raise TypeError(f"action: expected an ActionType, found {self.action!r}")
        if not (self.hint is None or callable(self.hint)):
            raise TypeError(f"hint: expected a function of (pod, old, new), found {self.hint!r}")
        if not (self.pre_hint is None or callable(self.pre_hint)):
            raise TypeError(f"pre_hint: expected a function of (old, new), found {self.pre_hint!r}")

    @cached_property
    def label(self) -> str:
        """The event's name in metrics and logs, such as `NodeUpdateNodeTaint`."""
        return self.custom_label or f"{self.resource}{self.action}"

    @property
    def can_happen(self) -> bool:
        """True if events of this name, or events that this subscription covers, exist."""
        return bool(self.action & self._possible)

    @property
    def why_never(self) -> str:
        """A sentence for an event that can't happen: what can, of the same resource."""
        of = self.resource.name if isinstance(self.resource, EventResource) else self.resource
        actions = ", ".join(each.name or "" for each in self._possible)
        return f"{self.label}, which never happens; actions of {of} are {actions}"

    @property
    def _possible(self) -> ActionType:
        if self.resource is EventResource.WILDCARD:
            return ActionType.ALL
        updates = _UPDATES.get(self.resource, ActionType.UPDATE_OTHER)
        # A pod that is rejected is there already, and nobody waits for it once it is gone.
        return (
            updates
            if self.resource is EventResource.TARGET_POD
            else ActionType.ADD | ActionType.DELETE | updates
        )

    @property
    def is_wildcard(self) -> bool:
        """True if this subscription covers all events."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, event: ClusterEvent) -> bool:
        """Return whether this subscription covers an event (kube-scheduler `MatchClusterEvents`).

        The scheduler names events as precisely as it can. Hence a subscription to UPDATE_NODE_LABEL doesn't
        cover an UPDATE whose changed part is unknown.
        """
        if self.is_wildcard:
            return True
        if self.resource is EventResource.TARGET_POD:
            # The queue tells only a pod itself of its update while it isn't on a node.
            return event.resource in _WAITING_PODS and event.action in self.action & _POD_UPDATES
        return self._concerns(event.resource) and event.action in self.action

    def _concerns(self, resource: EventResource | CustomKind) -> bool:
        if self.resource is EventResource.POD:
            return resource in _PODS
        return self.resource in (EventResource.WILDCARD, resource)


_PODS = frozenset({EventResource.POD, EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD})
_WAITING_PODS = frozenset({EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD})
_POD_UPDATES = (
    ActionType.UPDATE_POD_LABEL
    | ActionType.UPDATE_POD_SCALE_DOWN
    | ActionType.UPDATE_POD_TOLERATION
    | ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    | ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    | ActionType.UPDATE_OTHER
)
_UPDATES: Mapping[EventResource | CustomKind, ActionType] = {
    EventResource.NODE: ActionType.UPDATE & ~_POD_UPDATES,
    **dict.fromkeys((*_PODS, EventResource.TARGET_POD), _POD_UPDATES),
}
"""The actions of an object's updates, by resource; updates of other resources are UPDATE_OTHER."""
