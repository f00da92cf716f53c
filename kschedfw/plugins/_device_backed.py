"""Extended resources backed by a DeviceClass: DRA devices provide them on nodes where no device plugin does.

Semantics: kube-scheduler v1.36 `DRAExtendedResource`, in NodeResourcesFit and NodeResourcesBalancedAllocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs

from kschedfw import (
    DeviceBackedResources,
    FrozenDict,
    IntArray,
    NodeInfo,
    NodeTable,
    Pod,
    Resource,
)
from kschedfw.framework.devices import DeviceAmounts
from kschedfw.plugins._resources import ScoredResource, Usage, WeighedResources, amount_columns


class DeviceBacked:
    """The device-backed resources that a pod requests.

    A node that has such a resource as an allocatable amount provides the amount instead of devices.
    """

    def __init__(self, resources: Sequence[str], devices: DeviceBackedResources) -> None:
        self._resources = frozenset(resources)
        self._devices = devices

    @classmethod
    def of(cls, pod: Pod, devices: DeviceBackedResources) -> DeviceBacked | None:
        """Return the device-backed resources of the pod at this time; None if there are none."""
        resources = devices.requested_by(pod)
        return cls(resources, devices) if resources else None

    def without(self, demand: Resource, info: NodeInfo) -> Resource:
        """Return the demand without the resources that DynamicResources has to provide on the node."""
        there = info.allocatable.scalar_resources
        kept = {
            name: amount
            for name, amount in demand.scalar_resources.items()
            if name not in self._resources or there.get(name)
        }
        return attrs.evolve(demand, scalar_resources=FrozenDict(kept))

    def without_any(self, demand: Resource, nodes: NodeTable, rows: IntArray) -> Resource | None:
        """Return the demand without all device-backed resources; None if a node has an allocatable amount of one."""
        kept = {
            name: amount for name, amount in demand.scalar_resources.items() if name not in self._resources
        }
        backed = demand.scalar_resources.keys() & self._resources
        if any(amount_columns(nodes, rows, name)[0].any() for name in backed):
            return None
        return attrs.evolve(demand, scalar_resources=FrozenDict(kept))

    def counts_for(self, plan: WeighedResources) -> bool:
        """Tell whether scores of the plan depend on devices: one of its resources is device-backed."""
        return any(resource.name in self._resources for resource, _ in plan)

    def on_node(self, resource: ScoredResource, info: NodeInfo) -> tuple[int, int]:
        """Return the total and the used amount of a scored resource on a node.

        Both count devices if a class backs the resource and the node has no allocatable amount of it.
        """
        allocatable, used = resource.on_node(info)
        if allocatable or resource.name not in self._resources:
            return allocatable, used
        return self._amounts(resource.name, info.node)

    @cached_property
    def _amounts(self) -> DeviceAmounts:
        # Read once for a pod, so that all nodes are compared by the same usage.
        return self._devices.amounts()


def usages_on(plan: WeighedResources, backed: DeviceBacked | None, info: NodeInfo) -> Sequence[Usage]:
    """Return the usage of each resource of the plan on one node; devices count where they back a resource."""
    return [
        Usage(
            *(resource.on_node(info) if backed is None else backed.on_node(resource, info)),
            request,
            resource.weight,
        )
        for resource, request in plan
    ]
