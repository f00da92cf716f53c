"""The volumes that a pod has attached to its node, by CSI driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kschedfw import ClusterClient, Pod
from kschedfw.api import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    class_of_claim,
)
from kschedfw.plugins._claims import VolumeError, claim_of
from kschedfw.plugins._migration import TranslationError, plugin_named, plugin_of

Attachment = tuple[str, str]
"""A volume by its driver, and the handle that the driver knows it by."""

_NOT_BOUND: Final = "not bound: "
"""Before the key of a claim, what stands for a volume that isn't there yet; no driver's handle is like that."""


def can_count(pod: Pod) -> bool:
    """Whether the pod may have volumes that count: a claim, or an inline volume that a CSI driver may handle."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or plugin_of(volume) is not None
        for volume in pod.storage
    )


def may_fail(volume: Volume) -> bool:
    """Whether `attachments` could fail for this volume of a running pod."""
    claim, ebs = volume.persistent_volume_claim, volume.aws_elastic_block_store
    return (
        volume.ephemeral is not None
        or (claim is not None and not claim.claim_name)
        or (ebs is not None and ebs.volume_id.startswith("aws://"))
    )


def attachments(
    cluster: ClusterClient, pod: Pod, csi_node: CSINode | None, *, is_new: bool = False
) -> Iterator[Attachment]:
    """Yield the volumes that the pod has attached, or would have, on the node.

    Raises:
        ClaimNotFoundError: a claim of a new pod is missing; missing claims of running pods are skipped.
        VolumeError: a volume can't be determined.
    """
    for volume in pod.storage:
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            found = _inline(volume, csi_node)
        else:
            claim = claim_of(cluster, pod, volume, is_new=is_new)
            found = None if claim is None else _claimed(cluster, claim, csi_node)
        if found is not None:
            yield found


def _inline(volume: Volume, csi_node: CSINode | None) -> Attachment | None:
    plugin = plugin_of(volume)
    if plugin is None or not plugin.is_migrated(csi_node):
        return None
    try:
        return plugin.driver, plugin.inline_handle(volume)
    except TranslationError as error:
        raise VolumeError(f"converting volume({volume.name}) from inline to csi: {error}") from error


def _claimed(
    cluster: ClusterClient, claim: PersistentVolumeClaim, csi_node: CSINode | None
) -> Attachment | None:
    name = claim.spec.volume_name
    volume = cluster.get(PersistentVolume, name) if name else None
    if volume is None:
        return _to_be_made(cluster, claim, csi_node)
    if volume.spec.csi is not None:
        driver, handle = volume.spec.csi.driver, volume.spec.csi.volume_handle
    else:
        plugin = plugin_of(volume)
        if plugin is None or not plugin.is_migrated(csi_node):
            return None
        try:
            driver, handle = plugin.driver, plugin.handle_of(volume)
        except TranslationError:
            return None
    return (driver, handle) if driver and handle else None


def _to_be_made(
    cluster: ClusterClient, claim: PersistentVolumeClaim, csi_node: CSINode | None
) -> Attachment | None:
    """Return the volume that will be provisioned for the claim by its storage class; None without a class."""
    name = class_of_claim(claim)
    storage_class = cluster.get(StorageClass, name) if name else None
    if storage_class is None or not storage_class.provisioner:
        return None
    plugin = plugin_named(storage_class.provisioner)
    if plugin is None:
        return storage_class.provisioner, _NOT_BOUND + claim.key
    return (plugin.driver, _NOT_BOUND + claim.key) if plugin.is_migrated(csi_node) else None
