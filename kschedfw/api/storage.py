"""Persistent volumes, their claims, storage classes and what nodes can attach, as far as scheduling reads them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import Named
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32
from kschedfw.api.selectors import LabelSelector, NodeSelector
from kschedfw.api.volumes import (
    AWSElasticBlockStoreSource,
    AzureDiskSource,
    AzureFileSource,
    CinderSource,
    CSISource,
    GCEPersistentDiskSource,
    ISCSISource,
    PersistentVolumeClaimSpec,
    PortworxVolumeSource,
    RBDSource,
    VsphereVolumeSource,
)


class VolumeBindingMode(StrEnum):
    """The time at which claims of a storage class are bound: at once, or when a pod that uses them is scheduled."""

    IMMEDIATE = "Immediate"
    WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


DEFAULT_CLASS_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""The annotations of a default class; the API server heeds the old one, too."""


@frozen
class ObjectReference:
    """A reference to an object (core/v1 ObjectReference)."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


@frozen
class VolumeNodeAffinity:
    """The nodes that can reach a volume (core/v1 VolumeNodeAffinity); None means all."""

    required: NodeSelector | None = None


@frozen
class LocalSource:
    """A disk or directory of one node."""

    path: str = ""


@frozen
class PersistentVolumeSpec:
    """A volume's source, its claim and the nodes that reach it (core/v1 PersistentVolumeSpec)."""

    capacity: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""
    volume_mode: str = "Filesystem"
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    local: LocalSource | None = None


@frozen
class VolumePhase:
    """The status of a volume or claim: `Pending`, `Available`, `Bound`, `Released`, `Failed`, `Lost`."""

    phase: str = "Pending"


@frozen
class PersistentVolume(Named):
    """A piece of storage in the cluster (core/v1 PersistentVolume)."""

    spec: PersistentVolumeSpec = attrs.field(factory=PersistentVolumeSpec)
    status: VolumePhase = attrs.field(factory=VolumePhase)


@frozen
class PersistentVolumeClaim(Named):
    """A user's request for storage (core/v1 PersistentVolumeClaim)."""

    spec: PersistentVolumeClaimSpec = attrs.field(factory=PersistentVolumeClaimSpec)
    status: VolumePhase = attrs.field(factory=VolumePhase)


@frozen
class TopologyRequirement:
    """A label and its allowed values (core/v1 TopologySelectorLabelRequirement)."""

    key: str
    values: tuple[str, ...] = ()


@frozen
class TopologySelectorTerm:
    """Labels that a node must have so that a volume can be provisioned there; all requirements must hold (core/v1)."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


@frozen
class StorageClass(Named):
    """The rules by which volumes for claims are provisioned (storage.k8s.io/v1 StorageClass)."""

    provisioner: str = ""
    volume_binding_mode: VolumeBindingMode = VolumeBindingMode.IMMEDIATE
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()

    @property
    def is_default(self) -> bool:
        """True if claims without a class get this one (`IsDefaultAnnotation` in Kubernetes' storage utilities)."""
        return any(self.annotations.get(annotation) == "true" for annotation in DEFAULT_CLASS_ANNOTATIONS)


@frozen
class VolumeNodeResources:
    """The number of volumes that a driver can attach to a node; None means no limit."""

    count: Int32 | None = None


@frozen
class CSINodeDriver:
    """A storage driver on a node (storage.k8s.io/v1 CSINodeDriver)."""

    name: str
    node_id: str = attrs.field(default="", metadata={"json": "nodeID"})
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


@frozen
class CSINodeSpec:
    """The storage drivers of a node (storage.k8s.io/v1 CSINodeSpec)."""

    drivers: tuple[CSINodeDriver, ...] = ()


@frozen
class CSINode(Named):
    """storage.k8s.io/v1 CSINode: the storage drivers of a node, and the number of volumes that each can attach."""

    spec: CSINodeSpec = attrs.field(factory=CSINodeSpec)


@frozen
class CSIDriverSpec:
    """The handling of a driver's volumes (storage.k8s.io/v1 CSIDriverSpec).

    `prevent_pod_scheduling_if_missing` has pods with volumes of the driver refused on nodes without it (KEP-5030).
    """

    attach_required: bool = True
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


@frozen
class CSIDriver(Named):
    """storage.k8s.io/v1 CSIDriver: the handling of a driver's volumes; the name is the driver's.

    With `storage_capacity` its CSIStorageCapacity objects have the room for new volumes.
    """

    spec: CSIDriverSpec = attrs.field(factory=CSIDriverSpec)


@frozen
class CSIStorageCapacity(Named):
    """storage.k8s.io/v1 CSIStorageCapacity: the room that a storage class has on the nodes of `node_topology`.

    None as topology selects no node, an empty one every node.
    """

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


@frozen
class VolumeAttachmentSource:
    """The volume that is attached, by name or in place (storage.k8s.io/v1 VolumeAttachmentSource)."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


@frozen
class VolumeAttachmentSpec:
    """An attachment: its driver, volume and node (storage.k8s.io/v1 VolumeAttachmentSpec)."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = attrs.field(factory=VolumeAttachmentSource)


@frozen
class VolumeAttachmentStatus:
    """Tells whether the volume is attached (storage.k8s.io/v1 VolumeAttachmentStatus)."""

    attached: bool = False


@frozen
class VolumeAttachment(Named):
    """storage.k8s.io/v1 VolumeAttachment: a volume is attached to a node, or is about to be (or to be detached)."""

    spec: VolumeAttachmentSpec = attrs.field(factory=VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = attrs.field(factory=VolumeAttachmentStatus)
