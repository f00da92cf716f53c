"""The manifests of nodes and pods in benchmark clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from kschedfw.api import Named, object_from_manifest

Manifest: TypeAlias = Mapping[str, object]
Labels: TypeAlias = Mapping[str, str]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

SMALL = {"cpu": "100m", "memory": "500Mi"}
"""The requests of most pods in scheduler_perf."""


def made(manifest: Manifest) -> Named:
    """Return a new object, as if read from a file. It shares no parts with others of the same shape."""
    return object_from_manifest(json.loads(json.dumps(manifest)))


def metadata_of(manifest: Manifest) -> Mapping[str, object]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, Mapping)
    return metadata


def name_of(manifest: Manifest) -> str:
    return str(metadata_of(manifest)["name"])


def bound(pod: Manifest, node_name: str) -> Manifest:
    """Return the pod's manifest with a node."""
    spec = pod["spec"]
    assert isinstance(spec, Mapping)
    return {**pod, "spec": {**spec, "nodeName": node_name}}


def node(
    name: str,
    *,
    labels: Labels | None = None,
    capacity: Labels | None = None,
    taints: tuple[Labels, ...] = (),
) -> Manifest:
    """Return a node with 4 CPUs, 32 GiB and room for 110 pods. `capacity` adds to these amounts or changes them."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": {"cpu": "4", "memory": "32Gi", "pods": "110", **(capacity or {})},
            "conditions": [{"type": "Ready", "status": "True"}],
            "phase": "Running",
        },
    }


def pod(
    name: str,
    namespace: str = "default",
    *,
    labels: Labels | None = None,
    requests: Labels | None = None,
    limits: Labels | None = None,
    port: bool = True,
    **spec: object,
) -> Manifest:
    """Return a pod with one container. `limits` default to the requests; `spec` are further fields of its spec."""
    container: dict[str, object] = {"name": "pause", "image": "registry.k8s.io/pause:3.10.2"}
    if port:
        container["ports"] = [{"containerPort": 80}]
    resources = {"requests": requests, "limits": requests if limits is None else limits}
    if stated := {key: value for key, value in resources.items() if value}:
        container["resources"] = stated
    metadata: dict[str, object] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "containers": [container]},
    }


def namespace(name: str, labels: Labels | None = None) -> Manifest:
    metadata = {"name": name, "labels": labels} if labels else {"name": name}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def service(name: str, namespace: str, selector: Labels) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector, "ports": [{"protocol": "TCP", "port": 80, "targetPort": 8000}]},
    }


def pod_affinity_term(labels: Labels, topology_key: str, **namespaces: object) -> Manifest:
    """Return a term for pods with these labels. Further fields, such as `namespaces`, select the pods' namespaces."""
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": topology_key, **namespaces}


def required(term: Manifest) -> Manifest:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def preferred(term: Manifest) -> Manifest:
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}


def node_affinity(**term: object) -> Manifest:
    """Return required node affinity with one selector term: `matchExpressions` or `matchFields`."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def spread_constraint(
    labels: Labels, topology_key: str, when_unsatisfiable: str, max_skew: int, **policies: str
) -> Manifest:
    return {
        "maxSkew": max_skew,
        "topologyKey": topology_key,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": labels},
        **policies,
    }
