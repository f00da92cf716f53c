"""The sources of a pod's volumes that scheduling reads, and the spec of claims."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32
from kschedfw.api.selectors import LabelSelector


@frozen
class VolumeResourceRequirements:
    """The size limits of a volume: at least `requests["storage"]`, at most the limit."""

    requests: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    limits: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)


@frozen
class PersistentVolumeClaimSpec:
    """A claim. No storage class (None) means the default one; an empty name means none at all."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = attrs.field(factory=VolumeResourceRequirements)
    storage_class_name: str | None = None
    volume_attributes_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_name: str = ""
    selector: LabelSelector | None = None


@frozen
class PersistentVolumeClaimTemplate:
    """The claim of a generic ephemeral volume, or of each pod of a StatefulSet; only that needs a name."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = attrs.field(factory=PersistentVolumeClaimSpec)


@frozen
class PersistentVolumeClaimSource:
    """A claim of the pod's namespace, by name (core/v1 PersistentVolumeClaimVolumeSource)."""

    claim_name: str = ""
    read_only: bool = False


@frozen
class EphemeralVolumeSource:
    """A claim that is made for the pod alone; see `claim_name`."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


@frozen
class GCEPersistentDiskSource:
    """A Google Compute Engine disk (core/v1 GCEPersistentDiskVolumeSource)."""

    pd_name: str = ""
    read_only: bool = False


@frozen
class AWSElasticBlockStoreSource:
    """An AWS EBS disk (core/v1 AWSElasticBlockStoreVolumeSource)."""

    volume_id: str = attrs.field(default="", metadata={"json": "volumeID"})
    read_only: bool = False


@frozen
class ISCSISource:
    """An iSCSI disk (core/v1 ISCSIVolumeSource)."""

    iqn: str = ""
    lun: Int32 = 0
    target_portal: str = ""
    read_only: bool = False


@frozen
class RBDSource:
    """A Ceph block device, identified by `monitors`, `pool` and `image`."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


@frozen
class AzureDiskSource:
    """An Azure data disk (core/v1 AzureDiskVolumeSource)."""

    disk_name: str = ""
    disk_uri: str = attrs.field(default="", metadata={"json": "diskURI"})
    read_only: bool = False


@frozen
class AzureFileSource:
    """An Azure file share (core/v1 AzureFileVolumeSource)."""

    share_name: str = ""
    secret_name: str = ""
    secret_namespace: str = ""
    read_only: bool = False


@frozen
class CinderSource:
    """An OpenStack Cinder volume (core/v1 CinderVolumeSource)."""

    volume_id: str = attrs.field(default="", metadata={"json": "volumeID"})
    read_only: bool = False


@frozen
class PortworxVolumeSource:
    """A Portworx volume (core/v1 PortworxVolumeSource)."""

    volume_id: str = attrs.field(default="", metadata={"json": "volumeID"})
    read_only: bool = False


@frozen
class VsphereVolumeSource:
    """A vSphere disk (core/v1 VsphereVirtualDiskVolumeSource)."""

    volume_path: str = ""


@frozen
class CSISource:
    """A volume of a CSI driver.

    Without a `volume_handle` it is an ephemeral volume that the driver makes for the pod and removes.
    """

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


@frozen
class ImageVolumeSource:
    """An OCI image as a volume."""

    reference: str = ""


@frozen
class EmptyDirSource:
    """A directory that is made on the pod's node and goes with the pod (core/v1 EmptyDirVolumeSource)."""

    medium: str = ""
    size_limit: Quantity | None = None
    """The most that it may hold; None for no limit."""


@frozen
class HostPathSource:
    """A path of the pod's node (core/v1 HostPathVolumeSource)."""

    path: str = ""


@frozen
class Volume:
    """A volume of a pod; at most one source is set, and none for sources that neither scheduling nor a drain reads."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: VsphereVolumeSource | None = None
    csi: CSISource | None = None
    image: ImageVolumeSource | None = None
    empty_dir: EmptyDirSource | None = None
    host_path: HostPathSource | None = None

    @cached_property
    def is_storage(self) -> bool:
        """True if the volume is a claim, or storage outside of the node."""
        # Most are claims, and the other fields take a loop.
        return self.persistent_volume_claim is not None or any(
            getattr(self, source) is not None for source in _STORAGE
        )


_NO_STORAGE: Final = ("name", "image", "empty_dir", "host_path")
_STORAGE: Final = tuple(field.name for field in attrs.fields(Volume) if field.name not in _NO_STORAGE)


def claim_name(pod: Named, volume: Volume) -> str | None:
    """Return the name of the claim that a volume of the pod uses; None if it uses none.

    The claim of a generic ephemeral volume is named after the pod and the volume.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return None if volume.ephemeral is None else f"{pod.name}-{volume.name}"


def is_claim_of(pod: Named, claim: Named) -> bool:
    """Tell whether a claim was made for the pod; another claim may have that name."""
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.uid and claim.namespace == pod.namespace
