"""Extended resources that classes of devices stand behind: nodes that have none of a device plugin's offer devices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs

from kschedfw import FrozenDict, IntArray, NodeInfo, NodeTable, Resource
from kschedfw.plugins._resources import amount_columns
from kschedfw.plugins.dynamic_resources.manager import DeviceManager
from kschedfw.plugins.dynamic_resources.usage import Usage


class DeviceBacked:
    """Those of a pod's resources; a node with an allocatable amount of one offers that, and no devices."""

    def __init__(self, resources: Sequence[str], manager: DeviceManager) -> None:
        self._resources = frozenset(resources)
        self._manager = manager

    def without(self, demand: Resource, info: NodeInfo) -> Resource:
        """The demand without what DynamicResources has to find on the node."""
        there = info.allocatable.scalar_resources
        kept = {
            name: amount
            for name, amount in demand.scalar_resources.items()
            if name not in self._resources or there.get(name)
        }
        return attrs.evolve(demand, scalar_resources=FrozenDict(kept))

    def without_any(self, demand: Resource, nodes: NodeTable, rows: IntArray) -> Resource | None:
        """The same for nodes that offer none of the resources themselves; None if one of the nodes does."""
        kept = {
            name: amount for name, amount in demand.scalar_resources.items() if name not in self._resources
        }
        backed = demand.scalar_resources.keys() & self._resources
        if any(amount_columns(nodes, rows, name)[0].any() for name in backed):
            return None
        return attrs.evolve(demand, scalar_resources=FrozenDict(kept))

    def concerns(self, resource: str) -> bool:
        return resource in self._resources

    def amounts(self, resource: str, info: NodeInfo) -> tuple[int, int]:
        """How many devices the node has for a resource, and how many are taken; 0 for a resource that isn't backed."""
        if resource not in self._resources:
            return 0, 0
        return self._manager.amounts(resource, info.node, self._usage)

    @cached_property
    def _usage(self) -> Usage:
        return self._manager.claims.usage()
