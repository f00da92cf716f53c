"""The sources of a pod's volumes that scheduling reads."""

from __future__ import annotations

import attrs


@attrs.frozen
class PersistentVolumeClaimSource:
    claim_name: str = ""
    read_only: bool = False


@attrs.frozen
class EphemeralVolumeSource:
    """A claim made for the pod alone, named `<pod>-<volume>`; its template is not read."""


@attrs.frozen
class GCEPersistentDiskSource:
    pd_name: str = ""
    read_only: bool = False


@attrs.frozen
class AWSElasticBlockStoreSource:
    volume_id: str = attrs.field(default="", metadata={"json": "volumeID"})
    read_only: bool = False


@attrs.frozen
class ISCSISource:
    iqn: str = ""
    lun: int = 0
    target_portal: str = ""
    read_only: bool = False


@attrs.frozen
class RBDSource:
    """Ceph block device; `monitors` and `pool` and `image` together name it."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


@attrs.frozen
class CSISource:
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


@attrs.frozen
class ImageVolumeSource:
    """An OCI image as a volume."""

    reference: str = ""


@attrs.frozen
class Volume:
    """A volume of a pod; at most one source is set, and none for sources that scheduling doesn't read."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None
    csi: CSISource | None = None
    image: ImageVolumeSource | None = None
