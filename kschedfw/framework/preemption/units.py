"""Victims that are evicted together: pods, and groups of pods as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from kschedfw.api import DisruptionMode, Pod, PodGroup, group_key
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.preemption.candidates import start_time

FindGroup = Callable[[str], PodGroup | None]
"""A function that returns the group with a key, `namespace/name`; None if there is no such group."""


@frozen(eq=False)
class VictimUnit:
    """Pods that are evicted together, in the order of the nodes that they are on.

    A unit of a group has the group's priority. `started` is in seconds since the epoch, infinity for a unit that hasn't
    started.
    """

    pods: tuple[Pod, ...]
    priority: int
    started: float

    @property
    def is_grouped(self) -> bool:
        """True if its first pod is a member of a group, of whatever disruption mode."""
        return bool(group_key(self.pods[0]))

    @property
    def importance(self) -> tuple[float, ...]:
        """The sort key that puts the most important unit first."""
        # The size counts among groups only: all others have the same one.
        size = -len(self.pods) if self.is_grouped else -math.inf
        return (-self.priority, not self.is_grouped, size, self.started)


def is_evicted_whole(group: PodGroup | None) -> bool:
    """Return whether the members of a group are evicted together or not at all."""
    return group is not None and group.spec.disruption_mode is DisruptionMode.POD_GROUP


def victim_units(
    pods_by_node: Iterable[Iterable[PodInfo]], find_group: FindGroup, *, by_group: bool = False
) -> Sequence[VictimUnit]:
    """Return pods as units, in the order of nodes and pods, by the first pod of each.

    With `by_group` (v1.37), every member counts with its group's priority, and a unit with the earliest start of its
    pods. Up to v1.36 members that are evicted one by one count with their own priority, and a unit with its first pod's
    start.
    """
    pods: dict[str, list[Pod]] = {}
    priorities: dict[str, int] = {}
    for infos in pods_by_node:
        for info in infos:
            pod, key = info.pod, group_key(info.pod)
            group = find_group(key) if key else None
            is_whole = is_evicted_whole(group)
            unit = key if is_whole else pod.uid
            pods.setdefault(unit, []).append(pod)
            priorities[unit] = (
                group.priority if group is not None and (is_whole or by_group) else pod.priority
            )
    start = _earliest_start if by_group else _first_start
    return [VictimUnit(tuple(those), priorities[unit], start(those)) for unit, those in pods.items()]


def by_importance(units: Iterable[VictimUnit]) -> Sequence[VictimUnit]:
    """Return the units, the most important first, and equal ones in their order.

    So are those that haven't started, since kube-scheduler notes the present for their start, pod by pod. Of units that
    started at the same time its order is random.
    """
    return sorted(units, key=lambda unit: unit.importance)


def _earliest_start(pods: Sequence[Pod]) -> float:
    return min(map(start_time, pods))


def _first_start(pods: Sequence[Pod]) -> float:
    return start_time(pods[0])
