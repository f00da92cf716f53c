"""A large cluster in the form of an export, and what `kschedfw pending` costs on it: a command.

    PYTHONPATH=plugins/kschedfw-advisor/tests python -m large [REPEATS]

By default there are 1,000 nodes and 10,000 pods, of which 500 of 20 workloads are pending. Times are the processor's,
of a process of its own each time.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

Manifest = dict[str, Any]

ZONES: Final = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

_POOLS: Final[Mapping[str, tuple[int, Mapping[str, str], str]]] = {
    "general": (60, {"cpu": "8", "memory": "32Gi"}, ""),
    "memory": (20, {"cpu": "8", "memory": "64Gi"}, ""),
    "storage": (15, {"cpu": "16", "memory": "64Gi"}, "storage"),
    "gpu": (5, {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "4"}, "gpu"),
}
"""Of each pool the share in percent, what a node offers, and for whom it is kept."""
_DAEMON_SETS: Final = ("agent", "proxy")
_APPLICATIONS: Final = 97


def export(nodes: int = 1_000, pods: int = 10_000, pending: int = 500) -> Iterator[Manifest]:
    """The objects: nodes of four pools in three zones, two DaemonSets, 97 Deployments, and what is pending."""
    pools = [pool for pool, (share, _, _) in _POOLS.items() for _ in range(share)]
    names = [
        f"ip-10-{n // 65536}-{n // 256 % 256}-{n % 256}.eu-central-1.compute.internal" for n in range(nodes)
    ]
    for number, name in enumerate(names):
        yield _node(name, pools[number % len(pools)], ZONES[number % 3])
    for daemon_set in _DAEMON_SETS:
        for number, name in enumerate(names):
            spec = _spec(
                {"cpu": "100m", "memory": "128Mi"}, nodeName=name, tolerations=[{"operator": "Exists"}]
            )
            yield _pod(f"{daemon_set}-{number:05}", "kube-system", ("DaemonSet", daemon_set), spec)
    open_nodes = [name for number, name in enumerate(names) if not _POOLS[pools[number % len(pools)]][2]]
    for number in range(pods - pending - len(_DAEMON_SETS) * nodes):
        application = f"app-{number % _APPLICATIONS}"
        requests = {"cpu": f"{(1 + number % 4) * 250}m", "memory": f"{(1 + number % 5) * 512}Mi"}
        spec = _spec(requests, nodeName=open_nodes[number % len(open_nodes)])
        yield _pod(f"{application}-{number:05}", f"team-{number % 20}", ("ReplicaSet", application), spec)
    causes = list(_causes().items())
    for number in range(pending):
        cause, spec = causes[number % len(causes)]
        yield _pod(f"{cause}-{number:05}", "shop", ("ReplicaSet", cause), spec)


def _node(name: str, pool: str, zone: str) -> Manifest:
    _, offers, kept_for = _POOLS[pool]
    labels = {
        HOSTNAME: name,
        ZONE: zone,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"{pool}.2xlarge",
        "pool": pool,
    }
    taints = [{"key": "dedicated", "value": kept_for, "effect": "NoSchedule"}] if kept_for else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": {**offers, "pods": "58", "ephemeral-storage": "100Gi"}},
    }


def _pod(name: str, namespace: str, owner: tuple[str, str], spec: Manifest) -> Manifest:
    kind, workload = owner
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": workload, "uid": workload, "controller": True}
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"app": workload, "pod-template-hash": "5d4f8c7b9"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [reference],
    }
    token = {"name": f"kube-api-access-{name[-5:]}", "projected": {"sources": [{"serviceAccountToken": {}}]}}
    phase = "Running" if "nodeName" in spec else "Pending"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "volumes": [token]},
        "status": {"phase": phase},
    }


def _spec(requests: Mapping[str, str], **more: object) -> Manifest:
    # Extended resources can't be overcommitted: their limits are their requests.
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    resources = {"requests": dict(requests), "limits": limits}
    container = {"name": "main", "image": "example.com/app:1", "resources": resources}
    return {"containers": [container], **more}


def _causes() -> Mapping[str, Manifest]:
    """Twenty workloads whose pods have no place, with as many reasons as there are."""
    small, gpu = {"cpu": "500m", "memory": "1Gi"}, {"cpu": "4", "nvidia.com/gpu": "1"}
    apart = [{"labelSelector": {"matchLabels": {"app": "apart-by-zone"}}, "topologyKey": ZONE}]
    beside = [{"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": HOSTNAME}]
    spread = {
        "maxSkew": 1,
        "minDomains": 4,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    for_gpu = [{"key": "dedicated", "operator": "Equal", "value": "gpus", "effect": "NoSchedule"}]
    return {
        "typo-in-value": _spec(small, nodeSelector={"pool": "storge"}),
        "typo-in-key": _spec(small, nodeSelector={"pol": "general"}),
        "unknown-label": _spec(small, nodeSelector={"licence": "oracle"}),
        "two-labels": _spec(small, nodeSelector={"licence": "sap", "tier": "gold"}),
        "kept-node": _spec(small, nodeSelector={"pool": "storage"}),
        "no-toleration": _spec(gpu),
        "wrong-toleration": _spec(gpu, tolerations=for_gpu),
        "too-many-cores": _spec({"cpu": "10", "memory": "1Gi"}),
        "too-much-memory": _spec({"cpu": "1", "memory": "80Gi"}),
        "too-much-of-both": _spec({"cpu": "12", "memory": "100Gi"}),
        "cores-for-millis": _spec({"cpu": "4000", "memory": "1Gi"}),
        "disk": _spec({**small, "ephemeral-storage": "200Gi"}),
        "full-nodes": _spec({"cpu": "7", "memory": "2Gi"}, nodeSelector={"pool": "general"}),
        "full-memory": _spec({"cpu": "1", "memory": "31Gi"}, nodeSelector={"pool": "general"}),
        "unknown-resource": _spec({**small, "example.com/fpga": "1"}),
        "affinity": _spec(small, affinity={"nodeAffinity": _required("zone", "d")}),
        "other-architecture": _spec(
            small, affinity={"nodeAffinity": _required("kubernetes.io/arch", "arm64")}
        ),
        "apart-by-zone": _spec(
            small, affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}
        ),
        "beside-nobody": _spec(
            small, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": beside}}
        ),
        "spread": _spec(small, topologySpreadConstraints=[spread]),
    }


def _required(key: str, value: str) -> Manifest:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def processor_seconds(command: list[str]) -> float:
    """What the command costs, whatever its exit code is."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main(repeats: int = 5) -> None:
    """Print what reading and `pending` cost."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "cluster.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(export())}))
        kschedfw = [sys.executable, "-m", "kschedfw"]
        for what, arguments in (
            ("reading alone", ["pending", str(file), "--kinds=0", "--no-progress"]),
            ("20 kinds", ["pending", str(file), "--no-progress"]),
        ):
            times = [processor_seconds([*kschedfw, *arguments]) for _ in range(repeats)]
            sys.stdout.write(f"{what:<20}{min(times):8.2f} s (median {median(times):.2f} s)\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
