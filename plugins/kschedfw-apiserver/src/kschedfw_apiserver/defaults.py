"""The defaults that the API server fills in, as far as clients depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kschedfw_apiserver.resources import Resource

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
}

WITH_GENERATION: Final = frozenset(
    {
        *("Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"),
        *("PodDisruptionBudget", "ResourceSlice", "DeviceClass", "DeviceTaintRule", "PriorityClass"),
        "CustomResourceDefinition",
    }
)
"""Kinds whose `metadata.generation` counts the changes of their spec. Custom kinds have this, too."""


_NODE_INFO: Final = dict.fromkeys(
    (
        *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
        *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
    ),
    "",
)
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EVENT: Final[Mapping[str, Any]] = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def as_new(resource: Resource, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a new object, with the defaults of its kind and its first status."""
    filled = with_defaults(resource, manifest)
    if resource.custom or resource.kind in WITH_GENERATION:
        filled["metadata"] = {**filled["metadata"], "generation": 1}
    given = filled.get("status") or {}
    match resource.kind:
        case "Pod":
            filled["status"] = {"phase": "Pending", "qosClass": _qos_class(filled["spec"]), **given}
        case "Namespace":
            filled["status"] = {"phase": "Active", **given}
        case "PersistentVolumeClaim" | "PersistentVolume":
            filled["status"] = {"phase": "Pending", **given}
        case "Node":
            endpoints = {"kubeletEndpoint": {"Port": 0}}
            filled["status"] = {"daemonEndpoints": endpoints, "nodeInfo": _NODE_INFO, **given}
        case "PodDisruptionBudget":
            # A client that writes a status has observed the current spec.
            processed = {"observedGeneration": 1} if given else {}
            filled["status"] = {**dict.fromkeys(_COUNTS, 0), **processed, **given}
        case "VolumeAttachment":
            filled["status"] = {"attached": False, **given}
        case "ResourceClaim":
            filled["status"] = given
    return filled


def with_defaults(resource: Resource, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with the defaults of its kind, except in its status."""
    filled = dict(manifest)
    match resource.kind:
        case "Pod":
            filled["spec"] = _pod_spec(filled.get("spec") or {})
        case "Namespace":
            metadata = filled["metadata"]
            labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
            filled["metadata"] = {**metadata, "labels": labels}
            filled["spec"] = {"finalizers": ["kubernetes"]}
        case "PersistentVolumeClaim":
            filled["spec"] = {"volumeMode": "Filesystem", **(filled.get("spec") or {})}
        case "PersistentVolume":
            spec = {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}
            filled["spec"] = {**spec, **(filled.get("spec") or {})}
        case "Node":
            filled["spec"] = filled.get("spec") or {}
        case "Event":
            filled = {**_EVENT, **filled}
        case "StorageClass":
            filled = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **filled}
        case "PriorityClass":
            filled = {"preemptionPolicy": "PreemptLowerPriority", **filled}
    return filled


def _pod_spec(given: Mapping[str, Any]) -> dict[str, Any]:
    spec = {**_POD_SPEC, **given}
    for containers in ("containers", "initContainers"):
        if isinstance(spec.get(containers), list):
            spec[containers] = [
                {**_CONTAINER, "imagePullPolicy": _pull_policy(each.get("image")), **each}
                if isinstance(each, dict)
                else each
                for each in spec[containers]
            ]
    return spec


def _pull_policy(image: object) -> str:
    tag = str(image or "").rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") and "@" not in str(image) else "IfNotPresent"


def _qos_class(spec: Mapping[str, Any]) -> str:
    """Return BestEffort if no container has amounts of CPU or memory, Guaranteed if all limits equal the requests."""
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
