"""An export in which forty problems are planted, each with the first advice that a platform engineer would give.

The answers were written before the advice was looked at. `python -m problems [FILE]` prints the problems with the first
advice, and writes an export of 120 nodes and 1,800 pods to the file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
from edits import cluster_of, edited
from kschedfw_advisor.cli.pending_output import to_json
from kschedfw_advisor.cli.what_if_output import Background
from kschedfw_advisor.pending import explain_pending

Manifest = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
ARCH: Final = "kubernetes.io/arch"
ENDS: Final = "2026-11-28T09:01:00Z"


@attrs.frozen
class Problem:
    """A workload whose pods have no place, and the answer.

    `right` is a pattern for the first line of advice, `exact` is how the line begins at best. `spec` is that of the
    pods, `more` are other objects. A DaemonSet's pods are for the nodes named in `on`.
    """

    name: str
    right: str
    exact: str
    spec: Manifest
    replicas: int = 1
    more: tuple[Manifest, ...] = ()
    on: tuple[str, ...] = ()
    namespace: str = "shop"


def _spec(requests: Mapping[str, str] | None = None, pool: str = "", **fields: object) -> Manifest:
    selector = {"nodeSelector": {"pool": pool}} if pool else {}
    return {"containers": [_container("main", requests or {"cpu": "100m"})], **selector, **fields}


def _container(name: str, requests: Mapping[str, str], **fields: object) -> Manifest:
    limits = {key: each for key, each in requests.items() if "/" in key}
    return {"name": name, "image": "i", "resources": {"requests": dict(requests), "limits": limits}, **fields}


def _node(
    name: str,
    labels: Mapping[str, str],
    taints: tuple[str, ...] = (),
    offers: Mapping[str, str] | None = None,
    *,
    cordoned: bool = False,
) -> Manifest:
    keys = (each.partition("=") for each in taints)
    given = [{"key": key, "value": value, "effect": "NoSchedule"} for key, _, value in keys]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ARCH: "amd64", **labels}},
        "spec": {"taints": given, "unschedulable": cordoned},
        "status": {
            "allocatable": {
                "cpu": "8",
                "memory": "32Gi",
                "pods": "58",
                "ephemeral-storage": "100Gi",
                **(offers or {}),
            }
        },
    }


def _pod(
    name: str,
    spec: Manifest,
    workload: str,
    kind: str = "ReplicaSet",
    namespace: str = "shop",
    **meta: object,
) -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": workload, "uid": workload, "controller": True}
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"app": workload},
        "ownerReferences": [owner],
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **meta,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _running(name: str, node: str, requests: Mapping[str, str], **meta: Any) -> Manifest:
    return _pod(name, {**_spec(requests), "nodeName": node}, name, **meta)


def _nodes(general: int) -> Iterator[Manifest]:
    for number in range(general):
        yield _node(
            f"gen-{number}", {"pool": "general", "acme.io/pool": "general", ZONE: f"eu-{'abc'[number % 3]}"}
        )
    for number in range(2):
        yield _node(f"ssd-{number}", {"disk": "ssd", "pool": "storage", ZONE: "eu-a"})
        yield _node(
            f"gpu-{number}",
            {"pool": "gpu", ZONE: "eu-b"},
            ("dedicated=gpu",),
            {"cpu": "32", "memory": "64Gi", "nvidia.com/gpu": "4"},
        )
        yield _node(f"spot-{number}", {"lifecycle": "spot", ZONE: "eu-b"}, ("spot=yes",))
        yield _node(f"arm-{number}", {"kernel": "six", ARCH: "arm64", ZONE: "eu-a"}, ("platform=arm64",))
        yield _node(f"pair-{number}", {"pool": "pair"}, (), {"cpu": "4"})
        yield _node(f"few-{number}", {"pool": "few"})
        yield _node(f"racks-{number}", {"pool": "racks"})
        yield _node(f"uneven-{number}", {"pool": "uneven"})
    yield _node("analytics-0", {"acme.io/pool": "analytics", ZONE: "eu-c"})
    yield _node("edge-0", {"pool": "edge"}, cordoned=True)
    yield _node("uneven-2", {"pool": "uneven"}, ("node.kubernetes.io/unschedulable",), cordoned=True)
    yield _node("sick-0", {"pool": "sick"}, ("node.kubernetes.io/not-ready",))
    for pool in ("ending", "init", "port", "limited", "full"):
        yield _node(f"{pool}-0", {"pool": pool}, (), {"cpu": "4"})
    yield _node("crowded-0", {"pool": "crowded"}, (), {"pods": "1"})
    for size in (8, 6, 4):
        yield _node(f"daemon-{size}", {"pool": "daemon"}, (), {"memory": f"{size}Gi"})


def _occupied() -> Iterator[Manifest]:
    yield _running("ending-old", "ending-0", {"cpu": "3"}, deletionTimestamp=ENDS)
    holder = _running("port-holder", "port-0", {"cpu": "1"})
    holder["spec"]["containers"][0]["ports"] = [{"containerPort": 443, "hostPort": 443}]
    yield holder
    yield _running("limited-holder", "limited-0", {"cpu": "2500m"}, namespace="limited")
    yield _running("full-holder", "full-0", {"cpu": "3500m"})
    yield _running("crowded-holder", "crowded-0", {"cpu": "1"})
    yield _running("redis", "gen-0", {"cpu": "100m"})
    yield _pod("uneven-a", {**_spec(pool="uneven"), "nodeName": "uneven-0"}, "uneven-spread")
    yield _pod("uneven-b", {**_spec(pool="uneven"), "nodeName": "uneven-1"}, "uneven-spread")
    for name, mode in (("gp3", "WaitForFirstConsumer"), ("efs", "Immediate")):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": f"{name}.csi.example.com",
            "volumeBindingMode": mode,
        }


def _spread(app: str, key: str, **fields: object) -> list[Manifest]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **fields}
    return [{**constraint, "labelSelector": {"matchLabels": {"app": app}}}]


def _required(*wanted: tuple[str, ...]) -> Manifest:
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, *values in wanted]}
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _beside(kind: str, app: str) -> Manifest:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _tolerates(key: str, value: str) -> list[Manifest]:
    return [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}]


def _with_claim(name: str, **fields: Any) -> Manifest:
    return _spec(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}], **fields)


def _claim(name: str, storage_class: str, volume: str = "") -> Manifest:
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **bound,
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": storage_class,
            **({"volumeName": volume} if volume else {}),
        },
    }


_VOLUME: Final = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "pv-logs"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "10Gi"},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "logs"},
        "csi": {"driver": "gp3.csi.example.com", "volumeHandle": "pv-logs"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["eu-c"]}]}
                ]
            }
        },
        "storageClassName": "gp3",
    },
    "status": {"phase": "Bound"},
}
_KATA: Final = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "scheduling": {"nodeSelector": {"sandbox": "kata"}},
}
_LEAST: Final = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "least", "namespace": "limited"},
    "spec": {"limits": [{"type": "Container", "min": {"cpu": "2500m"}}]},
}
_GPU: Final = {"cpu": "4", "nvidia.com/gpu": "1"}
_PORT: Final = [{"containerPort": 1, "hostPort": 443}]

PROBLEMS: Final = (
    Problem(
        "selector-value", "disk=ssd", "correct disk=sdd to disk=ssd", _spec(nodeSelector={"disk": "sdd"}), 2
    ),
    Problem(
        "selector-key",
        "lifecycle=spot",
        "correct lifecycl=spot to lifecycle=spot",
        _spec(nodeSelector={"lifecycl": "spot"}, tolerations=_tolerates("spot", "yes")),
    ),
    Problem(
        "renamed-key",
        "acme.io/pool=analytics",
        "correct nodegroup.acme.io/name=analytics to acme.io/pool=analytics",
        _spec(nodeSelector={"nodegroup.acme.io/name": "analytics"}),
    ),
    Problem(
        "old-zone-key",
        f"{ZONE}=eu-a",
        f"correct {OLD_ZONE}=eu-a to {ZONE}=eu-a",
        _spec(nodeSelector={OLD_ZONE: "eu-a"}),
    ),
    Problem(
        "arch-value",
        "arch=amd64",
        f"correct {ARCH}=amd46 to {ARCH}=amd64",
        _spec(nodeSelector={ARCH: "amd46"}),
    ),
    Problem(
        "no-toleration",
        "tolerate spot",
        "tolerate spot=yes:NoSchedule",
        _spec(nodeSelector={"lifecycle": "spot"}),
    ),
    Problem("gpu-toleration", "tolerate dedicated=gpu", "tolerate dedicated=gpu:NoSchedule", _spec(_GPU), 2),
    Problem(
        "toleration-value",
        "spot=yes",
        "correct spot=yse to spot=yes",
        _spec(nodeSelector={"lifecycle": "spot"}, tolerations=_tolerates("spot", "yse")),
    ),
    Problem(
        "toleration-key",
        "dedicated=gpu",
        "correct dedicted=gpu to dedicated=gpu",
        _spec(_GPU, tolerations=_tolerates("dedicted", "gpu")),
    ),
    Problem(
        "resource-name",
        "nvidia.com/gpu,",
        "correct nvidia.com/gpus to nvidia.com/gpu",
        _spec({"cpu": "4", "nvidia.com/gpus": "1"}, tolerations=_tolerates("dedicated", "gpu")),
    ),
    Problem("cores", "250m", "request 250m of cpu: 250 is a number of cores", _spec({"cpu": "250"}), 2),
    Problem("memory-unit", "512Mi", "request 512Mi of memory: 512Gi", _spec({"cpu": "1", "memory": "512Gi"})),
    Problem(
        "too-many-cores",
        "48 of cpu",
        "no node has 48 of cpu even when empty; the largest has 32",
        _spec({"cpu": "48"}),
    ),
    Problem(
        "no-such-disk",
        "200Gi of eph",
        "no node has 200Gi of ephemeral-storage even when empty; the largest has 100Gi",
        _spec({"cpu": "1", "ephemeral-storage": "200Gi"}),
    ),
    Problem(
        "unknown-resource",
        "no node offers",
        "no node offers example.com/fpga",
        _spec({"cpu": "1", "example.com/fpga": "1"}),
    ),
    Problem(
        "zone-too-many",
        f"drop {ZONE}=eu-c",
        f"drop {ZONE}=eu-c from the pod's nodeSelector",
        _spec(nodeSelector={ARCH: "arm64", ZONE: "eu-c"}, tolerations=_tolerates("platform", "arm64")),
        2,
    ),
    Problem(
        "expression-too-many",
        "drop tier=gold",
        "drop tier=gold from the pod's required node affinity",
        _spec(affinity=_required(("disk", "ssd"), ("tier", "gold"))),
    ),
    Problem(
        "daemon-sizes",
        "request 4Gi of memory",
        "request 4Gi of memory instead of 9Gi",
        _spec({"memory": "9Gi"}),
        on=("daemon-8", "daemon-6", "daemon-4"),
    ),
    Problem("more-nodes", "more nodes like pair", "2 more nodes like pair-0", _spec({"cpu": "3"}, "pair"), 4),
    Problem(
        "ending",
        "once shop/ending-old has ended",
        "fits once shop/ending-old has ended, by 09:01:00",
        _spec({"cpu": "3"}, "ending"),
    ),
    Problem(
        "init-request",
        "init container setup",
        "request 4 of cpu instead of 6 in init container setup",
        _spec(pool="init", initContainers=[_container("setup", {"cpu": "6"})]),
    ),
    Problem(
        "gate",
        "gate",
        "remove the scheduling gate acme.io/budget",
        _spec(schedulingGates=[{"name": "acme.io/budget"}]),
    ),
    Problem(
        "scheduler-name",
        "default-scheduler",
        "correct defualt-scheduler to default-scheduler",
        _spec(schedulerName="defualt-scheduler"),
    ),
    Problem("cordoned", "uncordon", "uncordon node edge-0", _spec(pool="edge")),
    Problem("not-ready", "repair", "repair node sick-0", _spec(pool="sick")),
    Problem(
        "host-port",
        "shop/port-holder",
        "delete pod shop/port-holder from node port-0",
        {**_spec(pool="port"), "containers": [_container("main", {"cpu": "100m"}, ports=_PORT)]},
    ),
    Problem(
        "apart",
        "podAntiAffinity",
        f"prefer the podAntiAffinity over {HOST} instead of requiring it",
        _spec(pool="few", affinity=_beside("podAntiAffinity", "apart")),
        4,
    ),
    Problem(
        "beside-nobody",
        "app=redis",
        "correct app=rediss to app=redis",
        _spec(affinity=_beside("podAffinity", "rediss")),
    ),
    Problem(
        "min-domains",
        "minDomains 2",
        f"minDomains 2 for the spread over {ZONE}",
        _spec(
            affinity=_required((ZONE, "eu-a", "eu-b")),
            topologySpreadConstraints=_spread("min-domains", ZONE, minDomains=3),
        ),
        4,
    ),
    Problem(
        "uneven-spread",
        "(uncordon node uneven-2|Honor)",
        "uncordon node uneven-2",
        _spec(pool="uneven", topologySpreadConstraints=_spread("uneven-spread", HOST)),
    ),
    Problem(
        "no-rack",
        "(ScheduleAnyway|label the nodes)",
        "whenUnsatisfiable: ScheduleAnyway for the spread over acme.io/rack",
        _spec(pool="racks", topologySpreadConstraints=_spread("no-rack", "acme.io/rack")),
        2,
    ),
    Problem(
        "old-spread-key",
        f"to {ZONE}",
        f"correct {OLD_ZONE} to {ZONE}",
        _spec(topologySpreadConstraints=_spread("old-spread-key", OLD_ZONE)),
        2,
    ),
    Problem(
        "claim-name",
        "orders-data",
        "claim shop/orders-dta doesn't exist (did you mean orders-data?)",
        _with_claim("orders-dta"),
        more=(_claim("orders-data", "gp3"),),
    ),
    Problem(
        "class-name",
        "gp33",
        "claim shop/carts-data is pending: there is no StorageClass gp33",
        _with_claim("carts-data"),
        more=(_claim("carts-data", "gp33"),),
    ),
    Problem(
        "no-volume",
        "shop/files",
        "claim shop/files is pending: provisioner efs.csi.example.com",
        _with_claim("files"),
        more=(_claim("files", "efs"),),
    ),
    Problem(
        "volume-elsewhere",
        "shop/logs",
        f"claim shop/logs, volume pv-logs: {ZONE}=eu-c, which keeps it off",
        _with_claim("logs", nodeSelector={ZONE: "eu-a"}),
        more=(_claim("logs", "gp3", "pv-logs"), _VOLUME),
    ),
    Problem(
        "runtime-class",
        "label node .* sandbox=kata",
        "label node ",
        _spec(nodeSelector={"sandbox": "kata"}, runtimeClassName="kata"),
        more=(_KATA,),
    ),
    Problem(
        "least-request",
        "(more cpu|more node)",
        "1500m more cpu on node limited-0",
        _spec({"cpu": "3"}, "limited"),
        more=(_LEAST,),
        namespace="limited",
    ),
    Problem(
        "full-node",
        "(request 500m|delete pod shop/full-holder|more cpu|more node)",
        "request 500m of cpu instead of 800m",
        _spec({"cpu": "800m"}, "full"),
    ),
    Problem(
        "too-many-pods",
        "(crowded-holder|more pods|more node)",
        "delete pod shop/crowded-holder from node crowded-0",
        _spec(pool="crowded"),
    ),
)


def export(general: int = 6, running: int = 0) -> list[Manifest]:
    """The cluster's objects, with so many nodes of the general pool, and so many pods that run there."""
    objects = [*_nodes(general), *_occupied()]
    for number in range(running):
        requests = {"cpu": ("100m", "250m")[number % 2], "memory": ("256Mi", "1Gi", "512Mi")[number % 3]}
        objects.append(_running(f"app-{number}", f"gen-{number % general}", requests))
    for problem in PROBLEMS:
        objects += [*_pods(problem), *problem.more]
    return objects


def _pods(problem: Problem) -> Iterator[Manifest]:
    for number, node in enumerate(problem.on or [""] * problem.replicas):
        spec = json.loads(json.dumps(problem.spec))
        if node:
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            required = {"nodeSelectorTerms": [term]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        kind = "DaemonSet" if node else "ReplicaSet"
        yield _pod(f"{problem.name}-{number}", spec, problem.name, kind, problem.namespace)


@cache
def answers(general: int = 6, running: int = 0) -> Mapping[str, Mapping[str, Any]]:
    """What `kschedfw pending --json` says of each workload that has pods without a place."""
    found = to_json(explain_pending(cluster_of(export(general, running))), Background([]))
    assert isinstance(found["groups"], list)
    kinds = [kind for group in found["groups"] for kind in group["kinds"]]
    return {str(kind["workload"]).rpartition("/")[2]: kind for kind in kinds}


def first_advice(kind: Mapping[str, Any]) -> str:
    """The first line that is said of a kind."""
    lines = [*kind["notes"], *(", and ".join(remedy["changes"]) for remedy in kind["helps"])]
    return lines[0] if lines else "nothing found that helps"


def placed_after(
    remedy: Mapping[str, Any], kind: Mapping[str, Any], general: int = 6, running: int = 0
) -> int:
    """How many of the pods a scheduler places that starts on a copy of the export with the remedy."""
    objects = edited(export(general, running), remedy["edits"], kind["pods"])
    if remedy["changes"][0].startswith("fits once"):
        objects = [each for each in objects if "deletionTimestamp" not in each["metadata"]]
    cluster = cluster_of(objects)
    others = {each for each in (pod.key for pod in cluster.pending) if each not in kind["pods"]}
    with cluster.transaction() as trial:
        # The pods alone: those of other problems have no place, or one beside.
        wanted = [pod for pod in cluster.pending if pod.key not in others]
        return len(trial.schedule(wanted).placed)


def main(file: str = "") -> None:
    """Print each problem with the first advice: exact, right or wrong, and how many pods its change places."""
    size = (87, 1700)
    if file:
        Path(file).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": export(*size)}))
    for problem in PROBLEMS:
        kind = answers(*size).get(problem.name)
        first = "has a place" if kind is None else first_advice(kind)
        verdict = (
            "exact"
            if first.startswith(problem.exact)
            else "right"
            if re.search(problem.right, first)
            else "WRONG"
        )
        helps = () if kind is None else kind["helps"][:1]
        tried = "".join(f"{placed_after(each, kind, *size)} of {each['placed']}" for each in helps if kind)
        sys.stdout.write(f"{problem.name:<21}{verdict:<7}{tried:<8}{first}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
