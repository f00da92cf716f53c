"""The events that may make room for a pod that didn't fit."""

from __future__ import annotations

import attrs

from kschedfw import ActionType, ClusterEvent, EventResource, Node, NodeInfo, Pod, QueueingHint, Resource
from kschedfw.api import DeviceClass
from kschedfw.api.devices import IMPLICIT_RESOURCE_PREFIX
from kschedfw.plugins._device_backed import DeviceBacked
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins.dynamic_resources.manager import DeviceManager
from kschedfw.plugins.node_resources_fit.shortage import fits


@attrs.frozen
class FitHints:
    """The events that the plugin subscribes to, with its hints.

    `devices` tells which extended resources are backed by device classes: the filter leaves those to
    DynamicResources, so a node without them may do.
    """

    devices: DeviceManager

    def events(self) -> tuple[ClusterEvent, ...]:
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        classes = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEvent(EventResource.POD, pods, _after_pod_change),
            ClusterEvent(EventResource.NODE, nodes, self.after_node_change),
            ClusterEvent(EventResource.DEVICE_CLASS, classes, _after_class_change),
        )

    def after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when a node that can hold the pod was added, or has more of the pod's resources than before."""
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        demand, info = pod.requests.demand, NodeInfo.of(new)
        backed = DeviceBacked.of(pod, self.devices)
        needed = demand if backed is None else backed.without(demand, info)
        if not fits(needed, info):
            return QueueingHint.SKIP
        if not isinstance(old, Node) or needed != demand:
            # kube-scheduler takes any change of a node for more room if devices have to provide a resource there.
            return QueueingHint.QUEUE
        return queue_if(_has_grown(demand, NodeInfo.of(old).allocatable, info.allocatable))


def _after_pod_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a pod on a node is gone or requests less than before, or the pod itself requests less."""
    if not isinstance(old, Pod):
        return QueueingHint.SKIP
    if not isinstance(new, Pod):
        return queue_if(takes_a_place(old))
    if new.uid == pod.uid:
        return QueueingHint.QUEUE
    return queue_if(bool(new.node_name) and _frees_something(pod, old, new))


def _after_class_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Queue when a class begins to back an extended resource that the pod requests."""
    if not isinstance(new, DeviceClass):
        return QueueingHint.SKIP
    names = {new.spec.extended_resource_name}
    if not isinstance(old, DeviceClass):
        names.add(IMPLICIT_RESOURCE_PREFIX + new.name)
    elif old.spec.extended_resource_name == new.spec.extended_resource_name:
        return QueueingHint.SKIP
    return queue_if(not names.isdisjoint(pod.requests.amounts.scalar_resources))


def _frees_something(pod: Pod, old: Pod, new: Pod) -> bool:
    wanted, before, after = (p.requests.amounts for p in (pod, old, new))
    return any(amount and before.get(name) > after.get(name) for name, amount in wanted.items())


def _has_grown(demand: Resource, before: Resource, after: Resource) -> bool:
    if after.allowed_pod_number > before.allowed_pod_number:
        return True
    return any(amount and after.get(name) > before.get(name) for name, amount in demand.items())
