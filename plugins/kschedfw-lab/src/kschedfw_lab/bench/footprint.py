"""Measures the memory that the scheduler holds for nodes and pods, beyond the objects from manifests."""

from __future__ import annotations

from typing import Final

import attrs

from kschedfw import InMemoryCluster, Registry
from kschedfw_lab.bench.measure import fill, place
from kschedfw_lab.bench.memory import held_memory
from kschedfw_lab.bench.stage import AlgorithmStage, Case, Objects, in_cluster

_FEW_NODES: Final = 300
"""The number of warm-up nodes. Compiled code is used for this many nodes, but not for a few."""


@attrs.frozen
class Footprint:
    """The bytes held for `nodes` nodes with `pods` pods on them."""

    nodes: int
    pods: int
    bytes: int


def measure_footprint(case: Case, *, registry: Registry | None = None) -> Footprint:
    """Count the bytes that cache, snapshot and framework hold after one pod was scheduled.

    The cluster with all its objects exists before counting begins. The initial pods are bound in it.
    """
    objects = Objects.of(attrs.evolve(case, pods=1))
    cluster = InMemoryCluster(objects.cluster)
    placed = in_cluster(cluster, objects.placed)
    pod = in_cluster(cluster, objects.measured)[0]
    registry = Registry() if registry is None else registry
    _schedule_one(attrs.evolve(case, nodes=min(case.nodes, _FEW_NODES), initial_pods=0, pods=1), registry)
    with held_memory() as held:
        stage = AlgorithmStage.of(case, cluster, registry)
        fill(stage, cluster, placed)
        place(stage, pod)
    stage.framework.close()
    return Footprint(case.nodes, len(placed), held.bytes)


def _schedule_one(case: Case, registry: Registry) -> None:
    """Schedule a pod in a small cluster, so that the imported and compiled code isn't counted later."""
    objects = Objects.of(case)
    cluster = InMemoryCluster(objects.cluster)
    stage = AlgorithmStage.of(case, cluster, registry)
    fill(stage, cluster, in_cluster(cluster, objects.placed))
    place(stage, in_cluster(cluster, objects.measured)[0])
    stage.framework.close()
