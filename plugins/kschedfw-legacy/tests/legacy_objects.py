"""Services, controllers, nodes with conditions and storage objects, in a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.objects import node_from_manifest, object_from_manifest, pod_from_manifest
from kschedfw.api.pod import Pod

EBS = "kubernetes.io/aws-ebs"


def service(name: str, namespace: str = "default", **selector: str) -> Named:
    metadata = {"name": name, "namespace": namespace}
    return object_from_manifest({"metadata": metadata, "spec": {"selector": selector}}, "Service")


def pod_of(
    kind: str,
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    api_version: str = "apps/v1",
    uid: str = "u1",
) -> Pod:
    """A pod under a controller."""
    owner = {"kind": kind, "name": name, "uid": uid, "apiVersion": api_version, "controller": True}
    metadata = {"name": "pod", "labels": dict(labels or {}), "ownerReferences": [owner]}
    return pod_from_manifest(
        {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    )


def node_with(
    conditions: Mapping[str, str] | None = None, *, name: str = "node", unschedulable: bool = False
) -> Node:
    """A node that reports these conditions."""
    listed = [{"type": type_, "status": status} for type_, status in (conditions or {}).items()]
    return node_from_manifest(
        {
            "metadata": {"name": name},
            "spec": {"unschedulable": unschedulable},
            "status": {"conditions": listed},
        }
    )


def csi_node(name: str, limits: Mapping[str, int | None], *, migrated: Sequence[str] = ()) -> Named:
    """A CSINode with these drivers and their limits of volumes."""
    drivers = [
        {"name": driver, "nodeID": name, **({} if limit is None else {"allocatable": {"count": limit}})}
        for driver, limit in limits.items()
    ]
    metadata: dict[str, Any] = {"name": name}
    if migrated:
        metadata["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(migrated)}
    return object_from_manifest({"metadata": metadata, "spec": {"drivers": drivers}}, "CSINode")


def storage_class(name: str, provisioner: str = "csi.example.com") -> Named:
    """A StorageClass whose volumes wait for their first pod."""
    mode = "WaitForFirstConsumer"
    manifest = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    return object_from_manifest(manifest, "StorageClass")
