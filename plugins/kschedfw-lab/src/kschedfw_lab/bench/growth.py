"""Measures how time and memory grow with the size of the cluster, of groups, or of other parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial

import attrs

from kschedfw_lab.bench.footprint import Footprint
from kschedfw_lab.bench.results import Measurement, Part
from kschedfw_lab.bench.stage import Case
from kschedfw_lab.bench.workload import Placement


class Axis(StrEnum):
    """The quantity that grows."""

    NODES = "nodes"
    PODS = "pods"
    """Pods on nodes."""
    DEVICES = "devices"
    """Devices per node."""
    MEMBERS = "members"
    """Pods per group."""
    RACKS = "racks"
    """Racks that the nodes are divided into. A rack is a possible placement of a group."""

    @property
    def is_about_groups(self) -> bool:
        return self in (Axis.MEMBERS, Axis.RACKS)


SIZES = {
    Axis.NODES: (100, 1_000, 5_000, 15_000, 50_000, 100_000),
    Axis.PODS: (1_000, 10_000, 100_000),
    Axis.DEVICES: (1, 8, 32, 128),
    Axis.MEMBERS: (8, 64, 256, 1_000, 2_000),
    Axis.RACKS: (1, 10, 50, 200),
}
NODES = {Axis.NODES: 5_000, Axis.PODS: 5_000, Axis.DEVICES: 1_000, Axis.MEMBERS: 5_000, Axis.RACKS: 5_000}
"""The number of nodes if another quantity grows."""
INITIAL_PODS = {
    Axis.NODES: 1_000,
    Axis.PODS: 1_000,
    Axis.DEVICES: 100,
    Axis.MEMBERS: 1_667,
    Axis.RACKS: 1_667,
}
"""The number of initial pods if another quantity grows. They fit on nodes with one device each."""
PODS = 200
"""The number of pods that are scheduled at each size."""
GROUPS = 3
"""The number of groups that are scheduled at each size, on the axes about groups."""
LIMIT_BYTES = {Axis.NODES: 8 * 1024, Axis.PODS: 2 * 1024, Axis.DEVICES: 2 * 1024}
"""The highest accepted memory, in bytes per node, placed pod and device."""

Measure = Callable[[Case], Measurement]
MeasureFootprint = Callable[[Case], Footprint]


@attrs.frozen
class GrowthRow:
    """The measurements of one size.

    `bytes_each` is the memory held for a node, a placed pod or a device, beyond the objects from manifests. It is None
    on the axes about groups, for which no memory is held.
    """

    size: int
    measurement: Measurement
    bytes_each: float | None

    def to_json(self) -> dict[str, object]:
        return {"size": self.size, "bytesEach": self.bytes_each, "measurement": self.measurement.to_json()}


def cases(axis: Axis, case: Case, sizes: Sequence[int] | None = None) -> list[Case]:
    """Return the case in each of the sizes.

    Initial pods are bound to the nodes in turn, except for the last ones, which are scheduled to warm up. On the axes
    about groups, both parts are measured, the algorithm first, and one group more is scheduled to warm up.
    """
    if axis.is_about_groups:
        return [
            _of_groups(axis, attrs.evolve(case, part=part), size)
            for part in Part
            for size in sizes or SIZES[axis]
        ]
    sized = partial(attrs.evolve, case, own_placement=Placement.ROUND_ROBIN)
    if axis is Axis.NODES:
        return [sized(nodes=size) for size in sizes or SIZES[axis]]
    if axis is Axis.DEVICES:
        return [sized(own_devices=size) for size in sizes or SIZES[axis]]
    return [sized(initial_pods=size) for size in sizes or SIZES[axis]]


def _of_groups(axis: Axis, case: Case, size: int) -> Case:
    members = size if axis is Axis.MEMBERS else case.own_members or case.workload.members
    racks = size if axis is Axis.RACKS else case.own_racks
    return attrs.evolve(case, own_members=members, own_racks=racks, pods=GROUPS * members)


def measure_row(axis: Axis, case: Case, measure: Measure, footprint: MeasureFootprint) -> GrowthRow:
    """Measure time and memory of one of the `cases`, in two runs, since counting memory takes time."""
    measurement = measure(case)
    if axis.is_about_groups:
        return GrowthRow(case.members if axis is Axis.MEMBERS else case.racks, measurement, None)
    bound = attrs.evolve(case, own_placement=Placement.BOUND)
    # Subtract the framework's own memory from that of nodes, and the nodes' memory from that of pods or devices.
    if axis is Axis.NODES:
        size, more = case.nodes, case.nodes - 1
        without, grown = attrs.evolve(bound, nodes=1, initial_pods=0), attrs.evolve(bound, initial_pods=0)
    elif axis is Axis.DEVICES:
        size, more = case.devices, case.devices * case.nodes
        without, grown = attrs.evolve(bound, own_devices=0), bound
    else:
        size = more = case.initial_pods
        without, grown = attrs.evolve(bound, initial_pods=0), bound
    held = footprint(grown).bytes - footprint(without).bytes
    return GrowthRow(size, measurement, max(0, held) / max(1, more))
