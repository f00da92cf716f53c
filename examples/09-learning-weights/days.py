"""Writes days of a cluster, as files that a search reads: generated ones, or parts of the OpenB trace."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random

GPU = "nvidia.com/gpu"

Cluster = dict[str, object]
"""A value of the factor `cluster`."""


def generated(folder: Path, days: Iterable[int]) -> list[Cluster]:
    """Days of 80 pods on ten CPU nodes and six GPU nodes, by their seeds."""
    nodes = [
        *(
            _manifest("Node", f"cpu-{i}", allocatable={"cpu": "16", "memory": "64Gi", "pods": "110"})
            for i in range(10)
        ),
        *(
            _manifest(
                "Node", f"gpu-{i}", allocatable={"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "4"}
            )
            for i in range(6)
        ),
    ]
    clusters: list[Cluster] = []
    for day in days:
        path = folder / f"day-{day}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *_pods_of(day)]}))
        clusters.append({"name": str(day), "manifests": path.name})
    return clusters


def _pods_of(day: int) -> list[dict[str, object]]:
    """A day's pods in the order of their arrival: small ones, GPU jobs, and some that want most of a node."""
    random = Random(day)
    pods = []
    for number in range(80):
        kind = random.choices(["small", "gpu", "big"], [70, 20, 10])[0]
        if kind == "small":
            requests = {"cpu": str(random.choice([1, 2, 3])), "memory": f"{random.choice([2, 4, 16])}Gi"}
        elif kind == "gpu":
            requests = {"cpu": "3", "memory": "8Gi", GPU: str(random.choice([1, 1, 2]))}
        else:
            requests = {"cpu": str(random.choice([10, 12])), "memory": "24Gi"}
        limits = {name: amount for name, amount in requests.items() if name == GPU}
        container = {"name": "main", "image": "main", "resources": {"requests": requests, "limits": limits}}
        pods.append(_manifest("Pod", f"pod-{number}", spec={"containers": [container]}))
    return pods


def _manifest(kind: str, name: str, *, spec: object = None, allocatable: object = None) -> dict[str, object]:
    manifest: dict[str, object] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    if spec is not None:
        manifest["spec"] = spec
    if allocatable is not None:
        manifest["status"] = {"allocatable": allocatable}
    return manifest


def openb(folder: Path, data: Path, days: Iterable[int]) -> list[Cluster]:
    """Parts of the OpenB trace: every eighth GPU node, and a thousand pods in the order of their creation a day."""
    header, nodes = _table(data / "openb_node_list_gpu_node.csv")
    _write(folder / "nodes.csv", header, nodes[::8])
    header, pods = _table(data / "openb_pod_list_default.csv")
    created = header.index("creation_time")
    pods.sort(key=lambda row: float(row[created]))
    clusters: list[Cluster] = []
    for day in days:
        path = folder / f"pods-{day}.csv"
        _write(path, header, pods[1000 * day : 1000 * (day + 1)])
        clusters.append({"name": str(day), "openb": {"nodes": "nodes.csv", "pods": path.name}})
    return clusters


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
