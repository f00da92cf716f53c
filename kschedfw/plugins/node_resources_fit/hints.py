"""Which events may make room for a pod that didn't fit."""

from __future__ import annotations

from kschedfw import Node, NodeInfo, Pod, QueueingHint, Resource
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins.node_resources_fit.shortage import fits


def after_pod_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """A pod was deleted, or requests less than before."""
    if not isinstance(old, Pod):
        return QueueingHint.SKIP
    if not isinstance(new, Pod):
        return queue_if(takes_a_place(old))
    if new.uid == pod.uid:
        return QueueingHint.QUEUE
    return queue_if(bool(new.node_name) and _frees_something(pod, old, new))


def after_node_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """A node came, or its allocatable resources changed: it must be able to hold the pod, and have grown for it."""
    if not isinstance(new, Node):
        return QueueingHint.SKIP
    demand, info = pod.requests.demand, NodeInfo.of(new)
    if not fits(demand, info):
        return QueueingHint.SKIP
    return queue_if(
        not isinstance(old, Node) or _has_grown(demand, NodeInfo.of(old).allocatable, info.allocatable)
    )


def _frees_something(pod: Pod, old: Pod, new: Pod) -> bool:
    wanted, before, after = (p.requests.amounts for p in (pod, old, new))
    return any(amount and before.get(name) > after.get(name) for name, amount in wanted.items())


def _has_grown(demand: Resource, before: Resource, after: Resource) -> bool:
    if after.allowed_pod_number > before.allowed_pod_number:
        return True
    return any(amount and after.get(name) > before.get(name) for name, amount in demand.items())
