"""The architectures that Omega's authors compare, as configurations of the same parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import StrEnum
from typing import Final, Generic, TypeVar

import attrs

NodeT = TypeVar("NodeT", bound=Hashable)


class NodeAccess(StrEnum):
    """Which nodes a scheduler may place pods on."""

    ALL = "all"
    """All nodes, at any time."""
    PARTITION = "partition"
    """Those of its partition, for ever."""
    OFFER = "offer"
    """Those that it is offered: all that nobody else is offered, locked for the others until it has committed."""


@attrs.frozen
class Architecture:
    """How one or several schedulers share a cluster.

    Without `per_kind` one scheduler takes all kinds of pods, one after another, and there is nobody to conflict with.
    With `one_path` it takes as long for each as for the kind that takes longest.
    """

    name: str
    per_kind: bool
    access: NodeAccess = NodeAccess.ALL
    one_path: bool = False


MONOLITHIC: Final = Architecture("monolithic", per_kind=False, one_path=True)
"""One scheduler, which takes as long for every kind of pods as for the slowest."""
MULTI_PATH: Final = Architecture("multi-path", per_kind=False)
"""One scheduler, which takes each kind's own time."""
PARTITIONED: Final = Architecture("partitioned", per_kind=True, access=NodeAccess.PARTITION)
"""A scheduler per kind, each on a part of the nodes."""
TWO_LEVEL: Final = Architecture("two-level", per_kind=True, access=NodeAccess.OFFER)
"""A scheduler per kind, each on the nodes that it is offered."""
SHARED_STATE: Final = Architecture("shared-state", per_kind=True)
"""A scheduler per kind, each on all nodes."""
ARCHITECTURES: Final = (MONOLITHIC, MULTI_PATH, PARTITIONED, TWO_LEVEL, SHARED_STATE)
"""All of them."""


class NodeShares(Generic[NodeT]):
    """Says which nodes each scheduler may use now. Partitions are of equal size, give or take a node."""

    def __init__(self, access: NodeAccess, nodes: Iterable[NodeT], schedulers: int) -> None:
        listed = tuple(nodes)
        self.all: frozenset[NodeT] = frozenset(listed)
        self._access = access
        self._partitions = [frozenset(listed[index::schedulers]) for index in range(schedulers)]
        self._offered: dict[int, frozenset[NodeT]] = {}

    def take(self, scheduler: int) -> frozenset[NodeT]:
        """The nodes for the next decision of the scheduler with this number; empty if it has to wait for an offer."""
        if self._access is NodeAccess.ALL:
            return self.all
        if self._access is NodeAccess.PARTITION:
            return self._partitions[scheduler]
        self.give_back(scheduler)
        offer = self.all.difference(*self._offered.values())
        self._offered[scheduler] = offer
        return offer

    def give_back(self, scheduler: int) -> None:
        """The decision is committed: what was offered for it is free for others."""
        self._offered.pop(scheduler, None)
