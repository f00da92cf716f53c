"""The volumes of benchmark clusters: each pod has a bound claim of its own."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw_lab.bench import shapes
from kschedfw_lab.bench.shapes import Manifest

DRIVER = "ebs.csi.aws.com"
IN_TREE_PLUGIN = "kubernetes.io/aws-ebs"
_LIMIT = 39
"""The number of the driver's volumes that a node can attach."""


def with_claim(name: str, namespace: str = "default") -> Manifest:
    """Return a small pod that uses the claim named after it."""
    volumes = [{"name": "vol", "persistentVolumeClaim": {"claimName": name}}]
    return shapes.pod(name, namespace, requests=shapes.SMALL, volumes=volumes)


def with_secret(name: str, namespace: str = "default") -> Manifest:
    volumes = [{"name": "secret", "secret": {"secretName": "secret"}}]
    return shapes.pod(name, namespace, requests=shapes.SMALL, volumes=volumes)


def in_tree_disk(pod: Manifest) -> tuple[Manifest, ...]:
    """Return the pod's claim and its volume, an AWS disk."""
    return _bound(pod, {"awsElasticBlockStore": {"volumeID": f"vol-{shapes.name_of(pod)}"}})


def csi_volume(pod: Manifest) -> tuple[Manifest, ...]:
    """Return the pod's claim and its volume, of a CSI driver."""
    return _bound(pod, {"csi": {"driver": DRIVER, "volumeHandle": f"vol-{shapes.name_of(pod)}"}})


def _bound(pod: Manifest, source: Manifest) -> tuple[Manifest, ...]:
    name, namespace = shapes.name_of(pod), shapes.metadata_of(pod)["namespace"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{name}"},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            "persistentVolumeReclaimPolicy": "Retain",
            **source,
        },
        "status": {"phase": "Bound"},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"pv.kubernetes.io/bind-completed": "true"},
        },
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": f"pv-{name}",
        },
        "status": {"phase": "Bound"},
    }
    return volume, claim


def csi_node(node: Manifest) -> tuple[Manifest, ...]:
    """Return the node's CSINode with the driver's limit."""
    return (_csi_node(node, {}),)


def migrated_csi_node(node: Manifest) -> tuple[Manifest, ...]:
    """Return the node's CSINode with the driver's limit, and the in-tree plugin migrated to the driver."""
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": IN_TREE_PLUGIN}
    return (_csi_node(node, annotations),)


def _csi_node(node: Manifest, annotations: Mapping[str, str]) -> Manifest:
    name = shapes.name_of(node)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "allocatable": {"count": _LIMIT}}]},
    }


def node(index: int) -> Manifest:
    return shapes.node(f"node-{index}", capacity={f"attachable-volumes-csi-{DRIVER}": str(_LIMIT)})
