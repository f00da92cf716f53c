"""The in-tree volume plugins and the CSI drivers that have replaced them (csi-translation-lib)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from kschedfw import FrozenDict, KschedfwError, ObjectMeta
from kschedfw.api import CSINode, PersistentVolume, Volume
from kschedfw.api.records import frozen

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
# In the order in which csi-translation-lib looks for them.
_ZONE_LABELS: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_EBS_ID: Final = re.compile(r"vol-[^/]*")


class TranslationError(KschedfwError):
    """The error of an in-tree volume that can't be translated to CSI."""


def _handle_of_ebs(volume_id: str) -> str:
    """Return the volume's id, extracted from Kubernetes' form `aws://<zone>/<id>` if it has that form."""
    if not volume_id.startswith("aws://"):
        return volume_id
    handle = urlsplit(volume_id).path.strip("/")
    if not _EBS_ID.fullmatch(handle):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return handle


def _handle_of_gce(name: str, zones: str = "") -> str:
    """Return the disk's path; `zones` is the volume's label, which has several zones for a regional disk."""
    # UNSPECIFIED is csi-translation-lib's word for what only the driver knows.
    place, names = "zones/UNSPECIFIED", zones.split("__")
    if len(names) > 1:
        place = f"regions/{_region_of(names)}"
    elif zones:
        place = f"zones/{zones}"
    return f"projects/UNSPECIFIED/{place}/disks/{name}"


def _region_of(zones: list[str]) -> str:
    """Return the common region of these zones, `<locale>-<region>-<zone>`."""
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        raise TranslationError(f"failed to get region from zones: {zones}")
    return regions.pop()


@frozen
class InTreePlugin:
    """An in-tree plugin: its name, its driver, the field of its source, and the function to the driver's handle.

    `counts` is False for plugins whose volumes NodeVolumeLimits omits, migrated or not.
    """

    name: str
    driver: str
    field: str
    handle: Callable[[Any], str] = lambda _source: ""
    counts: bool = True

    def inline_handle(self, volume: Volume) -> str:
        """Return the CSI volume handle of a pod's own volume. Raises TranslationError."""
        return self.handle(getattr(volume, self.field))

    def handle_of(self, volume: PersistentVolume) -> str:
        """Return the CSI volume handle of a persistent volume. Raises TranslationError."""
        disk = volume.spec.gce_persistent_disk
        if disk is not None:
            zones = next((volume.labels[key] for key in _ZONE_LABELS if volume.labels.get(key)), "")
            return _handle_of_gce(disk.pd_name, zones)
        return self.handle(getattr(volume.spec, self.field))

    def is_migrated(self, csi_node: CSINode | None) -> bool:
        """Tell whether the in-tree plugin is migrated on the node: its CSI driver handles the volumes."""
        if csi_node is None or not self.counts:
            return False
        return self.name in csi_node.annotations.get(MIGRATED_PLUGINS, "").split(",")


EBS: Final = InTreePlugin(
    "kubernetes.io/aws-ebs",
    "ebs.csi.aws.com",
    "aws_elastic_block_store",
    lambda source: _handle_of_ebs(source.volume_id),
)
GCE_PD: Final = InTreePlugin(
    "kubernetes.io/gce-pd",
    "pd.csi.storage.gke.io",
    "gce_persistent_disk",
    lambda source: _handle_of_gce(source.pd_name),
)
AZURE_DISK: Final = InTreePlugin(
    "kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", lambda source: str(source.disk_uri)
)
CINDER: Final = InTreePlugin(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder", lambda source: str(source.volume_id)
)
_PLUGINS: Final = (
    EBS,
    GCE_PD,
    AZURE_DISK,
    CINDER,
    InTreePlugin(
        "kubernetes.io/portworx-volume",
        "pxd.portworx.com",
        "portworx_volume",
        lambda source: str(source.volume_id),
    ),
    InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", "azure_file", counts=False),
    InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphere_volume", counts=False),
)
_BY_NAME: Final = {plugin.name: plugin for plugin in _PLUGINS}

ALL_MIGRATED: Final = CSINode(
    ObjectMeta(annotations=FrozenDict({MIGRATED_PLUGINS: ",".join(plugin.name for plugin in _PLUGINS)}))
)
"""A node, not a real one, that leaves all volumes to CSI drivers."""


def plugin_named(name: str) -> InTreePlugin | None:
    """Return the in-tree plugin of that name, which storage classes use as provisioner; None if there is none."""
    return _BY_NAME.get(name)


def plugin_of(volume: Volume | PersistentVolume) -> InTreePlugin | None:
    """Return the in-tree plugin of a pod's own volume or of a persistent volume; None for all other volumes."""
    sources = volume.spec if isinstance(volume, PersistentVolume) else volume
    for plugin in _PLUGINS:
        if getattr(sources, plugin.field) is not None:
            return plugin
    return None
