"""The workload `openb`: a GPU cluster with the requests of real pods, from the OpenB trace or made like it.

The trace is Alibaba's cluster-trace-gpu-v2023 (Weng et al., "Beware of Fragmentation", USENIX ATC '23).
`kschedfw_lab.openb` describes how its rows are converted. The trace isn't part of kschedfw. Without it, nodes and
pods are made:

* nodes with the trace's GPU models, in their proportion, with the most frequent CPU and memory of each model;
* pods with 0, 1, 2, 4 and 8 GPUs, in the trace's proportion. For each number of GPUs, CPU and memory are quantiles of
  the trace: twentieths, or fifths for 2 and more GPUs, of which there are few. The largest CPU goes with the largest
  memory. This makes some 30 kinds of pods, where the trace has 124.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from kschedfw.api import Named, to_manifest
from kschedfw_lab.bench import shapes
from kschedfw_lab.bench.distinct import evenly
from kschedfw_lab.bench.shapes import Manifest
from kschedfw_lab.bench.workload import Placement, Workload
from kschedfw_lab.openb import GPU, NAMESPACE, PODS_PER_NODE, read_openb_nodes, read_openb_pods

NAME = "openb"
NODES_FILE = "openb_node_list_all_node.csv"
PODS_FILE = "openb_pod_list_default.csv"
NODES, PODS = 1523, 8152
"""The numbers of nodes and pods in the trace's files."""


@attrs.frozen
class _Kind:
    """Nodes or pods of one kind: its `share` of all, CPUs in thousandths, memory in MiB, and GPUs."""

    share: int
    cpu: int
    memory: int
    gpus: int

    @property
    def amounts(self) -> dict[str, str]:
        gpus = {GPU: str(self.gpus)} if self.gpus else {}
        return {"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi", **gpus}


_NODES = (
    _Kind(549, 96_000, 393_216, 8),
    _Kind(404, 104_000, 524_288, 2),
    _Kind(187, 32_000, 262_144, 0),
    _Kind(123, 96_000, 524_288, 0),
    _Kind(134, 16_000, 122_880, 2),
    _Kind(57, 32_000, 131_072, 4),
    _Kind(39, 128_000, 786_432, 8),
    _Kind(30, 96_000, 786_432, 8),
)


def _quantiles(share: int, gpus: int, cpu: Sequence[int], memory: Sequence[int]) -> tuple[_Kind, ...]:
    """Return kinds of pods with `gpus` GPUs. Each kind has the same part of `share`."""
    return tuple(_Kind(share // len(cpu), *amounts, gpus) for amounts in zip(cpu, memory, strict=True))


_PODS = (
    *_quantiles(
        1_080,
        0,
        (
            8_000,
            8_000,
            8_000,
            11_400,
            12_500,
            12_500,
            12_500,
            12_500,
            12_500,
            12_500,
            15_400,
            15_400,
            15_400,
            16_500,
            16_500,
            32_000,
            32_000,
            32_000,
            32_000,
            32_000,
        ),
        (
            30_517,
            30_517,
            30_517,
            31_250,
            49_152,
            49_152,
            49_152,
            49_152,
            49_152,
            51_200,
            51_200,
            51_200,
            51_200,
            57_344,
            57_344,
            57_344,
            57_344,
            57_344,
            57_344,
            57_344,
        ),
    ),
    *_quantiles(
        6_980,
        1,
        (
            3_152,
            3_152,
            3_152,
            3_152,
            3_152,
            4_000,
            4_000,
            7_000,
            8_000,
            8_200,
            11_300,
            11_300,
            11_300,
            11_400,
            11_908,
            11_908,
            11_908,
            12_000,
            15_700,
            18_708,
        ),
        (
            5_600,
            5_600,
            5_600,
            5_600,
            5_600,
            15_258,
            16_384,
            24_576,
            30_517,
            30_517,
            32_768,
            47_104,
            47_104,
            47_104,
            48_128,
            49_152,
            49_152,
            49_152,
            64_512,
            77_824,
        ),
    ),
    *_quantiles(15, 2, (6_000, 16_200, 16_200, 17_400, 30_200), (43_008, 65_536, 66_560, 66_560, 160_768)),
    *_quantiles(
        15, 4, (32_000, 32_200, 32_200, 32_200, 60_200), (131_072, 132_096, 132_096, 132_096, 320_512)
    ),
    *_quantiles(
        45, 8, (64_200, 64_200, 88_000, 88_000, 120_000), (263_168, 263_168, 327_680, 327_680, 640_000)
    ),
)


def openb(trace: Path | None = None) -> Workload:
    """Return the workload with the trace in the folder, or with objects made like it.

    Raises:
        OpenbError: a file isn't one of the trace.
        OSError: a file can't be read.
    """
    node, pod = (_made_node, _made_pod) if trace is None else _read(trace)
    return Workload(
        NAME,
        "pods of a GPU cluster, which ask for CPU, memory and GPUs as those of the OpenB trace do",
        "none of scheduler_perf",
        nodes=NODES,
        initial_pods=0,
        pods=PODS,
        node=node,
        initial_pod=lambda index: _renamed(pod(index), f"initial-{index}"),
        measured_pod=lambda index: _renamed(pod(index), f"pod-{index}"),
        placement=Placement.SCHEDULED,
        others=(shapes.namespace(NAMESPACE),),
    )


def _of_share(kinds: Sequence[_Kind], index: int) -> _Kind:
    """Return the kind for an index. The kinds of any first indexes are in the proportion of their shares."""
    place = evenly(index, sum(kind.share for kind in kinds))
    for kind in kinds:
        place -= kind.share
        if place < 0:
            return kind
    raise AssertionError("unreachable: the place is below the sum")


def _made_node(index: int) -> Manifest:
    capacity = {**_of_share(_NODES, index).amounts, "pods": str(PODS_PER_NODE)}
    return shapes.node(f"node-{index}", capacity=capacity)


def _made_pod(index: int) -> Manifest:
    requests = _of_share(_PODS, index).amounts
    # Extended resources can't be overcommitted, so limits equal requests.
    limits = {name: amount for name, amount in requests.items() if name == GPU}
    return shapes.pod("pod", NAMESPACE, requests=requests, limits=limits, port=False)


# A case asks for its workload each time when it is used.
@lru_cache(maxsize=1)
def _read(trace: Path) -> tuple[Callable[[int], Manifest], Callable[[int], Manifest]]:
    nodes, pods = read_openb_nodes(trace / NODES_FILE), read_openb_pods(trace / PODS_FILE)
    return (
        lambda index: _renamed(_in_turns(nodes, index), f"node-{index}"),
        lambda index: _in_turns(pods, index),
    )


def _in_turns(objects: Sequence[Named], index: int) -> Manifest:
    return to_manifest(objects[index % len(objects)])


def _renamed(manifest: Manifest, name: str) -> Manifest:
    """Return the manifest under another name, in its labels, too.

    Remove the uid, since no two objects may share one.
    """
    metadata: dict[str, Any] = {**shapes.metadata_of(manifest), "name": name}
    metadata.pop("uid", None)
    if shapes.HOSTNAME in metadata.get("labels", {}):
        metadata["labels"] = {**metadata["labels"], shapes.HOSTNAME: name}
    return {**manifest, "metadata": metadata}
