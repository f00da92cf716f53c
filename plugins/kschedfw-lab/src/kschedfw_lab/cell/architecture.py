"""The architectures that Omega's authors compare, as configurations of the same parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import StrEnum
from typing import Final, Generic, TypeVar

import attrs

NodeT = TypeVar("NodeT", bound=Hashable)


class NodeAccess(StrEnum):
    """The nodes that a scheduler may place pods on."""

    ALL = "all"
    """All nodes, at any time."""
    PARTITION = "partition"
    """The nodes of its own fixed partition."""
    OFFER = "offer"
    """The nodes that it is offered: all that no other scheduler holds. They are locked until it has committed."""


@attrs.frozen
class Architecture:
    """An architecture: how one or several schedulers share a cluster.

    Without `per_kind`, one scheduler takes all kinds of pods, one after another, so that nothing can conflict. With
    `one_path`, its decisions about any kind take as long as those about the slowest kind.
    """

    name: str
    per_kind: bool
    access: NodeAccess = NodeAccess.ALL
    one_path: bool = False


MONOLITHIC: Final = Architecture("monolithic", per_kind=False, one_path=True)
"""One scheduler, whose decisions take as long as those about the slowest kind of pods."""
MULTI_PATH: Final = Architecture("multi-path", per_kind=False)
"""One scheduler, whose decisions take each kind's own time."""
PARTITIONED: Final = Architecture("partitioned", per_kind=True, access=NodeAccess.PARTITION)
"""One scheduler per kind, each on a part of the nodes."""
TWO_LEVEL: Final = Architecture("two-level", per_kind=True, access=NodeAccess.OFFER)
"""One scheduler per kind, each on the nodes that it is offered."""
SHARED_STATE: Final = Architecture("shared-state", per_kind=True)
"""One scheduler per kind, each on all nodes."""
ARCHITECTURES: Final = (MONOLITHIC, MULTI_PATH, PARTITIONED, TWO_LEVEL, SHARED_STATE)
"""All architectures."""


class NodeShares(Generic[NodeT]):
    """Assigns nodes to schedulers. The sizes of partitions differ by at most one node."""

    def __init__(self, access: NodeAccess, nodes: Iterable[NodeT], schedulers: int) -> None:
        listed = tuple(nodes)
        self.all: frozenset[NodeT] = frozenset(listed)
        self._access = access
        self._partitions = [frozenset(listed[index::schedulers]) for index in range(schedulers)]
        self._offered: dict[int, frozenset[NodeT]] = {}

    def take(self, scheduler: int) -> frozenset[NodeT]:
        """Return the nodes for the scheduler's next decision; empty if it has to wait for an offer."""
        if self._access is NodeAccess.ALL:
            return self.all
        if self._access is NodeAccess.PARTITION:
            return self._partitions[scheduler]
        # The nodes that the scheduler itself still holds are free for its next decision.
        self.give_back(scheduler)
        offer = self.all.difference(*self._offered.values())
        self._offered[scheduler] = offer
        return offer

    def give_back(self, scheduler: int) -> None:
        """Release the nodes that were offered to the scheduler, since its decision is committed."""
        self._offered.pop(scheduler, None)
