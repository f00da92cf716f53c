"""Small sweeps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kschedfw_lab import Run, Sweep

from kschedfw import make_node, make_pod
from kschedfw.api import to_manifest

PATH = "profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type"

TINY = {"cluster": {"workload": "basic"}, "nodes": 4, "pods": 6, "initialPods": 0}
"""The factors of a cluster so small that a run takes milliseconds."""


def tiny(
    factors: Mapping[str, object] | None = None, *, design: Any = "grid", constraints: Sequence[str] = ()
) -> Sweep:
    return Sweep({**TINY, **(factors or {})}, design=design, constraints=constraints)


def runs(sweep: Sweep) -> tuple[Run, ...]:
    return sweep.plan().runs


def cells(sweep: Sweep, *names: str) -> list[tuple[object, ...]]:
    """The values of these factors in each run."""
    return [tuple(run.values[name] for name in names) for run in runs(sweep)]


def cluster_file(folder: Path) -> Path:
    """Two nodes, a bound pod, and two pending ones, of which one fits on no node."""
    objects = [
        make_node("n1").labels(type="small").capacity(cpu=2, memory="4Gi", pods=10).build(),
        make_node("n2").labels(type="large").capacity(cpu=4, memory="8Gi", pods=10).build(),
        make_pod("bound").requests(cpu=1, memory="1Gi").node("n1").build(),
        make_pod("fits").requests(cpu=3, memory="1Gi").build(),
        make_pod("too-big").requests(cpu=5, memory="1Gi").build(),
    ]
    path = folder / "cluster.json"
    path.write_text("\n".join(json.dumps(to_manifest(each)) for each in objects))
    return path
