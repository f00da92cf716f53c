"""The events that are worth another attempt for a pod that was refused because of its volumes."""

from __future__ import annotations

from kschedfw import ActionType, ClusterEvent, EventResource, Pod, QueueingHint
from kschedfw.api import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kschedfw.api.volumes import claim_name
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._migration import MIGRATED_PLUGINS
from kschedfw.plugins.volume_binding.provisioning import largest_volume


def volume_events() -> tuple[ClusterEvent, ...]:
    """Return the events that the plugin subscribes to, each with its hint."""
    add_or_update = ActionType.ADD | ActionType.UPDATE
    return (
        ClusterEvent(EventResource.STORAGE_CLASS, add_or_update, _after_storage_class_change),
        ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, add_or_update, _after_claim_change),
        ClusterEvent(EventResource.PERSISTENT_VOLUME, add_or_update),
        ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEvent(EventResource.CSI_NODE, add_or_update, _after_csi_node_change),
        ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE, _after_driver_change),
        ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, add_or_update, _after_capacity_change),
        # What is reserved for a pod is free again when the pod goes or isn't bound after all. kube-scheduler has no
        # such subscription, and leaves the refused pod to the timeout.
        ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, _after_pod_deletion),
    )


def _after_claim_change(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    """Queue when the changed claim is one of the pod's."""
    if not isinstance(new, PersistentVolumeClaim):
        return QueueingHint.QUEUE
    return queue_if(
        new.namespace == pod.namespace
        and any(claim_name(pod, volume) == new.name for volume in pod.spec.volumes)
    )


def _after_storage_class_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when the class is new, or its allowed topologies have changed; nothing else in it is mutable."""
    if not (isinstance(old, StorageClass) and isinstance(new, StorageClass)):
        return QueueingHint.QUEUE
    return queue_if(old.allowed_topologies != new.allowed_topologies)


def _after_csi_node_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when the migrated in-tree plugins of a node have changed, since that changes its zone label."""
    if not (isinstance(old, CSINode) and isinstance(new, CSINode)):
        return QueueingHint.QUEUE
    return queue_if(old.annotations.get(MIGRATED_PLUGINS, "") != new.annotations.get(MIGRATED_PLUGINS, ""))


def _after_driver_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a driver of the pod's own volumes no longer publishes storage capacity."""
    if not (isinstance(old, CSIDriver) and isinstance(new, CSIDriver)):
        return QueueingHint.QUEUE
    concerned = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    return queue_if(concerned and old.spec.storage_capacity and not new.spec.storage_capacity)


def _after_capacity_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a capacity admits larger volumes."""
    if not (isinstance(old, CSIStorageCapacity) and isinstance(new, CSIStorageCapacity)):
        return QueueingHint.QUEUE
    before, now = largest_volume(old), largest_volume(new)
    return queue_if(now is not None and (before is None or now.value() > before.value()))


def _after_pod_deletion(_pod: Pod, old: object | None, _new: object | None) -> QueueingHint:
    """Queue when volumes may have been reserved for the pod that went."""
    return queue_if(
        isinstance(old, Pod) and any(claim_name(old, volume) is not None for volume in old.spec.volumes)
    )
