"""Clusters in which a pod has to wait, each for another reason; `observed.yaml` says what kube-scheduler said of it.

What is there: manifests in the order in which they are made. The pod that waits is `default/waiting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import yaml

Manifest: TypeAlias = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_DELETED = "2026-01-01T00:00:00Z"


@attrs.frozen
class Case:
    """A pod that waits, and what there is beside it."""

    pod: Manifest
    objects: tuple[Manifest, ...]


def node(
    name: str,
    *,
    zone: str = "",
    taints: tuple[Manifest, ...] = (),
    cordoned: bool = False,
    has: Mapping[str, str] | None = None,
) -> Manifest:
    amounts = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "110", **(has or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {_HOSTNAME: name, **({_ZONE: zone} if zone else {})}},
        "spec": {
            **({"taints": list(taints)} if taints else {}),
            **({"unschedulable": True} if cordoned else {}),
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(
    name: str = "waiting",
    *,
    on: str = "",
    labels: Mapping[str, str] | None = None,
    ports: tuple[int, ...] = (),
    requests: Mapping[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    amounts = {"cpu": "100m", **(requests or {})}
    extended = {name: amount for name, amount in amounts.items() if "/" in name}
    container = {
        "name": "c",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": amounts, **({"limits": extended} if extended else {})},
        **({"ports": [{"containerPort": port, "hostPort": port} for port in ports]} if ports else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": dict(labels or {})},
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
    }


def _required(kind: str, *terms: Manifest) -> Manifest:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def _term(key: str, **labels: str) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def _node_affinity(*terms: Manifest) -> Manifest:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _in(key: str, *values: str) -> Manifest:
    return {"key": key, "operator": "In", "values": list(values)}


def _spread(key: str, **more: Any) -> Manifest:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"app": "a"}}, **constraint}]}


def _taint(effect: str = "NoSchedule", value: str = "db") -> Manifest:
    return {"key": "dedicated", "value": value, "effect": effect}


# --- volumes ---


def storage_class(
    name: str, mode: str = "Immediate", provisioner: str = _NO_PROVISIONER, **more: Any
) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def claim(
    name: str = "data", *, volume: str = "", of: str = "fast", mode: str = "ReadWriteOnce", **metadata: Any
) -> Manifest:
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", **done, **metadata},
        "spec": {
            "accessModes": [mode],
            "storageClassName": of,
            "resources": {"requests": {"storage": "1Gi"}},
            **({"volumeName": volume} if volume else {}),
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(
    name: str = "pv",
    *,
    claimed_by: str = "",
    at: Manifest | None = None,
    labels: Mapping[str, str] | None = None,
    source: Manifest | None = None,
) -> Manifest:
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": claimed_by,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            **({"claimRef": reference} if claimed_by else {}),
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": [at]}}} if at else {}),
            **(source or {"hostPath": {"path": "/data"}}),
        },
        "status": {"phase": "Bound" if claimed_by else "Available"},
    }


def with_claim(name: str = "waiting", claim_name: str = "data", **more: Any) -> Manifest:
    return pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}], **more)


def _csi(handle: str) -> Manifest:
    return {"csi": {"driver": "csi.example.com", "volumeHandle": handle}}


def csi_node(name: str, count: int) -> Manifest:
    driver = {"name": "csi.example.com", "nodeID": name, "topologyKeys": [], "allocatable": {"count": count}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def csi_driver() -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"},
        "spec": {"storageCapacity": True, "attachRequired": False},
    }


# --- devices ---


def device_class(name: str = "gpu") -> Manifest:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}


def devices_of(node_name: str, *names: str) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": name} for name in names],
        },
    }


def device_claim(
    name: str, *, of: str = "gpu", count: int = 1, selector: str = "", **status: Any
) -> Manifest:
    exactly: Manifest = {"deviceClassName": of, "allocationMode": "ExactCount", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        **({"status": status} if status else {}),
    }


def _allocated(node_name: str, device: str) -> Manifest:
    result = {"request": "r", "driver": "gpu.example.com", "pool": node_name, "device": device}
    terms = [{"matchFields": [_in("metadata.name", node_name)]}]
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}}


def with_device(claim_name: str = "gpus") -> Manifest:
    return pod(resourceClaims=[{"name": "g", "resourceClaimName": claim_name}])


# --- the cases ---


def _priority(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


_LATER = "WaitForFirstConsumer"
_ON_N1 = {"matchExpressions": [_in(_HOSTNAME, "n1")]}
_TWO = (node("n1", zone="z1"), node("n2", zone="z2"))

CASES: Mapping[str, Case] = {
    # resources
    "cpu": Case(pod(requests={"cpu": "6"}), _TWO),
    "memory": Case(pod(requests={"memory": "9Gi"}), _TWO),
    "ephemeral storage": Case(pod(requests={"ephemeral-storage": "11Gi"}), _TWO),
    "an extended resource": Case(
        pod(requests={"example.com/gpu": "2"}), (node("n1"), node("n2", has={"example.com/gpu": "1"}))
    ),
    "several resources": Case(pod(requests={"cpu": "5", "memory": "9Gi"}), _TWO),
    "a sidecar": Case(
        pod(initContainers=[{**pod()["spec"]["containers"][0], "name": "s", "restartPolicy": "Always",
                             "resources": {"requests": {"cpu": "3950m"}}}]),
        _TWO,
    ),
    "resources of the whole pod": Case(
        {**pod(), "spec": {**pod()["spec"], "resources": {"requests": {"cpu": "5"}}}}, _TWO
    ),
    "too many pods": Case(pod(), (node("n1", has={"pods": "1"}), pod("there", on="n1"))),
    "room that bound pods have": Case(
        pod(requests={"cpu": "3"}), (node("n1"), pod("there", on="n1", requests={"cpu": "2"}))
    ),
    # nodes
    "no nodes": Case(pod(), ()),
    "a cordoned node": Case(pod(), (node("n1", cordoned=True),)),
    "taints": Case(pod(), (node("n1", taints=(_taint(),)), node("n2", taints=(_taint("NoExecute", "web"),)))),
    "a taint without a value": Case(
        pod(), (node("n1", taints=({"key": "example.com/gone", "effect": "NoSchedule"},)),)
    ),
    "a toleration of another value": Case(
        pod(tolerations=[{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}]),
        (node("n1", taints=(_taint(),)),),
    ),
    "a node selector": Case(pod(nodeSelector={"disk": "ssd"}), _TWO),
    "node affinity": Case(
        pod(affinity=_node_affinity({"matchExpressions": [_in(_ZONE, "z3")]})), _TWO
    ),
    "the name of a node that isn't there": Case(
        pod(affinity=_node_affinity({"matchFields": [_in("metadata.name", "n9")]})), _TWO
    ),
    "the name of one of the nodes": Case(
        pod(requests={"cpu": "5"}, affinity=_node_affinity({"matchFields": [_in("metadata.name", "n2")]})),
        _TWO,
    ),
    "host ports": Case(pod(ports=(8080,)), (node("n1"), pod("there", on="n1", ports=(8080,)))),
    "a reason for each node": Case(
        pod(requests={"cpu": "2"}, nodeSelector={_ZONE: "z1"}),
        (
            node("n1", zone="z1", has={"cpu": "1"}),
            node("n2", zone="z1", taints=(_taint(),)),
            node("n3", zone="z2"),
            node("n4", zone="z1", cordoned=True),
            node("n5", zone="z1"),
            pod("there", on="n5", requests={"cpu": "3"}),
        ),
    ),
    # other pods
    "affinity to pods": Case(
        pod(affinity=_required("podAffinity", _term(_HOSTNAME, app="a"))), (*_TWO, pod("there", on="n1"))
    ),
    "anti-affinity to pods": Case(
        pod(affinity=_required("podAntiAffinity", _term(_ZONE, app="a"))),
        (node("n1", zone="z1"), node("n2", zone="z1"), pod("there", on="n1", labels={"app": "a"})),
    ),
    "anti-affinity of another pod": Case(
        pod(labels={"app": "a"}),
        (
            node("n1"),
            pod("there", on="n1", affinity=_required("podAntiAffinity", _term(_HOSTNAME, app="a"))),
        ),
    ),
    "spread": Case(
        pod(labels={"app": "a"}, requests={"cpu": "2"}, **_spread(_ZONE)),
        (
            *_TWO,
            pod("there", on="n1", labels={"app": "a"}),
            pod("large", on="n2", requests={"cpu": "3"}),
        ),
    ),
    "spread over nodes without the label": Case(pod(labels={"app": "a"}, **_spread("example.com/rack")), _TWO),
    "spread over too few domains": Case(
        pod(labels={"app": "a"}, **_spread(_ZONE, minDomains=3)),
        (
            *_TWO,
            pod("there", on="n1", labels={"app": "a"}),
            pod("too", on="n2", labels={"app": "a"}),
        ),
    ),
    # preemption
    "preemption that was forgone": Case(
        pod(requests={"cpu": "3"}, priority=10, preemptionPolicy="Never", priorityClassName="polite"),
        (
            {**_priority("polite", 10), "preemptionPolicy": "Never"},
            node("n1"),
            pod("there", on="n1", requests={"cpu": "2"}),
        ),
    ),
    "preemption": Case(
        pod(requests={"cpu": "3"}, priority=10, priorityClassName="urgent"),
        (_priority("urgent", 10), node("n1"), pod("there", on="n1", requests={"cpu": "2"})),
    ),
    "preemption that wouldn't be enough": Case(
        pod(requests={"cpu": "3"}, priority=10, priorityClassName="urgent"),
        (
            _priority("urgent", 10),
            node("n1"),
            node("n2", taints=(_taint(),)),
            pod("low", on="n1", requests={"cpu": "1"}),
            pod("same", on="n1", requests={"cpu": "2"}, priority=10, priorityClassName="urgent"),
        ),
    ),
    # volumes
    "a claim that isn't there": Case(with_claim(), _TWO),
    "a claim that is being deleted": Case(
        with_claim(), (*_TWO, storage_class("fast"), claim(finalizers=["example.com/keep"], deletionTimestamp=_DELETED))
    ),
    "a claim that nobody has bound": Case(with_claim(), (*_TWO, storage_class("fast"), claim())),
    "a claim of a volume that is gone": Case(
        with_claim(),
        (*_TWO, storage_class("fast"), {**claim(volume="pv"), "status": {"phase": "Lost"}}),
    ),
    "a claim of an unknown class": Case(with_claim(), (*_TWO, claim(of="unknown"))),
    "no volume for a claim": Case(with_claim(), (*_TWO, storage_class("fast", _LATER), claim())),
    "a volume elsewhere": Case(
        with_claim(nodeSelector={_HOSTNAME: "n2"}),
        (*_TWO, storage_class("fast"), volume(claimed_by="data", at=_ON_N1), claim(volume="pv")),
    ),
    "a volume in another zone": Case(
        with_claim(),
        (*_TWO, storage_class("fast"), volume(claimed_by="data", labels={_ZONE: "z9"}), claim(volume="pv")),
    ),
    "topologies that a class allows": Case(
        with_claim(),
        (
            *_TWO,
            storage_class(
                "fast",
                _LATER,
                "csi.example.com",
                allowedTopologies=[{"matchLabelExpressions": [{"key": _ZONE, "values": ["z9"]}]}],
            ),
            claim(),
        ),
    ),
    "no free storage": Case(
        with_claim(), (*_TWO, csi_driver(), storage_class("fast", _LATER, "csi.example.com"), claim())
    ),
    "too many volumes": Case(
        with_claim(),
        (
            node("n1"),
            csi_node("n1", 1),
            storage_class("fast"),
            volume("pv0", claimed_by="first", source=_csi("0")),
            claim("first", volume="pv0"),
            with_claim("there", "first", on="n1"),
            volume("pv", claimed_by="data", source=_csi("1")),
            claim(volume="pv"),
        ),
    ),
    "a claim for one pod": Case(
        with_claim(),
        (
            node("n1"),
            storage_class("fast"),
            volume(claimed_by="data", source=_csi("0")),
            claim(volume="pv", mode="ReadWriteOncePod"),
            with_claim("there", on="n1"),
        ),
    ),
    "a disk in use": Case(
        pod(volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "disk"}}]),
        (node("n1"), pod("there", on="n1", volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "disk"}}])),
    ),
    # devices
    "a device class that isn't there": Case(with_device(), (*_TWO, device_claim("gpus"))),
    "no device": Case(with_device(), (*_TWO, device_class(), device_claim("gpus"))),
    "too few devices": Case(
        with_device(),
        (*_TWO, device_class(), devices_of("n1", "a"), devices_of("n2", "b"), device_claim("gpus", count=2)),
    ),
    "devices that don't match": Case(
        with_device(),
        (
            *_TWO,
            device_class(),
            devices_of("n1", "a"),
            device_claim("gpus", selector='device.driver == "other.example.com"'),
        ),
    ),
    "a device expression that fails": Case(
        with_device(),
        (
            *_TWO,
            device_class(),
            devices_of("n1", "a"),
            device_claim("gpus", selector='device.attributes["gpu.example.com"].model == "x"'),
        ),
    ),
    "devices elsewhere": Case(
        {**with_device(), "spec": {**with_device()["spec"], "nodeSelector": {_HOSTNAME: "n2"}}},
        (
            *_TWO,
            device_class(),
            devices_of("n1", "a"),
            device_claim("gpus", allocation=_allocated("n1", "a"), reservedFor=[
                {"resource": "pods", "name": "other", "uid": "00000000-0000-0000-0000-000000000001"}
            ]),
        ),
    ),
}  # fmt: skip


@cache
def observed() -> Mapping[str, str]:
    """By the names of the cases: the message of the condition PodScheduled that kube-scheduler v1.36.2 wrote."""
    content: Mapping[str, str] = yaml.safe_load(Path(__file__).with_name("observed.yaml").read_text())
    return content
