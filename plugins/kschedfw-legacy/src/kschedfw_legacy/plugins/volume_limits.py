"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits: limits of a node's in-tree volumes (until v1.31)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar, Final

from kschedfw import (
    ActionType,
    ClusterEvent,
    EventResource,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    Reads,
    Status,
    hookimpl,
)
from kschedfw.api import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, Volume
from kschedfw.plugins import (
    AZURE_DISK,
    CINDER,
    EBS,
    GCE_PD,
    ClaimNotFoundError,
    InTreePlugin,
    VolumeError,
    claim_of,
)

_TOO_MANY: Final = Status.unschedulable("node(s) exceed max volume count")
_INSTANCE_TYPES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# kube-scheduler's expression, in which only the first alternative is anchored.
_NITRO: Final = re.compile(r"^[cmr]5.*|t3|z1d")
"""EC2 instance types on which network interfaces and volumes share the same attachment slots."""
_EBS_LIMIT_ON_NITRO: Final = 25


class InTreeLimits(Plugin):
    """Refuses nodes that can't attach the pod's additional volumes of an in-tree plugin.

    The limit is the node's allocatable `attachable-volumes-…`, or else a default. If the node's CSINode says that the
    plugin has been migrated, this limit is ignored, and NodeVolumeLimits applies. The filter looks up claims and
    volumes in the cluster, so it isn't pure.
    """

    reads: ClassVar[Reads | None] = Reads.CLUSTER
    in_tree: ClassVar[InTreePlugin]
    id_field: ClassVar[str] = "volume_id"
    resource: ClassVar[str]
    default: ClassVar[int]

    def sign(self, pod: Pod) -> Hashable | None:
        """Return an empty signature for pods without such volumes, otherwise None.

        The answer for other pods depends on claims and volumes, whose changes a signature can't show.
        """
        return None if pod.spec.volumes and self._concerns(pod) else ()

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return None if pod.spec.volumes and self._concerns(pod) else Status.skip()

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        try:
            new = set(self._ids(pod, is_new=True))
            # Without new volumes, a node beyond its limit takes the pod.
            if not new or self.in_tree.is_migrated(self.handle.cluster.get(CSINode, node_info.name)):
                return None
            used = {volume for each in node_info.pods_with_volumes for volume in self._ids(each.pod)}
        except ClaimNotFoundError as error:
            return Status.unresolvable(str(error))
        except VolumeError as error:
            return Status.from_error(error)
        limit = node_info.allocatable.scalar_resources.get(self.resource)
        if limit is None:
            limit = self._default_for(node_info.node)
        return _TOO_MANY if len(used | new) > limit else None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
            ClusterEvent(EventResource.POD, ActionType.DELETE),
            ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
        ]

    def _concerns(self, pod: Pod) -> bool:
        return any(
            volume.persistent_volume_claim is not None
            or volume.ephemeral is not None
            or getattr(volume, self.in_tree.field) is not None
            for volume in pod.storage
        )

    def _ids(self, pod: Pod, *, is_new: bool = False) -> Iterator[str]:
        """Yield the ids of the pod's volumes of this kind. Raises as `claim_of` does."""
        for volume in pod.storage:
            found = self._id(volume)
            if found is None:
                claim = claim_of(self.handle.cluster, pod, volume, is_new=is_new)
                found = None if claim is None else self._claimed(claim)
            if found is not None:
                yield found

    def _claimed(self, claim: PersistentVolumeClaim) -> str | None:
        name = claim.spec.volume_name
        volume = self.handle.cluster.get(PersistentVolume, name) if name else None
        if volume is not None:
            return self._id(volume)
        # The volume is missing. The claim counts if its class makes volumes of this kind.
        wanted = claim.spec.storage_class_name
        storage_class = self.handle.cluster.get(StorageClass, wanted) if wanted else None
        if storage_class is None or storage_class.provisioner != self.in_tree.name:
            return None
        # The volume's id isn't known yet. No id has this form, and it is the same for all pods with the claim.
        return f"not bound: {claim.key}"

    def _id(self, volume: Volume | PersistentVolume) -> str | None:
        sources = volume.spec if isinstance(volume, PersistentVolume) else volume
        source = getattr(sources, self.in_tree.field)
        return None if source is None else str(getattr(source, self.id_field))

    def _default_for(self, node: Node) -> int:  # noqa: ARG002  # only for EBS it depends on the node
        return self.default


class EBSLimits(InTreeLimits):
    """Refuses nodes above their limit of EBS volumes: by default 39, or 25 on instances of the Nitro system."""

    name: ClassVar[str] = "EBSLimits"
    in_tree: ClassVar[InTreePlugin] = EBS
    resource: ClassVar[str] = "attachable-volumes-aws-ebs"
    # AWS recommends at most 40 volumes, one of which is the root volume.
    default: ClassVar[int] = 39

    def _default_for(self, node: Node) -> int:
        kind = next((node.labels[key] for key in _INSTANCE_TYPES if key in node.labels), "")
        return _EBS_LIMIT_ON_NITRO if _NITRO.search(kind) else self.default


class GCEPDLimits(InTreeLimits):
    """Refuses nodes above their limit of GCE persistent disks: 16 by default."""

    name: ClassVar[str] = "GCEPDLimits"
    in_tree: ClassVar[InTreePlugin] = GCE_PD
    id_field: ClassVar[str] = "pd_name"
    resource: ClassVar[str] = "attachable-volumes-gce-pd"
    default: ClassVar[int] = 16


class AzureDiskLimits(InTreeLimits):
    """Refuses nodes above their limit of Azure disks: 16 by default."""

    name: ClassVar[str] = "AzureDiskLimits"
    in_tree: ClassVar[InTreePlugin] = AZURE_DISK
    id_field: ClassVar[str] = "disk_name"
    resource: ClassVar[str] = "attachable-volumes-azure-disk"
    default: ClassVar[int] = 16


class CinderLimits(InTreeLimits):
    """Refuses nodes above their limit of Cinder volumes: 256 by default."""

    name: ClassVar[str] = "CinderLimits"
    in_tree: ClassVar[InTreePlugin] = CINDER
    resource: ClassVar[str] = "attachable-volumes-cinder"
    # Backends differ, so v1.20 chose a high number. Administrators set the real one on the node.
    default: ClassVar[int] = 256
