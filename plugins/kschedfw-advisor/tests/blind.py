"""An export with planted problems (`blind_problems.yaml`), whose answers were written before its advice was seen.

Its workloads share pools that are partly full, as in a real cluster. `python -m blind` prints the problems with the
first advice; a number as the argument adds so many nodes, each with 15 pods.
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
import yaml
from edits import edited
from kschedfw_advisor.cli.pending_output import to_json
from kschedfw_advisor.cli.what_if_output import Background
from kschedfw_advisor.pending import explain_pending
from kschedfw_advisor.reports import Reports

from kschedfw import WhatIf
from kschedfw.api import parse_manifests

Manifest = dict[str, Any]

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
ARCH: Final = "kubernetes.io/arch"
STORED: Final = {"creationTimestamp": "2026-01-01T00:00:00Z"}

_PODS_OF_A_NODE: Final = 15


@attrs.frozen
class Problem:
    """A workload with a problem, and the answer.

    `right` is a pattern for the first line of advice, `exact` is how the line begins at best; `given` is the entry of
    the file. `kind` says what the export has of the workload: pods without a place, or less.
    """

    name: str
    right: str
    exact: str
    kind: str
    given: Mapping[str, Any]

    @property
    def replicas(self) -> int:
        """The number of its pods."""
        return int(self.given.get("replicas", 1))


def problems() -> tuple[Problem, ...]:
    """Return all problems, in the order of the file."""
    entries = yaml.safe_load(Path(__file__).with_name("blind_problems.yaml").read_text())
    return tuple(
        Problem(each["name"], each["right"], each["exact"], each.get("kind", "Deployment"), each)
        for each in entries
    )


PROBLEMS: Final = problems()


def export(more_nodes: int = 0) -> list[Manifest]:
    """The cluster's objects, with so many more nodes of the largest pool and the pods on them."""
    objects = [*_nodes(), *_running(), *storage(), *_more(more_nodes)]
    for problem in PROBLEMS:
        objects += objects_of(problem)
    return objects


# Nodes, and what runs on them


def _nodes() -> Iterator[Manifest]:
    large = {"cpu": "15890m", "memory": "60Gi"}
    for number in range(1, 13):
        kind = {"node.kubernetes.io/instance-type": "m6i.4xlarge"}
        yield make_node(f"web-{number}", "web", {ZONE: f"eu-1{'abc'[number % 3]}", **kind}, large)
    yield make_node("web-13", "web", {ZONE: "eu-1d"}, large, cordoned=True)
    for number in (1, 2, 3):
        arm = {ARCH: "arm64", ZONE: f"eu-1{'ab'[number % 2]}"}
        yield make_node(f"arm-{number}", "arm", arm)
        gpu = {"cpu": "63770m", "memory": "500Gi", "nvidia.com/gpu": "8"}
        present = {"key": "nvidia.com/gpu", "value": "present"}
        yield make_node(
            f"gpu-{number}", "gpu", {"accelerator": "nvidia-a100", "gpu-memory": "40"}, gpu, present
        )
        yield make_node(f"db-{number}", "db", {ZONE: f"eu-1{'abc'[number - 1]}"}, {"cpu": "4"})
        yield make_node(f"solo-{number}", "solo", {}, {"cpu": "4"})
        yield make_node(f"batch-{number}", "batch", {}, {"cpu": "4"})
    for number in (1, 2):
        reserved = {"key": "dedicated", "value": "mem"}
        yield make_node(f"mem-{number}", "mem", {ZONE: "eu-1a"}, {"cpu": "16", "memory": "250Gi"}, reserved)
        spot = {"key": "cloud.google.com/gke-spot", "value": "true"}
        yield make_node(f"spot-{number}", "spot", {"cloud.google.com/gke-spot": "true"}, {}, spot)
        evicting = {"key": "team", "value": "ml", "effect": "NoExecute"}
        yield make_node(f"ml-{number}", "ml", {"team": "ml"}, {}, evicting)
        yield make_node(f"in-{number}", "ingress", {}, {}, {"key": "dedicated", "value": "ingress"})
        control = {"node-role.kubernetes.io/control-plane": ""}
        yield make_node(
            f"cp-{number}", "", control, {"cpu": "4"}, {"key": "node-role.kubernetes.io/control-plane"}
        )
        yield make_node(f"ana-{number}", "ana", {"kubernetes.azure.com/agentpool": "analytics"}, {"cpu": "4"})
    for number in range(1, 6):
        yield make_node(f"tiny-{number}", "tiny", {}, {"cpu": "2", "memory": "4Gi"})
    yield make_node("dense-1", "dense", {}, {"pods": "2"})
    yield make_node("edge-1", "edge", {"site": "oslo"}, cordoned=True)
    yield make_node("bad-1", "bad", {"site": "bern"}, {}, {"key": "node.kubernetes.io/not-ready"})
    yield make_node("bad-2", "bad", {"site": "rome"}, {}, {"key": "node.kubernetes.io/disk-pressure"})
    quiet, tenant = {"key": "quiet"}, {"key": "tenant", "value": "blue"}
    yield make_node("locked-1", "locked", {}, {"cpu": "4"}, quiet, tenant)
    yield make_node("attach-1", "attach", {}, {"cpu": "4"})
    yield make_node("over-1", "over", {}, {"cpu": "4"})
    yield make_node("solo-4", "solo4", {}, {"cpu": "4"})
    for size in (3, 5):
        yield make_node(f"size-{size}", "sizes", {}, {"cpu": "4", "memory": f"{size}Gi"})


def make_node(
    name: str,
    pool: str,
    labels: Mapping[str, str],
    offers: Mapping[str, str] | None = None,
    *taints: Mapping[str, str],
    cordoned: bool = False,
) -> Manifest:
    given = [{"effect": "NoSchedule", **taint} for taint in taints]
    if cordoned:
        given.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    all_labels = {HOST: name, ARCH: "amd64", **({"pool": pool} if pool else {}), **labels}
    offered = {"cpu": "8", "memory": "30Gi", "pods": "110", "ephemeral-storage": "90Gi", **(offers or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels},
        "spec": {"taints": given, "unschedulable": cordoned},
        "status": {"allocatable": offered},
    }


def _running() -> Iterator[Manifest]:
    for number in range(1, 13):
        for app in ("catalog", "search"):
            yield placed_pod(app, f"web-{number}", {"cpu": "5500m", "memory": "20Gi"})
    for number in (1, 2, 3):
        yield placed_pod("thumbnails", f"arm-{number}", {"cpu": "4"})
        yield placed_pod("postgres", f"db-{number}", {"cpu": "1"})
        yield placed_pod("node-exporter", f"db-{number}", {"cpu": "100m"}, "DaemonSet", port=9100)
        # What is left is enough for one pod of 1250m, and not for one of 1500m.
        yield placed_pod("nightly", f"batch-{number}", {"cpu": "2750m"})
    for number in (1, 2):
        yield placed_pod("cube", f"ana-{number}", {"cpu": "1"})
        yield placed_pod("filler", "dense-1", {"cpu": "100m"}, name=f"held-dense-{number}")
        for site, pool in (("spot", "spot"), ("ml", "ml"), ("in", "ingress")):
            yield placed_pod(f"app-{pool}", f"{site}-{number}", {"cpu": "1"})
    vault = placed_pod("vault", "web-1", {"cpu": "100m"})
    vault["metadata"]["namespace"] = "infra"
    yield vault
    ending = placed_pod("old", "solo-1", {"cpu": "3"}, name="held-solo-1")
    ending["metadata"]["deletionTimestamp"] = "2026-06-01T12:30:00Z"
    yield ending
    yield placed_pod("proxy", "solo-2", {"cpu": "100m"}, name="held-solo-2", port=7443)
    yield placed_pod("vip", "solo-3", {"cpu": "3"}, name="held-solo-3")
    static = placed_pod("kube-proxy", "over-1", {"cpu": "5"}, "Node", name="kube-proxy-over-1")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "m"}
    static["metadata"]["ownerReferences"][0].update(name="over-1", apiVersion="v1")
    yield static
    batch = placed_pod("low", "solo-4", {"cpu": "3"}, name="held-solo-4")
    batch["spec"]["priority"] = -10
    yield batch
    attached = placed_pod("attached-old", "attach-1", {"cpu": "100m"}, name="held-attached")
    attached["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "taken"}}]
    yield attached
    yield from _claim_and_volume({"claim": "taken", "class": "fast", "volume": "pv-taken", **_ON_ATTACH})
    owner = placed_pod("exclusive-old", "web-3", {"cpu": "100m"}, name="held-exclusive")
    owner["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "exclusive"}}]
    yield owner


def placed_pod(
    app: str,
    node: str,
    requests: Mapping[str, str],
    kind: str = "ReplicaSet",
    *,
    name: str = "",
    port: int = 0,
) -> Manifest:
    spec = {"containers": [_container(requests, [port] if port else [])], "nodeName": node}
    return _pod(name or f"{app}-{node}", app, spec, kind) | {"status": {"phase": "Running"}}


def _more(nodes: int) -> Iterator[Manifest]:
    for number in range(nodes):
        name = f"more-{number}"
        yield make_node(name, "more", {ZONE: f"eu-1{'abc'[number % 3]}"})
        for pod in range(_PODS_OF_A_NODE):
            yield placed_pod(
                f"app-{pod}", name, {"cpu": ("450m", "500m")[number % 2], "memory": ("1Gi", "2Gi")[pod % 2]}
            )


_ON_ATTACH: Final = {"key": "pool", "value": "attach"}


def storage() -> Iterator[Manifest]:
    driver = {"name": "fast.csi.example.com", "nodeID": "attach-1", "allocatable": {"count": 1}}
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "attach-1"},
        "spec": {"drivers": [driver]},
    }
    for name, value, policy in (("calm", 100, "Never"), ("keen", 200, "PreemptLowerPriority")):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": policy,
        }
    for name, mode, provisioner in (
        ("fast", "WaitForFirstConsumer", "fast.csi.example.com"),
        ("shared", "Immediate", "shared.csi.example.com"),
        ("disks", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"),
    ):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
        }


# Workloads


def _container(requests: Mapping[str, Any] | None, ports: list[int]) -> Manifest:
    amounts = {name: str(amount) for name, amount in (requests or {"cpu": "100m"}).items()}
    limits = {name: each for name, each in amounts.items() if "/" in name or name.startswith("hugepages-")}
    opened = [{"containerPort": port, "hostPort": port} for port in ports]
    return {
        "name": "main",
        "image": "i",
        "resources": {"requests": amounts, "limits": limits},
        **({"ports": opened} if opened else {}),
    }


def _owner(kind: str, name: str) -> list[Manifest]:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]


def _pod(name: str, workload: str, spec: Manifest, kind: str = "ReplicaSet") -> Manifest:
    metadata = {"name": name, "namespace": "shop", "labels": {"app": workload}, **STORED}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": _owner(kind, workload)},
        "spec": spec,
    }


def _spec_of(problem: Problem) -> Manifest:
    given = problem.given
    spec = json.loads(json.dumps(given.get("spec", {})))
    spec["containers"] = [_container(given.get("requests"), given.get("ports", []))]
    if "claim" in given:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": given["claim"]}}]
    return {"terminationGracePeriodSeconds": 30, **spec}


def objects_of(problem: Problem) -> Iterator[Manifest]:
    given, spec = problem.given, _spec_of(problem)
    yield from given.get("objects", ())
    for each in given.get("more", ()):
        yield from _claim_and_volume(each)
    for node in given.get("running", ()):
        running = {**spec, "nodeName": node}
        yield _pod(f"{problem.name}-{node}", problem.name, running) | {"status": {"phase": "Running"}}
    match problem.kind:
        case "Deployment":
            for number in range(problem.replicas):
                yield _pod(f"{problem.name}-{number}", problem.name, spec)
        case "DaemonSet":
            for node in given["on"]:
                term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
                daemon = {**spec, "affinity": {"nodeAffinity": required}}
                yield _pod(f"{problem.name}-{node}", problem.name, daemon, "DaemonSet")
        case "Stuck":
            yield from _stuck(problem, spec)
        case _:
            yield from _without_pods(problem, spec)


def _stuck(problem: Problem, spec: Manifest) -> Iterator[Manifest]:
    """A pod that has a node and doesn't start there."""
    for node in problem.given["on"]:
        pod = _pod(f"{problem.name}-0", problem.name, {**spec, "nodeName": node})
        status: Manifest = {"phase": "Pending"}
        if waiting := problem.given.get("waiting"):
            about = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
            status["containerStatuses"] = [{**about, "state": {"waiting": waiting}}]
        yield {**pod, "status": status}
        if event := problem.given.get("event"):
            yield _event(problem.name, "Pod", f"{problem.name}-0", event["reason"], event["message"])


def _without_pods(problem: Problem, spec: Manifest) -> Iterator[Manifest]:
    """A workload whose pods aren't created, and what the export says of why."""
    name, message = problem.name, problem.given.get("message", "")
    match problem.kind:
        case "ReplicaFailure":
            condition = {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": message,
            }
            status = {"replicas": 0, "conditions": [condition]}
            yield _workload("ReplicaSet", name, spec, replicas=1) | {"status": status}
        case "Event":
            of = problem.given["of"]
            yield _workload(of, name, spec, **({} if of == "Job" else {"replicas": 1})) | {"status": {}}
            yield _event(name, of, name, "FailedCreate", message)
        case "Quota" | "LimitRange":
            yield from _limited(problem, spec)
        case "Suspended":
            yield _workload("Job", name, spec, suspend=True)
        case "NoNode":
            yield _workload("DaemonSet", name, {**spec, "nodeSelector": {"sensor": "yes"}})


def _limited(problem: Problem, spec: Manifest) -> Iterator[Manifest]:
    """A ReplicaSet in a namespace of its own, with a quota or a range that its pods don't keep to."""
    namespace = problem.given.get("namespace", "tight" if problem.kind == "Quota" else "ranged")
    hard = problem.given.get("hard", {"requests.cpu": "2"})
    name = "cores" if namespace == "tight" else "limits"
    head = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name, "namespace": namespace}}
    if problem.kind == "Quota":
        yield {**head, "kind": "ResourceQuota", "spec": {"hard": hard}}
    else:
        yield {**head, "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}
    limited = _workload("ReplicaSet", problem.name, spec, replicas=problem.replicas)
    limited["metadata"]["namespace"] = namespace
    yield limited


def _workload(kind: str, name: str, spec: Manifest, **fields: object) -> Manifest:
    labels = {"app": name}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    restarts = {"restartPolicy": "Never"} if kind == "Job" else {}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", **STORED},
        "spec": {
            **selector,
            **fields,
            "template": {"metadata": {"labels": labels}, "spec": {**spec, **restarts}},
        },
    }


def _event(workload: str, kind: str, name: str, reason: str, message: str) -> Manifest:
    version = {"Pod": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    about = {"apiVersion": version, "kind": kind, "name": name, "namespace": "shop", "uid": f"uid-{name}"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.17d{workload}", "namespace": "shop", **STORED},
        "involvedObject": about,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "count": 12,
        "lastTimestamp": "2026-06-01T12:00:00Z",
    }


def _claim_and_volume(given: Mapping[str, Any]) -> Iterator[Manifest]:
    claim, volume, size = given.get("claim", ""), given.get("volume", ""), given.get("size", "10Gi")
    mode = given.get("mode", "ReadWriteOnce")
    if claim:
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": "shop", **STORED, **bound},
            "spec": {
                "accessModes": [mode],
                "resources": {"requests": {"storage": size}},
                "storageClassName": given["class"],
                **({"volumeName": volume} if volume else {}),
            },
        }
    if volume:
        to_claim = {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": claim}
        where = {"key": given["key"], "operator": "In", "values": [given["value"]]}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "accessModes": [mode],
                "capacity": {"storage": "10Gi"},
                "csi": {"driver": "fast.csi.example.com", "volumeHandle": volume},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
                "storageClassName": given["class"],
                **({"claimRef": to_claim} if claim else {}),
            },
            "status": {"phase": "Bound" if claim else "Available"},
        }


# Answers


def cluster_of(objects: list[Manifest]) -> WhatIf:
    """The cluster of the objects."""
    return WhatIf(parse_manifests(as_list(objects)))


def as_list(objects: list[Manifest]) -> str:
    """Return the objects as `kubectl get -o json` prints them."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


@cache
def answer(more_nodes: int = 0) -> Mapping[str, Any]:
    """What `kschedfw pending --json` says of the export."""
    found = parse_manifests(as_list(export(more_nodes)))
    reports = Reports(found.admission.refused, found.without_pods, found.workloads, found.warning_events)
    return to_json(explain_pending(WhatIf(found), reports=reports), Background([]))


def kind_of(problem: Problem, more_nodes: int = 0) -> Mapping[str, Any] | None:
    """The pods of the problem in the answer; None if none is pending."""
    groups = answer(more_nodes)["groups"]
    of = (kind for group in groups for kind in group["kinds"])
    return next((kind for kind in of if str(kind["workload"]).endswith(f"/{problem.name}")), None)


def first_advice(problem: Problem, more_nodes: int = 0) -> str:
    """The first line that is said of the problem's workload; empty if none is."""
    kind = kind_of(problem, more_nodes)
    if kind is not None:
        culprits = [each["text"] for each in kind["findings"] if each["text"] not in kind["notes"]]
        return next(iter([*kind["notes"], *_remedies(kind), *culprits]), "nothing found that helps")
    for part in ("notCreated", "stuck", "idle"):
        for each in answer(more_nodes).get(part, ()):
            if str(each["workload"]).endswith(f"/{problem.name}"):
                return str(each["finding"]["text"])
    return ""


def told_first(problem: Problem, more_nodes: int = 0) -> list[str]:
    """What the command says of the problem's workload up to the first remedy: who is behind it, notes, the remedy."""
    kind = kind_of(problem, more_nodes)
    lines = [] if kind is None else [each["text"] for each in kind["findings"]]
    return [first_advice(problem, more_nodes), *lines, *([] if kind is None else _remedies(kind)[:1])]


def _remedies(kind: Mapping[str, Any]) -> list[str]:
    return [", and ".join(remedy["changes"]) for remedy in kind["helps"]]


def is_exact(problem: Problem, more_nodes: int = 0) -> bool:
    """Whether one of the lines up to the first remedy is what a good colleague would say."""
    return any(line.startswith(problem.exact) for line in told_first(problem, more_nodes))


def placed_after(remedy: Mapping[str, Any], kind: Mapping[str, Any], more_nodes: int = 0) -> int:
    """How many of the pods a scheduler places that starts on a copy of the export with the remedy."""
    objects = edited(export(more_nodes), remedy["edits"], kind["pods"])
    if remedy["actions"][0]["code"] == "await-ends":
        objects = [each for each in objects if "deletionTimestamp" not in each["metadata"]]
    cluster = cluster_of(objects)
    with cluster.transaction() as trial:
        preempts = remedy["actions"][0]["code"] in {"prioritise", "may-preempt"}
        wanted = [pod for pod in cluster.pending if pod.key in kind["pods"]]
        return len(trial.schedule(wanted, preempt=preempts).placed)


def main(more_nodes: int = 0) -> None:
    """Print each problem with the first advice: exact, right or wrong, and how many pods its change places."""
    count = {"exact": 0, "right": 0, "WRONG": 0}
    for problem in PROBLEMS:
        first, kind = first_advice(problem, more_nodes), kind_of(problem, more_nodes)
        told = bool(re.search(problem.right, first))
        verdict = "WRONG" if not told else "exact" if is_exact(problem, more_nodes) else "right"
        count[verdict] += 1
        helps = () if kind is None else kind["helps"][:1]
        tried = "".join(
            f"{placed_after(each, kind, more_nodes)} of {each['placed']}" for each in helps if kind
        )
        sys.stdout.write(f"{problem.name:<13}{verdict:<7}{tried:<8}{first[:150]}\n")
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
