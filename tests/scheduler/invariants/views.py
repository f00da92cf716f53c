"""What the properties compare nodes by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.resource import Resource
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot

if TYPE_CHECKING:
    from tests.scheduler.invariants.world import World


def full_snapshot(world: World) -> Snapshot:
    snapshot = Snapshot()
    world.scheduler.cache.update_snapshot(snapshot)
    return snapshot


def contents(info: NodeInfo) -> tuple[object, ...]:
    """What a node holds, in no particular order; resources that aren't used count as not there."""
    return (
        info.node,
        {pod_info.pod.uid: pod_info.pod for pod_info in info.pods},
        _amounts(info.requested),
        _amounts(info.non_zero_requested),
        _amounts(info.allocatable),
        sorted(pod_info.pod.uid for pod_info in info.pods_with_affinity),
        sorted(pod_info.pod.uid for pod_info in info.pods_with_required_anti_affinity),
        info.image_states,
    )


def _amounts(resource: Resource) -> dict[str, int]:
    amounts = attrs.asdict(resource)
    scalars: Mapping[str, int] = amounts.pop("scalar_resources")
    return {name: amount for name, amount in {**amounts, **scalars}.items() if amount}


def holds(info: NodeInfo, pod: Pod | None = None) -> bool:
    """Whether the node has enough of all that its pods request (of what `pod` requests, if given)."""
    requested, allocatable = _amounts(info.requested), _amounts(info.allocatable)
    if pod is not None:
        wanted = _amounts(pod.requests.amounts)
        requested = {name: amount for name, amount in requested.items() if name in wanted}
    fits = all(amount <= allocatable.get(name, 0) for name, amount in requested.items())
    return fits and len(info.pods) <= allocatable["allowed_pod_number"]


def differing(first: Mapping[str, Pod], second: Mapping[str, Pod]) -> set[str]:
    return {uid for uid in first.keys() | second.keys() if first.get(uid) != second.get(uid)}
