"""The answers of a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.diagnosis import Diagnosis
from kschedfw.framework.nodes.selection import NodeSelection


@attrs.frozen(eq=False, slots=False)
class Feasibility:
    """Where a pod fits, and why not elsewhere. It is true if the pod fits somewhere."""

    pod: Pod
    diagnosis: Diagnosis
    """Why the other nodes aren't feasible."""
    message: str
    """Why the pod fits nowhere, as kube-scheduler says it in the pod's condition; empty if it fits."""
    _feasible: NodeSelection | None

    def __bool__(self) -> bool:
        return self._feasible is not None and len(self._feasible.rows) > 0

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The feasible nodes, in the order in which they are visited."""
        return () if self._feasible is None else tuple(info.name for info in self._feasible)


@attrs.frozen(eq=False)
class Placed:
    """A pod that got a place.

    `pod` is the pod as it was, without the node. `victims` were preempted for it: bound ones are gone, and those that
    were placed in a transaction are pending again.
    """

    pod: Pod
    node_name: str
    victims: tuple[Pod, ...] = ()


@attrs.frozen(eq=False)
class Refused:
    """A pod that got no place: why, as kube-scheduler says it in the pod's condition, and in parts."""

    pod: Pod
    message: str
    diagnosis: Diagnosis


@attrs.frozen(eq=False)
class Schedule:
    """What became of pods, in the order in which they were scheduled. It is true if none was refused."""

    placed: tuple[Placed, ...]
    refused: tuple[Refused, ...]

    def __bool__(self) -> bool:
        return not self.refused


@attrs.frozen(eq=False)
class Replicas:
    """How many replicas of a pod got a place, and what stopped the next; None if nothing did."""

    placed: tuple[Placed, ...]
    refusal: Refused | None

    @property
    def count(self) -> int:
        return len(self.placed)

    @property
    def by_node(self) -> Mapping[str, int]:
        """How many went to each node, in the order of the first."""
        return Counter(each.node_name for each in self.placed)


@attrs.frozen(eq=False)
class Evictions:
    """What became of pods that were to be evicted. It is true if nothing blocks.

    `evicted` are pending again, as if just created. `blocked` stay because a disruption budget doesn't allow their
    eviction, with the reason. `staying` belong to their nodes (pods of DaemonSets, mirror pods), or are being deleted.
    """

    evicted: tuple[Pod, ...]
    blocked: tuple[tuple[Pod, str], ...]
    staying: tuple[Pod, ...]

    def __bool__(self) -> bool:
        return not self.blocked
