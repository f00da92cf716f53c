"""Victims of a group's preemption: single pods, or all pods of a group that is disrupted as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import DisruptionMode, PodGroup, group_key
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.preemption.candidates import start_time


@attrs.frozen(eq=False)
class VictimUnit:
    """Pods that are evicted together, in the order of the nodes that they are on.

    A unit of a group has the group's priority, else the pod's. What counts as its start is that of its first pod, as in
    kube-scheduler, not the earliest.
    """

    pods: tuple[Pod, ...]
    priority: int

    @property
    def is_grouped(self) -> bool:
        """Whether its first pod is a member of a group, of whatever disruption mode."""
        return bool(group_key(self.pods[0]))

    @property
    def started(self) -> float:
        """Seconds since the epoch; infinity for a pod that hasn't started."""
        return start_time(self.pods[0])

    @property
    def importance(self) -> tuple[float, ...]:
        """Sorts the most important unit first."""
        size = -len(self.pods) if self.is_grouped else -math.inf
        return (-self.priority, not self.is_grouped, size, self.started)


def victim_units(
    nodes: Iterable[NodeInfo], find_group: Callable[[str], PodGroup | None]
) -> Sequence[VictimUnit]:
    """All pods on these nodes as units, the most important first; equal ones by the name of their first pod."""
    units: list[VictimUnit] = []
    members: dict[str, list[Pod]] = {}
    groups: dict[str, PodGroup] = {}
    for info in nodes:
        for pod_info in info.pods:
            pod, key = pod_info.pod, group_key(pod_info.pod)
            group = find_group(key) if key else None
            if group is not None and group.spec.disruption_mode is DisruptionMode.POD_GROUP:
                groups[key] = group
                members.setdefault(key, []).append(pod)
            else:
                units.append(VictimUnit((pod,), pod.priority))
    units += [VictimUnit(tuple(pods), groups[key].priority) for key, pods in members.items()]
    return sorted(units, key=lambda unit: (unit.importance, unit.pods[0].key))
