"""An export of a cluster in which mistakes are planted, each with the answer that a good colleague would give first.

`python -m planted` prints the mistakes and the answers as a table.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from typing import Any, Final

import attrs
from kschedfw_advisor.cli.pending_output import to_json
from kschedfw_advisor.cli.what_if_output import Background
from kschedfw_advisor.pending import explain_pending

from kschedfw import WhatIf
from kschedfw.api import parse_manifests

Manifest = dict[str, Any]
Kind = Mapping[str, Any]
"""Pods of a workload in the answer of `kschedfw pending --json`."""

ZONES: Final = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
STORED: Final = {"creationTimestamp": "2026-01-01T00:00:00Z"}
NAMESPACE: Final = "shop"

_GENERAL: Final = 40
_SSD: Final = 12
_GPU: Final = 6
_CONTROL_PLANE: Final = 2
_RUNNING: Final = 600


@attrs.frozen
class Mistake:
    """A workload whose pods are pending because of one mistake.

    `answer` is a pattern that the first piece of advice matches, `spec` the pod's, and `more` are
    objects that belong to the mistake, such as claims.
    """

    workload: str
    answer: str
    spec: Manifest
    replicas: int = 1
    labels: Mapping[str, str] = attrs.field(factory=dict)
    more: tuple[Manifest, ...] = ()

    def is_told_by(self, advice: str) -> bool:
        return re.search(self.answer, advice) is not None


def export(seed: int = 0) -> list[Manifest]:
    """The cluster's objects, in an order that depends on the seed, as what runs where does."""
    random = Random(seed)
    objects = [*_nodes(), *_storage(), *_running(random)]
    for mistake in MISTAKES:
        objects += [*_pods(mistake), *copy.deepcopy(mistake.more)]
    random.shuffle(objects)
    return objects


def _nodes() -> Iterator[Manifest]:
    number = 0
    for pool, count, offers, labels, taints in (
        ("general", _GENERAL, {"cpu": "8", "memory": "32Gi"}, {"disk": "hdd"}, []),
        ("storage", _SSD, {"cpu": "8", "memory": "32Gi"}, {"disk": "ssd"}, []),
        ("gpu", _GPU, {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "8"}, {}, [("dedicated", "gpu")]),
        (
            "control",
            _CONTROL_PLANE,
            {"cpu": "16", "memory": "64Gi"},
            {},
            [("node-role.kubernetes.io/control-plane", "")],
        ),
    ):
        for _ in range(count):
            name = f"ip-10-0-{number // 16}-{number % 16}.eu-central-1.compute.internal"
            yield _node(name, pool, ZONES[number % 3], offers, labels, taints)
            number += 1
    offers = {"cpu": "8", "memory": "32Gi"}
    edge = _node("edge-1", "edge", ZONES[0], offers, {"site": "edge"}, [])
    yield {**edge, "spec": {"unschedulable": True}}
    for site in ("north-1", "north-2"):
        yield _node(site, "north", ZONES[1], offers, {"site": "north"}, [("site", "north")])


def _node(
    name: str,
    pool: str,
    zone: str,
    offers: Mapping[str, str],
    labels: Mapping[str, str],
    taints: list[tuple[str, str]],
) -> Manifest:
    all_labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": {"general": "m5.2xlarge", "gpu": "p4d.24xlarge"}.get(
            pool, "m5d.2xlarge"
        ),
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": zone,
        "pool": pool,
        **labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels},
        "spec": {
            "taints": [
                {"key": key, "effect": "NoSchedule", **({"value": value} if value else {})}
                for key, value in taints
            ]
        },
        "status": {"allocatable": {**offers, "pods": "58", "ephemeral-storage": "100Gi"}},
    }


def _storage() -> Iterator[Manifest]:
    for name, mode in (("gp3", "WaitForFirstConsumer"), ("efs", "Immediate")):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": f"{name}.csi.aws.com",
            "volumeBindingMode": mode,
        }


def _running(random: Random) -> Iterator[Manifest]:
    """Pods on the general and storage nodes, which they leave about a third of."""
    names = [node["metadata"]["name"] for node in _nodes()]
    redis = _pod(
        "redis-0",
        {"containers": [_container()], "nodeName": names[0]},
        {"app": "redis"},
        ("StatefulSet", "redis"),
    )
    yield redis
    for number in range(_RUNNING):
        app = f"app-{number % 40}"
        requests = {
            "cpu": random.choice(("100m", "250m", "500m")),
            "memory": random.choice(("256Mi", "1Gi", "2Gi")),
        }
        spec = {"containers": [_container(requests)], "nodeName": names[number % (_GENERAL + _SSD)]}
        yield _pod(f"{app}-5d9f-{number:05}", spec, {"app": app}, ("ReplicaSet", f"{app}-5d9f"))


def _pods(mistake: Mistake) -> Iterator[Manifest]:
    labels = {"app": mistake.workload, "pod-template-hash": "6b7f", **mistake.labels}
    owner = ("ReplicaSet", f"{mistake.workload}-6b7f")
    for number in range(mistake.replicas):
        yield _pod(f"{mistake.workload}-6b7f-{number:05}", copy.deepcopy(mistake.spec), labels, owner)


def _pod(name: str, spec: Manifest, labels: Mapping[str, str], owner: tuple[str, str]) -> Manifest:
    kind, controller = owner
    reference = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": controller,
        "uid": f"uid-{controller}",
        "controller": True,
    }
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": dict(labels),
        "ownerReferences": [reference],
        **STORED,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(requests: Mapping[str, str] | None = None, **more: object) -> Manifest:
    resources = {"requests": dict(requests or {"cpu": "100m", "memory": "128Mi"})}
    if requests is not None and (extended := {key: each for key, each in requests.items() if "/" in key}):
        resources["limits"] = extended
    return {"name": "main", "image": "registry.example/app:1", "resources": resources, **more}


def _spec(requests: Mapping[str, str] | None = None, **fields: object) -> Manifest:
    return {"containers": [_container(requests)], **fields}


def _node_affinity(*expressions: Manifest) -> Manifest:
    terms = [{"matchExpressions": list(expressions)}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _wants(key: str, *values: str) -> Manifest:
    return {"key": key, "operator": "In", "values": list(values)}


def _pod_rule(kind: str, app: str, key: str) -> Manifest:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _tolerates(key: str, value: str) -> list[Manifest]:
    return [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}]


def _with_claim(name: str) -> Manifest:
    return _spec(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])


def _claim(name: str, storage_class: str, volume: str = "") -> Manifest:
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        "storageClassName": storage_class,
    }
    metadata: Manifest = {"name": name, "namespace": NAMESPACE, **STORED}
    if volume:
        spec["volumeName"] = volume
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _volume(name: str, zone: str, claim: str) -> Manifest:
    terms = [{"matchExpressions": [_wants("topology.kubernetes.io/zone", zone)]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": claim},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            "storageClassName": "gp3",
        },
        "status": {"phase": "Bound"},
    }


_GPU_REQUEST: Final = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}

MISTAKES: Final = (
    Mistake("selector-value", r"disk=sdd to disk=ssd", _spec(nodeSelector={"disk": "sdd"}), 3),
    Mistake(
        "selector-key",
        r"topology\.kubernetes\.io/zones=\S+ to topology\.kubernetes\.io/zone=",
        _spec(nodeSelector={"topology.kubernetes.io/zones": ZONES[0]}),
        2,
    ),
    Mistake(
        "affinity-value",
        r"m5\.2xlrage to \S+=m5\.2xlarge",
        _spec(affinity=_node_affinity(_wants("node.kubernetes.io/instance-type", "m5.2xlrage"))),
    ),
    Mistake("architecture-value", r"amd46 to \S+=amd64", _spec(nodeSelector={"kubernetes.io/arch": "amd46"})),
    Mistake(
        "toleration-key",
        r"dedicted=gpu to dedicated=gpu",
        _spec(_GPU_REQUEST, tolerations=_tolerates("dedicted", "gpu")),
    ),
    Mistake(
        "toleration-value",
        r"site=nroth to site=north",
        _spec(nodeSelector={"site": "north"}, tolerations=_tolerates("site", "nroth")),
    ),
    Mistake("no-toleration", r"^tolerate dedicated=gpu:NoSchedule", _spec(_GPU_REQUEST), 2),
    Mistake(
        "resource-name",
        r"nvidia\.com/gpus to nvidia\.com/gpu\b",
        _spec({"cpu": "4", "nvidia.com/gpus": "1"}, tolerations=_tolerates("dedicated", "gpu")),
    ),
    Mistake("cores", r"request 4000m of cpu", _spec({"cpu": "4000", "memory": "1Gi"})),
    Mistake("memory-unit", r"request 8Gi of memory: 8Ti", _spec({"cpu": "1", "memory": "8Ti"})),
    Mistake(
        "too-large-for-its-pool",
        r"request \S+ of memory instead of 40Gi",
        _spec({"cpu": "1", "memory": "40Gi"}, nodeSelector={"pool": "storage"}),
    ),
    Mistake(
        "claim-name",
        r"claim shop/orders-dta doesn't exist \(did you mean orders-data\?\)",
        _with_claim("orders-dta"),
        more=(_claim("orders-data", "gp3"),),
    ),
    Mistake(
        "class-name",
        r"there is no StorageClass gp33 .*did you mean gp3",
        _with_claim("carts-data"),
        more=(_claim("carts-data", "gp33"),),
    ),
    Mistake(
        "claim-without-volume",
        r"claim shop/files is pending: provisioner efs\.csi\.aws\.com",
        _with_claim("files"),
        more=(_claim("files", "efs"),),
    ),
    Mistake(
        "volume-in-another-zone",
        rf"^claim shop/logs, volume pv-logs: \S+={ZONES[2]}, which keeps it off",
        _with_claim("logs") | {"nodeSelector": {"topology.kubernetes.io/zone": ZONES[0]}},
        more=(_claim("logs", "gp3", "pv-logs"), _volume("pv-logs", ZONES[2], "logs")),
    ),
    Mistake(
        "affinity-to-nobody",
        r"app=rediss to app=redis\b",
        _spec(
            affinity={
                "podAffinity": _pod_rule("podAffinity", "rediss", "kubernetes.io/hostname")["podAffinity"]
            }
        ),
    ),
    Mistake(
        "more-replicas-than-nodes",
        r"podAntiAffinity over kubernetes\.io/hostname",
        _spec(
            nodeSelector={"pool": "storage"},
            affinity=_pod_rule("podAntiAffinity", "more-replicas-than-nodes", "kubernetes.io/hostname"),
        ),
        14,
    ),
    Mistake(
        "spread-over-a-full-zone",
        r"(minDomains|maxSkew|ScheduleAnyway).* for the spread over topology\.kubernetes\.io/zone",
        _spec(
            affinity=_node_affinity(_wants("site", "north"), _wants("topology.kubernetes.io/zone", ZONES[1])),
            tolerations=_tolerates("site", "north"),
            topologySpreadConstraints=[
                {
                    "maxSkew": 1,
                    "minDomains": 3,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "spread-over-a-full-zone"}},
                }
            ],
        ),
        3,
    ),
    Mistake("cordoned", r"^uncordon node edge-1", _spec(nodeSelector={"site": "edge"})),
    Mistake(
        "gate",
        r"^remove the scheduling gate example\.com/budget",
        _spec(schedulingGates=[{"name": "example.com/budget"}]),
    ),
    Mistake(
        "scheduler-name",
        r"^correct defualt-scheduler to default-scheduler",
        _spec(schedulerName="defualt-scheduler"),
    ),
    Mistake(
        "one-expression-too-many",
        r"^drop tier=gold from",
        _spec(affinity=_node_affinity(_wants("disk", "ssd"), _wants("tier", "gold"))),
    ),
)


# Answers


def cluster_of(objects: list[Manifest]) -> WhatIf:
    return WhatIf(parse_manifests(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})))


@cache
def answers() -> Mapping[str, Kind]:
    """What `kschedfw pending --json` says of each workload that has pods without a place."""
    answer = to_json(explain_pending(cluster_of(export())), Background([]))
    assert isinstance(answer["groups"], list)
    kinds = [kind for group in answer["groups"] for kind in group["kinds"]]
    return {kind["workload"].rpartition("/")[2]: kind for kind in kinds}


def advice(kind: Kind) -> list[str]:
    """What is said of a kind, in the order in which it is said."""
    return [*kind["notes"], *(", and ".join(remedy["changes"]) for remedy in kind["helps"])]


def placed_after(remedy: Kind, kind: Kind) -> int:
    """How many of the pods a scheduler places that starts on a copy of the export with the remedy's edits."""
    cluster = cluster_of(edited(export(), remedy["edits"], kind["pods"]))
    with cluster.transaction() as trial:
        return sum(each.pod.key in kind["pods"] for each in trial.schedule(cluster.pending).placed)


def edited(objects: list[Manifest], edits: list[Mapping[str, Any]], pods: list[str]) -> list[Manifest]:
    """The objects with the edits, those of the first of the pods made to all of them."""
    by_name = {f"{each['kind']} {_key(each)}": each for each in objects}
    for edit in edits:
        names = [f"Pod {key}" for key in pods] if edit["object"] == f"Pod {pods[0]}" else [edit["object"]]
        for name in names:
            if edit["path"]:
                _set(by_name[name], edit["path"], edit["to"])
            elif edit["to"] is None:
                del by_name[name]
            else:
                by_name[name] = edit["to"]
    return list(by_name.values())


def _key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def _set(manifest: Any, path: str, value: object) -> None:
    *parents, last = _steps(path)
    for step in parents:
        manifest = manifest[int(step)] if isinstance(manifest, list) else manifest.setdefault(step, {})
    if isinstance(manifest, list):
        manifest[int(last)] = value
    elif value is None:
        manifest.pop(last, None)
    else:
        manifest[last] = value


def _steps(pointer: str) -> Iterator[str]:
    return (step.replace("~1", "/").replace("~0", "~") for step in pointer.removeprefix("/").split("/"))


def main() -> None:
    """Print each mistake with the first advice, whether it names the mistake, and how many pods it gets a place."""
    for mistake in MISTAKES:
        kind = answers()[mistake.workload]
        first = advice(kind)[0]
        told = "named" if mistake.is_told_by(first) else "MISSED"
        tried = "".join(
            f"{placed_after(remedy, kind)} of {len(kind['pods'])} placed" for remedy in kind["helps"][:1]
        )
        sys.stdout.write(f"{mistake.workload:<26}{told:<8}{tried:<17}{first}\n")


if __name__ == "__main__":
    main()
