"""Reads the OpenB trace: nodes and pods of a GPU cluster, as CSV. Commands read it with `--format openb`.

The trace is Alibaba's cluster-trace-gpu-v2023 (Weng et al., "Beware of Fragmentation", USENIX ATC '23). The rows
become:

* a node: `nvidia.com/gpu` counts its GPUs, `alibabacloud.com/gpu-milli` their thousandths, the label
  `alibabacloud.com/gpu-card-model` names the model; at most 1001 pods;
* a pod: a pending one in the namespace `openb` that requests whole GPUs (one that uses a part of a GPU takes one). The
  part is in the annotation `alibabacloud.com/gpu-milli`, the models it may run on (`A|B`) in
  `alibabacloud.com/gpu-card-model`, its times (seconds since the trace's start) and recorded phase in `openb.trace/*`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import attrs

from kschedfw import InMemoryCluster, KschedfwError, Node, Pod
from kschedfw.api import Named, counted, node_from_manifest, pod_from_manifest
from kschedfw.api.reading import UnreadableError, lines_of
from kschedfw.cli import Format, Input, UsageError
from kschedfw.simulator import OPENB_EPOCH as EPOCH

ObjectT = TypeVar("ObjectT", bound=Named)

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
GPU = "nvidia.com/gpu"
GPU_COUNT = "alibabacloud.com/gpu-count"
GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
NAMESPACE = "openb"
PODS_PER_NODE = 1001

# Larger amounts in MiB may exceed int64 in bytes.
_LARGEST = (1 << 53) - 1
_LONGEST_LINE = 1 << 20


class OpenbError(KschedfwError, ValueError):
    """The error of a CSV that isn't one of the OpenB trace; names the file, line, column and value."""


def read_openb_nodes(path: str | Path) -> list[Node]:
    """Return the nodes in the order of the file. Raises OpenbError, and OSError where the file can't be read."""
    return _read("nodes", Path(path), NODE_COLUMNS, _node)


def read_openb_pods(path: str | Path) -> list[Pod]:
    """Return the pods in the order of the file, all pending. Raises OpenbError, and OSError if it can't be read."""
    return _read("pods", Path(path), POD_COLUMNS, _pod)


def openb_notes(pods: Iterable[Pod]) -> Sequence[str]:
    """Return notes for a report: requests of the pods that the default plugins don't know."""
    partial = models = 0
    for pod in pods:
        partial += pod.annotations.get(GPU_MILLI, "1000") != "1000"
        models += GPU_MODEL in pod.annotations
    notes = []
    if partial:
        notes.append(f"{counted(partial, 'pod')} with a request for a part of a GPU; each takes a whole one")
    if models:
        notes.append(f"{counted(models, 'pod')} with GPU models to run on; no default plugin looks at that")
    return notes


def _read_files(nodes: Sequence[Path], pods: Sequence[Path]) -> Input:
    """Return the cluster of the tables, for commands with `--format openb`."""
    if directories := [path for path in (*nodes, *pods) if path.is_dir()]:
        raise UsageError(f"--format openb: {directories[0]} is a directory, expected a CSV of the trace")
    trace = [pod for path in pods for pod in read_openb_pods(path)]
    cluster = InMemoryCluster()
    for obj in (*(node for path in nodes for node in read_openb_nodes(path)), *trace):
        cluster.add(obj)
    return Input(cluster, notes=openb_notes(trace))


OPENB: Final = Format(_read_files)


@attrs.frozen
class _Row:
    """A line of a CSV, with errors that name the cell."""

    file: Path
    line: int
    cells: dict[str, str]

    def name(self, column: str) -> str:
        return self.cells[column] or self.refuse(column, "a name")

    def number(self, column: str) -> int:
        text = self.cells[column]
        # The length comes first: Python refuses to convert thousands of digits.
        if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _LARGEST:
            return int(text)
        return self.refuse(column, "a whole number")

    def refuse(self, column: str, expected: str) -> NoReturn:
        raise OpenbError(
            f"{self.file}:{self.line}: column {column}: expected {expected}, found {self.cells[column]!r}"
        )


def _rows(what: str, path: Path, columns: Sequence[str]) -> Iterator[_Row]:
    lines = csv.reader(_lines(path), strict=True)
    try:
        header = next(lines, [])
        for column in columns:
            if column not in header:
                found = ", ".join(header) or "nothing"
                raise OpenbError(
                    f"{path}:1: expected OpenB's table of {what}: column {column} is missing; found {found}"
                )
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(header):
                missing = header[len(cells)] if len(cells) < len(header) else f"after {header[-1]}"
                raise OpenbError(
                    f"{path}:{lines.line_num}: column {missing}: expected {len(header)} cells in the line, "
                    f"found {len(cells)}"
                )
            yield _Row(path, lines.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise OpenbError(f"{path}:{lines.line_num}: {error}") from error
    except UnreadableError as error:
        raise OpenbError(f"{path}: {error}") from None


def _lines(path: Path) -> Iterator[str]:
    for number, line in lines_of(path, _LONGEST_LINE):
        try:
            # A file may begin with a byte order mark.
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise OpenbError(f"{path}: not a text file in UTF-8: {error.reason}") from error


def _read(what: str, path: Path, columns: Sequence[str], convert: Callable[[_Row], ObjectT]) -> list[ObjectT]:
    """Return an object for each row of a table; its name is in the first of the columns."""
    seen: set[str] = set()
    objects: list[ObjectT] = []
    key = columns[0]
    for row in _rows(what, path, columns):
        name = row.name(key)
        if name in seen:
            row.refuse(key, "every name once")
        seen.add(name)
        objects.append(convert(row))
    return objects


def _node(row: _Row) -> Node:
    name, gpus, model = row.name("sn"), row.number("gpu"), row.cells["model"]
    labels = {"beta.kubernetes.io/os": "linux", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    amounts = {**_cpu_and_memory(row), "pods": str(PODS_PER_NODE)}
    if gpus:
        labels[GPU_MODEL] = model
        amounts |= {GPU: str(gpus), GPU_COUNT: str(gpus), GPU_MILLI: str(gpus * 1000)}
    return node_from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )


def _pod(row: _Row) -> Pod:
    gpus, gpu_milli = row.number("num_gpu"), row.number("gpu_milli")
    annotations: dict[str, str] = {}
    if gpus:
        annotations |= {GPU_COUNT: str(gpus), GPU_MILLI: str(gpu_milli)}
    if models := row.cells["gpu_spec"]:
        annotations[GPU_MODEL] = models
    for event in ("creation", "deletion", "scheduled"):
        # The time is absent if the event didn't happen.
        if row.cells[f"{event}_time"]:
            annotations[f"openb.trace/{event}-time"] = str(row.number(f"{event}_time"))
    annotations["openb.trace/pod-phase"] = row.cells["pod_phase"]
    gpu_amount = {GPU: str(gpus)} if gpus else {}
    requests = {**_cpu_and_memory(row), **gpu_amount}
    # GPUs can't be overcommitted, so their limit is their request; all limits are only for Guaranteed pods.
    limits = requests if row.cells["qos"] == "Guaranteed" else gpu_amount
    return pod_from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": row.name("name"),
                "namespace": NAMESPACE,
                "labels": {"openb.trace/qos": row.cells["qos"]},
                "annotations": annotations,
                "creationTimestamp": _created(row),
            },
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "tensorflow:latest",
                        "resources": {"requests": requests, "limits": limits},
                    }
                ],
                "restartPolicy": "Never",
            },
        }
    )


def _created(row: _Row) -> str:
    try:
        return (EPOCH + timedelta(seconds=row.number("creation_time"))).isoformat()
    except OverflowError:
        row.refuse("creation_time", "seconds since the trace's start")


def _cpu_and_memory(row: _Row) -> dict[str, str]:
    return {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
