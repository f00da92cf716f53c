"""The volumes that a pod has attached to its node, by CSI driver, and how many a node can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from kschedfw import ClusterClient, IntArray, NodeTable, Pod
from kschedfw.api import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    VolumeAttachment,
    class_of_claim,
)
from kschedfw.api.records import frozen
from kschedfw.plugins._migration import TranslationError, plugin_named, plugin_of
from kschedfw.plugins._storage import VolumeError, claim_of

Attachment = tuple[str, str]
"""A volume by its driver, and the handle that the driver knows it by."""

_NOT_BOUND: Final = "not bound: "
"""The prefix of a claim's key that stands for a volume not made yet; no driver's handle looks like that."""


def can_count(pod: Pod) -> bool:
    """Tell whether the pod may have volumes that count: a claim, or an inline volume that a CSI driver may handle."""
    # A loop takes a third of the time of `any`: this runs twice for every pod with volumes.
    for volume in pod.storage:
        if (
            volume.persistent_volume_claim is not None
            or volume.ephemeral is not None
            or plugin_of(volume) is not None
        ):
            return True
    return False


def may_fail(volume: Volume) -> bool:
    """Tell whether `attachments` could fail for this volume of a running pod."""
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
        # As in kube-scheduler, which only logs it.
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


NO_LIMIT: Final = 1 << 62


def limits_of(csi_node: CSINode | None) -> Mapping[str, int]:
    """Return the node's limit on attached volumes, by driver; drivers without a limit are omitted."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


@frozen(eq=False)
class LimitColumns:
    """The limits by driver, and the lowest of any driver, shape (n,) each; NO_LIMIT where there is none."""

    csi_nodes: Sequence[CSINode]
    layout: int
    lowest: IntArray
    by_driver: Mapping[str, IntArray]

    @classmethod
    def of(cls, csi_nodes: Sequence[CSINode], table: NodeTable) -> LimitColumns:
        lowest = np.full(len(table), NO_LIMIT, dtype=np.int64)
        by_driver: dict[str, IntArray] = {}
        for csi_node in csi_nodes:
            row = table.rows.get(csi_node.name)
            if row is None:
                continue
            for driver, limit in limits_of(csi_node).items():
                if driver not in by_driver:
                    by_driver[driver] = np.full(len(table), NO_LIMIT, dtype=np.int64)
                by_driver[driver][row] = limit
                lowest[row] = min(lowest[row], limit)
        return cls(csi_nodes, table.layout, lowest, by_driver)


@frozen(eq=False)
class AttachmentsByNode:
    """All VolumeAttachments that name a volume, by node."""

    listed: Sequence[VolumeAttachment]
    by_node: Mapping[str, Sequence[VolumeAttachment]]

    @classmethod
    def of(cls, listed: Sequence[VolumeAttachment]) -> AttachmentsByNode:
        by_node: dict[str, list[VolumeAttachment]] = {}
        for each in listed:
            if each.spec.attacher and each.spec.source.persistent_volume_name is not None:
                by_node.setdefault(each.spec.node_name, []).append(each)
        return cls(listed, by_node)


class StorageOfNodes:
    """The CSINodes and VolumeAttachments by node.

    The same objects are returned until these change, which makes comparisons cheap.
    """

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._limits: LimitColumns | None = None
        self._attachments = AttachmentsByNode.of(())

    def limits(self, table: NodeTable) -> LimitColumns:
        csi_nodes, known = self._cluster.list(CSINode), self._limits
        if known is None or known.layout != table.layout or not _are_same(known.csi_nodes, csi_nodes):
            known = self._limits = LimitColumns.of(csi_nodes, table)
        return known

    def attachments(self) -> Mapping[str, Sequence[VolumeAttachment]]:
        listed = self._cluster.list(VolumeAttachment)
        if not _are_same(self._attachments.listed, listed):
            self._attachments = AttachmentsByNode.of(listed)
        return self._attachments.by_node


def _are_same(listed: Sequence[object], others: Sequence[object]) -> bool:
    # A cluster gives out the same objects until they change, and most the same sequence, which isn't compared then.
    return listed is others or listed == others
