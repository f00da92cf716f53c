"""The state of devices and claims that all profiles of a scheduler share (kube-scheduler `SharedDRAManager`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from weakref import WeakValueDictionary

from kschedfw import ClusterClient, Node, Pod
from kschedfw.api import DeviceClass, ResourceSlice
from kschedfw.cel import STEPS_PER_SECOND, Budget, OutOfStepsError
from kschedfw.plugins.dynamic_resources.answers import AllocationAnswers
from kschedfw.plugins.dynamic_resources.claims import ResourceClaims
from kschedfw.plugins.dynamic_resources.extended import classes_by_resource
from kschedfw.plugins.dynamic_resources.inventory import Inventory, PublishedSlice, SelectorFailure
from kschedfw.plugins.dynamic_resources.requests import RequestBook
from kschedfw.plugins.dynamic_resources.usage import Usage

_STEPS_TO_COUNT: Final = 10 * STEPS_PER_SECOND
_STEPS_PER_DEVICE: Final = 100
"""Steps per device for counting the devices of classes. A common selector takes one step per device."""


class DeviceManager:
    """Classes, slices and claims of one cluster. Allocations in flight are shared by all profiles."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.claims = ResourceClaims(cluster)
        self._cluster = cluster
        self._slices: dict[str, PublishedSlice] = {}
        self._listed_slices: object = None
        self._inventory = Inventory(())
        self._counting = Budget(0)
        self._listed_classes: object = None
        self._classes: Mapping[str, DeviceClass] = {}
        self.requests = RequestBook(self.device_class)
        self.answers = AllocationAnswers(self._inventory, self.claims.book)

    @classmethod
    def of(cls, cluster: ClusterClient) -> DeviceManager:
        """Return the manager of this cluster, made on first use."""
        known = _MANAGERS.get(id(cluster))
        if known is None:
            known = _MANAGERS[id(cluster)] = cls(cluster)
        return known

    def device_class(self, name: str) -> DeviceClass | None:
        return self._cluster.get(DeviceClass, name)

    def classes(self) -> Mapping[str, DeviceClass]:
        """Return the class behind each extended resource."""
        listed = self._cluster.list(DeviceClass)
        if listed is not self._listed_classes:
            self._classes, self._listed_classes = classes_by_resource(listed), listed
        return self._classes

    def resources_of(self, pod: Pod) -> Sequence[str]:
        """Return the extended resources that the pod requests and that a class backs."""
        requested = pod.requests.amounts.scalar_resources
        if not requested:
            return ()
        classes = self.classes()
        return [name for name, amount in requested.items() if amount and name in classes]

    def inventory(self) -> Inventory:
        """Return all devices. Cached values of a slice are kept as long as the slice doesn't change."""
        listed = self._cluster.list(ResourceSlice)
        if listed is not self._listed_slices:
            slices: dict[str, PublishedSlice] = {}
            for each in listed:
                known = self._slices.get(each.name)
                slices[each.name] = (
                    known if known is not None and known.slice is each else PublishedSlice(each)
                )
            self._slices, self._listed_slices = slices, listed
            self._inventory = Inventory(tuple(slices.values()))
            self.answers = AllocationAnswers(self._inventory, self.claims.book)
            count = sum(len(each.devices) for each in slices.values())
            self._counting = Budget(_STEPS_TO_COUNT + count * _STEPS_PER_DEVICE)
        return self._inventory

    def amounts(self, resource: str, node: Node, usage: Usage) -> tuple[int, int]:
        """Return the number of devices on the node that back the extended resource, and of those in use.

        As in v1.36, devices of stale slices and incomplete pools are counted, too. If a selector of the class
        can't be evaluated, or all of them together take too long, both are 0.
        """
        device_class = self.classes().get(resource)
        if device_class is None:
            return 0, 0
        expressions = tuple(each.expression for each in device_class.spec.selectors)
        return _counted(self.inventory().slices_on(node), expressions, node, usage, self._counting)


def _counted(
    slices: Iterable[PublishedSlice], expressions: tuple[str, ...], node: Node, usage: Usage, budget: Budget
) -> tuple[int, int]:
    there = taken = 0
    for slice_ in slices:
        used = usage.of(slice_.pool)
        for position, device in enumerate(slice_.devices):
            try:
                if not device.is_reached_by(node) or not slice_.matches(position, expressions, budget):
                    continue
            except (SelectorFailure, OutOfStepsError):
                return 0, 0
            there += 1
            taken += device.device.name in used.taken or device.device.name in used.shares
    return there, taken


_MANAGERS: WeakValueDictionary[int, DeviceManager] = WeakValueDictionary()
"""Managers by the `id` of their cluster. A manager keeps its cluster alive, and plugins keep the manager."""
