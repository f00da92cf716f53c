"""CSINodes, storage classes and VolumeAttachments in a line each, and volumes for random clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from kschedfw import make_claim, make_node, make_pod, make_volume
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
DRIVER = "csi.example.com"
EBS, EBS_DRIVER = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"


def csi_node(name: str, limits: Mapping[str, int | None], *, migrated: Sequence[str] = ()) -> Named:
    drivers = [
        {"name": driver, "nodeID": name, **({} if limit is None else {"allocatable": {"count": limit}})}
        for driver, limit in limits.items()
    ]
    metadata: dict[str, Any] = {"name": name}
    if migrated:
        metadata["annotations"] = {MIGRATED: ",".join(migrated)}
    return object_from_manifest({"metadata": metadata, "spec": {"drivers": drivers}}, "CSINode")


def storage_class(name: str, provisioner: str = DRIVER, *, waits: bool = True) -> Named:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    manifest = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    return object_from_manifest(manifest, "StorageClass")


def attachment(name: str, node: str, volume: str, attacher: str = DRIVER) -> Named:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return object_from_manifest({"metadata": {"name": name}, "spec": spec}, "VolumeAttachment")


@attrs.frozen
class VolumeCluster:
    """Nodes, pods on them, pods to come, and the storage objects around them."""

    nodes: tuple[Node, ...]
    bound: tuple[Pod, ...]
    pending: tuple[Pod, ...]
    objects: tuple[Named, ...]


NODES = tuple(f"node-{index}" for index in range(4))
CLAIMS = tuple(f"claim-{index}" for index in range(5))
VOLUMES = tuple(f"volume-{index}" for index in range(4))
CLASSES = ("now", "later", "ebs")
_ZONES = ("a", "b", "a__b", "a____b")


def volume_sources() -> st.SearchStrategy[dict[str, Any]]:
    """Few disks, so that pods meet on them."""
    some, flags = st.sampled_from(["x", "y"]), st.booleans()
    return st.one_of(
        st.builds(lambda name: {"persistentVolumeClaim": {"claimName": name}}, st.sampled_from(CLAIMS)),
        st.just({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}),
        st.builds(lambda name, ro: {"gcePersistentDisk": {"pdName": name, "readOnly": ro}}, some, flags),
        st.builds(
            lambda name: {"awsElasticBlockStore": {"volumeID": name}},
            st.sampled_from(["vol-1", "aws://a/vol-1", "aws://a/wrong"]),
        ),
        st.builds(lambda name, ro: {"iscsi": {"iqn": name, "readOnly": ro}}, some, flags),
        st.builds(
            lambda monitors, ro: {"rbd": {"monitors": monitors, "image": "i", "readOnly": ro}},
            st.lists(some, max_size=2),
            flags,
        ),
        st.just({"emptyDir": {}}),
    )


@st.composite
def volume_pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    pod = make_pod(name).uid(name)
    for index, source in enumerate(draw(st.lists(volume_sources(), max_size=3))):
        pod.volume(f"v{index}", source)
    return pod.node(node).build() if node else pod.build()


@st.composite
def volume_nodes(draw: st.DrawFn, name: str) -> Node:
    node = make_node(name)
    for key in draw(st.sets(st.sampled_from([ZONE, REGION, BETA_ZONE, BETA_REGION]))):
        node.labels({key: draw(st.sampled_from(["a", "b"]))})
    return node.build()


@st.composite
def storage_objects(draw: st.DrawFn) -> tuple[Named, ...]:
    objects: list[Named] = [
        storage_class("now", waits=False),
        storage_class("later"),
        storage_class("ebs", EBS),
    ]
    for name in draw(st.sets(st.sampled_from(VOLUMES))):
        volume = make_volume(name).source(
            draw(
                st.sampled_from(
                    [
                        {"csi": {"driver": DRIVER, "volumeHandle": name}},
                        {"csi": {"driver": DRIVER, "volumeHandle": "shared"}},
                        {"awsElasticBlockStore": {"volumeID": "vol-1"}},
                        {"gcePersistentDisk": {"pdName": "x"}},
                    ]
                )
            )
        )
        for key in draw(st.sets(st.sampled_from([ZONE, REGION, BETA_ZONE]))):
            volume.labels({key: draw(st.sampled_from(_ZONES))})
        objects.append(volume.build())
    for name in draw(st.sets(st.sampled_from(CLAIMS))):
        claim = make_claim(name).access_modes(draw(st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod"])))
        if draw(st.booleans()):
            claim.bound_to(draw(st.sampled_from(VOLUMES)))
        if draw(st.booleans()):
            claim.storage_class(draw(st.sampled_from([*CLASSES, "missing"])))
        objects.append(claim.build())
    for name in draw(st.sets(st.sampled_from(NODES))):
        limits = draw(st.dictionaries(st.sampled_from([DRIVER, EBS_DRIVER]), st.none() | st.integers(0, 3)))
        objects.append(csi_node(name, limits, migrated=[EBS] if draw(st.booleans()) else []))
    for index, name in enumerate(draw(st.lists(st.sampled_from(VOLUMES), max_size=2))):
        objects.append(attachment(f"attachment-{index}", draw(st.sampled_from(NODES)), name))
    return tuple(objects)


@st.composite
def volume_clusters(draw: st.DrawFn) -> VolumeCluster:
    names = draw(st.lists(st.sampled_from(NODES), min_size=1, unique=True))
    bound = [
        draw(volume_pods(f"bound-{index}", draw(st.sampled_from(names))))
        for index in range(draw(st.integers(0, 5)))
    ]
    return VolumeCluster(
        nodes=tuple(draw(volume_nodes(name)) for name in names),
        bound=tuple(bound),
        pending=tuple(draw(volume_pods(f"new-{index}")) for index in range(2)),
        objects=draw(storage_objects()),
    )
