"""Storage for tests: classes, drivers, rooms, and claims and volumes of a common size and class."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.api.builders import ClaimBuilder, VolumeBuilder, make_claim, make_volume
from kschedfw.api.objects import object_from_manifest
from kschedfw.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"


def storage_class(
    name: str = "wait",
    *,
    delayed: bool = True,
    provisioner: str = "kubernetes.io/no-provisioner",
    zones: tuple[str, ...] = (),
    annotations: Mapping[str, str] | None = None,
) -> StorageClass:
    """A class that has claims wait for a pod, and whose volumes are made by hand, unless said otherwise."""
    manifest: dict[str, object] = {
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if delayed else "Immediate",
    }
    if zones:
        manifest["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    made = object_from_manifest(manifest, "StorageClass")
    assert isinstance(made, StorageClass)
    return made


def driver(name: str = DRIVER, *, tells_capacity: bool = True) -> CSIDriver:
    made = object_from_manifest(
        {"kind": "CSIDriver", "metadata": {"name": name}, "spec": {"storageCapacity": tells_capacity}},
        "CSIDriver",
    )
    assert isinstance(made, CSIDriver)
    return made


def room(
    name: str, zone: str, capacity: str, *, storage_class: str = "make", **rest: str
) -> CSIStorageCapacity:
    """Room for new volumes in a zone."""
    made = object_from_manifest(
        {
            "kind": "CSIStorageCapacity",
            "metadata": {"name": name, "namespace": "default"},
            "storageClassName": storage_class,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
            "capacity": capacity,
            **rest,
        },
        "CSIStorageCapacity",
    )
    assert isinstance(made, CSIStorageCapacity)
    return made


def csi_node(
    name: str, *, migrated: tuple[str, ...] = (), topology_keys: tuple[str, ...] = (), driver: str = DRIVER
) -> CSINode:
    made = object_from_manifest(
        {
            "kind": "CSINode",
            "metadata": {
                "name": name,
                "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(migrated)},
            },
            "spec": {"drivers": [{"name": driver, "nodeID": name, "topologyKeys": list(topology_keys)}]},
        },
        "CSINode",
    )
    assert isinstance(made, CSINode)
    return made


def claim(name: str = "claim", size: str = "1Gi", *, storage_class: str = "wait") -> ClaimBuilder:
    return (
        make_claim(name)
        .namespace("default")
        .requests(size)
        .access_modes("ReadWriteOnce")
        .storage_class(storage_class)
    )


def volume(name: str = "volume", size: str = "1Gi", *, storage_class: str = "wait") -> VolumeBuilder:
    return (
        make_volume(name)
        .capacity(size)
        .access_modes("ReadWriteOnce")
        .storage_class(storage_class)
        .csi(DRIVER, name)
    )
