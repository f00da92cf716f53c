"""Services, controllers and nodes with conditions, in a line each."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.objects import node_from_manifest, object_from_manifest, pod_from_manifest
from kschedfw.api.pod import Pod


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
