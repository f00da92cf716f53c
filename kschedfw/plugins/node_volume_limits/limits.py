"""Volume limits and attachments of nodes, from CSINodes and VolumeAttachments, cached until these change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from kschedfw import ClusterClient, IntArray, NodeTable
from kschedfw.api import CSINode, VolumeAttachment

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


@attrs.frozen(eq=False)
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


@attrs.frozen(eq=False)
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
        if known is None or known.layout != table.layout or known.csi_nodes != csi_nodes:
            known = self._limits = LimitColumns.of(csi_nodes, table)
        return known

    def attachments(self) -> Mapping[str, Sequence[VolumeAttachment]]:
        listed = self._cluster.list(VolumeAttachment)
        if self._attachments.listed != listed:
            self._attachments = AttachmentsByNode.of(listed)
        return self._attachments.by_node
