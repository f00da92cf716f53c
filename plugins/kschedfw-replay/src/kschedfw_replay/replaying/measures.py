"""Measures of what happened to pods: waits, utilisation, preemptions, evictions; of the recording and of a replay."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np

from kschedfw import Node, Pod
from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, Named, node_allocatable
from kschedfw_replay.replaying.room import Area, Room
from kschedfw_replay.shadow.decision import expected_node

_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_DISRUPTED: Final = "DisruptionTarget"
PREEMPTED: Final = "PreemptionByScheduler"
"""The reason of the condition DisruptionTarget of pods that a scheduler evicts for others."""


@attrs.frozen
class Waits:
    """Quantiles of the seconds from a pod's arrival to its binding, by nearest rank; 0 without pods."""

    pods: int = 0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    max: float = 0.0

    @classmethod
    def of(cls, *seconds: array[float]) -> Waits:
        """Return the quantiles of these waits."""
        # Of two million waits, a sorted list of floats would take 64 MB.
        ordered = np.sort(np.concatenate([np.asarray(each, dtype=float) for each in (array("d"), *seconds)]))
        count = len(ordered)
        if not count:
            return cls()
        # In integers, since 0.95 * 20 is a little more than 19.
        places = [(part * count + 99) // 100 - 1 for part in (50, 95, 99, 100)]
        return cls(count, *(round(float(ordered[place]), 6) for place in places))


@attrs.frozen
class Measures:
    """Measures of a recording's pods, in a replay or in their real course.

    Attributes:
        bound: how often a pod was bound, without those that were bound when they appeared.
        pending: pods that waited at the end. Their waits aren't among the quantiles.
        waits: from arrival to binding.
        waits_by_class: the same, by priority class; an empty name for pods without one.
        utilisation: requested divided by allocatable, as means over time, by resource.
        preemptions: how often a pod was nominated to a node that it had no room on.
        victims: pods that were evicted for others.
        evictions: pods that were evicted for other reasons: drains, taints, nodes that went.
        fragmentation: the share of what was free that a typical pod couldn't use, by resource.
        node_hours: how long nodes had a pod of a workload, all together.
        cost: what these hours cost; None unless all nodes have a price.
        cost_of_all: what all nodes cost, used or not.
    """

    bound: int
    pending: int
    waits: Waits
    waits_by_class: Mapping[str, Waits]
    utilisation: Mapping[str, float]
    preemptions: int
    victims: int
    evictions: int
    fragmentation: Mapping[str, float] = attrs.field(factory=dict)
    node_hours: float = 0.0
    cost: float | None = None
    cost_of_all: float | None = None

    def with_room(self, room: Room, ends: float) -> Measures:
        """Return these measures with fragmentation, node hours and costs of a `Room` until a time."""
        in_use, every = room.costs(ends) or (None, None)
        return attrs.evolve(
            self,
            fragmentation=dict(sorted(room.fragmentation(ends).items(), key=_order)),
            node_hours=room.node_hours(ends),
            cost=in_use,
            cost_of_all=every,
        )


class Account:
    """Adds up what happens to pods and nodes. Its size depends on the pods at a time, and on 8 bytes of each wait."""

    def __init__(self, begins: float) -> None:
        self._begins = begins
        self._arrivals: dict[str, float] = {}
        """The arrival times of waiting pods, by uid."""
        self._waits: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
        self._requested, self._allocatable = Area(), Area()
        self.bound = self.preemptions = self.victims = self.evictions = 0

    def take(self, at: float, old: Named | None, new: Named | None) -> None:
        """Count a change of an object; None stands for its absence."""
        if isinstance(old, Pod) or isinstance(new, Pod):
            assert old is None or isinstance(old, Pod)
            assert new is None or isinstance(new, Pod)
            self._pod(at, old, new)
        elif isinstance(old, Node) or isinstance(new, Node):
            since = at - self._begins
            before, after = (
                node_allocatable(node) if isinstance(node, Node) else None for node in (old, new)
            )
            if before != after:
                self._allocatable.change(since, () if before is None else before.items(), -1)
                self._allocatable.change(since, () if after is None else after.items(), 1)

    def measures(self, ends: float) -> Measures:
        """The measures of the time until `ends`."""
        seconds = ends - self._begins
        requested, allocatable = self._requested.until(seconds), self._allocatable.until(seconds)
        asked = [name for name, amount in requested.items() if amount > 0 and allocatable.get(name, 0) > 0]
        asked.sort(key=lambda name: _order((name, 0)))
        return Measures(
            bound=self.bound,
            pending=len(self._arrivals),
            waits=Waits.of(*self._waits.values()),
            waits_by_class={name: Waits.of(waits) for name, waits in sorted(self._waits.items())},
            utilisation={name: round(requested[name] / allocatable[name], 6) for name in asked},
            preemptions=self.preemptions,
            victims=self.victims,
            evictions=self.evictions,
        )

    def _pod(self, at: float, old: Pod | None, new: Pod | None) -> None:
        since = at - self._begins
        if new is not None and new.node_name:
            if old is not None and not old.node_name:
                self.bound += 1
                waited = at - self._arrivals.pop(old.uid, at)
                self._waits[new.spec.priority_class_name].append(waited)
        elif new is not None:
            if old is None:
                self._arrivals[new.uid] = at
            elif new.status.nominated_node_name not in ("", old.status.nominated_node_name):
                self.preemptions += not expected_node(old, new)
        elif old is not None:
            self._arrivals.pop(old.uid, None)
            reason = disruption(old)
            self.victims += reason == PREEMPTED
            self.evictions += reason not in ("", PREEMPTED)
        before, after = (
            pod.requests.amounts if pod is not None and pod.node_name else None for pod in (old, new)
        )
        if before is not after:
            self._requested.change(since, () if before is None else before.items(), -1)
            self._requested.change(since, () if after is None else after.items(), 1)


def _order(named: tuple[str, object]) -> tuple[int, str]:
    """Return the sort key of a resource: CPU, memory and storage come first."""
    name = named[0]
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST)), name


def disruption(pod: Pod) -> str:
    """Return the reason of the pod's condition DisruptionTarget; empty if it isn't being evicted."""
    for each in pod.status.conditions:
        if each.type == _DISRUPTED and each.status == "True":
            return each.reason
    return ""
