"""What the API server fills in where a manifest says nothing, as far as clients look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kschedfw.testing.api_server.resources import Resource

_POD_SPEC: Final[Mapping[str, Any]] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}

_CONTAINER: Final[Mapping[str, Any]] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}

_NOT_READY: Final = tuple(
    {
        "key": f"node.kubernetes.io/{state}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for state in ("not-ready", "unreachable")
)


def with_defaults(resource: Resource, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a new object with the defaults of its kind."""
    filled = dict(manifest)
    match resource.kind:
        case "Pod":
            filled["spec"] = _pod_spec(filled.get("spec") or {})
            filled["status"] = {"phase": "Pending", "qosClass": _qos_class(filled["spec"])} | (
                filled.get("status") or {}
            )
        case "Namespace":
            metadata = filled["metadata"]
            labels = {"kubernetes.io/metadata.name": metadata["name"], **(metadata.get("labels") or {})}
            filled["metadata"] = {**metadata, "labels": labels}
            filled["spec"] = {"finalizers": ["kubernetes"]}
            filled["status"] = {"phase": "Active", **(filled.get("status") or {})}
        case "PersistentVolumeClaim" | "PersistentVolume":
            spec = {"volumeMode": "Filesystem", **(filled.get("spec") or {})}
            if resource.kind == "PersistentVolume":
                spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
            filled["spec"] = spec
            filled["status"] = {"phase": "Pending", **(filled.get("status") or {})}
        case "StorageClass":
            filled = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **filled}
        case "PriorityClass":
            filled.setdefault("preemptionPolicy", "PreemptLowerPriority")
    return filled


def _pod_spec(given: Mapping[str, Any]) -> dict[str, Any]:
    spec = {**_POD_SPEC, **given}
    for containers in ("containers", "initContainers"):
        if isinstance(spec.get(containers), list):
            spec[containers] = [
                {**_CONTAINER, **each} if isinstance(each, dict) else each for each in spec[containers]
            ]
    return spec


def _qos_class(spec: Mapping[str, Any]) -> str:
    """BestEffort without any amount of CPU or memory, Guaranteed where all have a limit that is the request."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    guaranteed, asked = True, False
    for container in containers:
        resources = container.get("resources") or {} if isinstance(container, dict) else {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            asked = asked or name in limits or name in requests
            guaranteed = guaranteed and name in limits and requests.get(name, limits[name]) == limits[name]
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
