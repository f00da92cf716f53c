"""Extended resources that classes of devices stand behind: nodes that have none of a device plugin's offer devices.

Semantics: kube-scheduler v1.36 `DRAExtendedResource`, in NodeResourcesFit and NodeResourcesBalancedAllocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs

from kschedfw import FrozenDict, IntArray, NodeInfo, NodeTable, Pod, Resource
from kschedfw.plugins._resources import Plan, ScoredResource, amount_columns
from kschedfw.plugins.dynamic_resources.manager import DeviceManager
from kschedfw.plugins.dynamic_resources.usage import Usage


class DeviceBacked:
    """Those of a pod's resources; a node with an allocatable amount of one offers that, and no devices."""

    def __init__(self, resources: Sequence[str], manager: DeviceManager) -> None:
        self._resources = frozenset(resources)
        self._manager = manager

    @classmethod
    def of(cls, pod: Pod, manager: DeviceManager) -> DeviceBacked | None:
        """The resources of the pod that a class is behind at this time; None if there are none."""
        resources = manager.resources_of(pod)
        return cls(resources, manager) if resources else None

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

    def counts_for(self, plan: Plan) -> bool:
        """Whether one of the plan's resources is among them, so that scores depend on devices."""
        return any(resource.name in self._resources for resource, _ in plan)

    def on_node(self, resource: ScoredResource, info: NodeInfo) -> tuple[int, int]:
        """How much of a scored resource a node has, and how much of it is taken.

        These are devices if a class is behind the resource and the node doesn't offer it otherwise.
        """
        allocatable, used = resource.on_node(info)
        if allocatable or resource.name not in self._resources:
            return allocatable, used
        return self._manager.amounts(resource.name, info.node, self._usage)

    @cached_property
    def _usage(self) -> Usage:
        return self._manager.claims.usage()
