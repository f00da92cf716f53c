"""Which cluster events may make a rejected pod schedulable (kube-scheduler `ClusterEvent`; KEP-4247)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, Flag, StrEnum, auto

import attrs

from kschedfw.api.pod import Pod


class EventResource(StrEnum):
    """The kinds of object whose changes a plugin can subscribe to."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    STORAGE_CLASS = "StorageClass"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    WILDCARD = "*"


class ActionType(Flag):
    """What happened to the object."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_OTHER = auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


class QueueingHint(Enum):
    """Whether an event is worth another attempt for a rejected pod."""

    SKIP = "skip"
    QUEUE = "queue"


QueueingHintFunction = Callable[[Pod, object | None, object | None], QueueingHint]
"""(pod, old object, new object) -> hint; old is None for an addition, new for a deletion."""


@attrs.frozen
class ClusterEvent:
    """An event, with a hint that looks closer; without a hint every such event is worth an attempt."""

    resource: EventResource
    action: ActionType
    hint: QueueingHintFunction | None = None
