"""kube-scheduler's figures for the same workloads, for orientation."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedfw.bench.results import Measurement, Part
from kschedfw.bench.stage import ADAPTIVE, ALL_NODES
from kschedfw.bench.workloads import find_workload

SOURCE = "kube-scheduler v1.36, 2 cores, for orientation: another machine"
"""How they were measured: kube-scheduler's own SchedulePod and assume in one process, without an API server."""


@attrs.frozen
class PodsPerSecond:
    """With the adaptive percentage of nodes, and with all nodes; None: not measured."""

    adaptive: float
    all_nodes: float | None


KUBE_SCHEDULER: Mapping[str, PodsPerSecond] = {
    "basic": PodsPerSecond(985, 83),
    "node-affinity": PodsPerSecond(948, 126),
    "pod-affinity": PodsPerSecond(294, 92),
    "pod-anti-affinity": PodsPerSecond(286, 112),
    "preferred-pod-affinity": PodsPerSecond(515, 82),
    "preferred-pod-anti-affinity": PodsPerSecond(199, 103),
    "topology-spreading": PodsPerSecond(490, 108),
    "preferred-topology-spreading": PodsPerSecond(649, 71),
    "mixed": PodsPerSecond(261, 47),
    "unschedulable": PodsPerSecond(1406, None),
}
RESIDENT_MIB = (145, 235)
"""The least and the most resident memory."""


def kube_scheduler_pods_per_second(measurement: Measurement) -> float | None:
    """The figure to compare the measurement with; None if there is none for this part, size or percentage."""
    measured = KUBE_SCHEDULER.get(measurement.workload)
    workload = find_workload(measurement.workload)
    same_size = (measurement.nodes, measurement.initial_pods) == (workload.nodes, workload.initial_pods)
    if measured is None or measurement.part is not Part.ALGORITHM or not same_size:
        return None
    return {ADAPTIVE: measured.adaptive, ALL_NODES: measured.all_nodes}.get(measurement.percentage)
