"""kube-scheduler's figures for the same workloads, for orientation."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedfw_lab.bench.results import Measurement, Part
from kschedfw_lab.bench.stage import ADAPTIVE, ALL_NODES
from kschedfw_lab.bench.workloads import find_workload

SOURCE = "kube-scheduler v1.36, 2 cores, for orientation: another machine"
"""The measured parts: kube-scheduler's SchedulePod and assume, in one process and without an API server."""


SIDE_BY_SIDE_SOURCE = (
    "the same on a third machine with nobody else on it, in turns with kschedfw, over the same objects"
)


@attrs.frozen
class PodsPerSecond:
    """Pods per second with the adaptive percentage of nodes, and with all nodes; None if not measured.

    `side_by_side` is from another measurement (`SIDE_BY_SIDE_SOURCE`), with the adaptive percentage.
    """

    adaptive: float
    all_nodes: float | None
    side_by_side: float | None = None


KUBE_SCHEDULER: Mapping[str, PodsPerSecond] = {
    "basic": PodsPerSecond(985, 83),
    "node-affinity": PodsPerSecond(948, 126, 589),
    "pod-affinity": PodsPerSecond(294, 92, 122),
    "pod-anti-affinity": PodsPerSecond(286, 112, 166),
    "preferred-pod-affinity": PodsPerSecond(515, 82, 83),
    "preferred-pod-anti-affinity": PodsPerSecond(199, 103, 61),
    "topology-spreading": PodsPerSecond(490, 108, 197),
    "preferred-topology-spreading": PodsPerSecond(649, 71, 457),
    "mixed": PodsPerSecond(261, 47),
    "unschedulable": PodsPerSecond(1406, None),
}
RESIDENT_MIB = (145, 235)
"""kube-scheduler's lowest and highest resident memory."""


def kube_scheduler_pods_per_second(measurement: Measurement) -> float | None:
    """Return kube-scheduler's figure for this measurement; None if there is none for its part, size or percentage."""
    measured = _figures(measurement)
    if measured is None:
        return None
    return {ADAPTIVE: measured.adaptive, ALL_NODES: measured.all_nodes}.get(measurement.percentage)


def side_by_side_pods_per_second(measurement: Measurement) -> float | None:
    """Return kube-scheduler's figure from the side-by-side measurement, which has the adaptive percentage only."""
    measured = _figures(measurement)
    return None if measured is None or measurement.percentage != ADAPTIVE else measured.side_by_side


def _figures(measurement: Measurement) -> PodsPerSecond | None:
    measured = KUBE_SCHEDULER.get(measurement.workload)
    workload = find_workload(measurement.workload)
    same_size = (measurement.nodes, measurement.initial_pods) == (workload.nodes, workload.initial_pods)
    return measured if measurement.part is Part.ALGORITHM and same_size else None
