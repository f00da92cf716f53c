"""The check of the policy single-numa-node: one NUMA zone has everything that a container or pod requests."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from kschedfw import Status
from kschedfw_topoaware.amounts import Amounts, is_of_a_zone, may_be_of_the_host
from kschedfw_topoaware.demand import Demand
from kschedfw_topoaware.numa import NumaNode, Scope

_POD = Status.unschedulable("cannot align pod")
_INIT_CONTAINER = Status.unschedulable("cannot align init container")
_SIDECAR = Status.unschedulable("cannot align sidecar container")
_CONTAINER = Status.unschedulable("cannot align container")


def alignment(
    demand: Demand, scope: Scope, numa_nodes: Sequence[NumaNode], offered: Container[str]
) -> Status | None:
    """Return None if the node's zones can hold the pod, or else the refusal.

    `offered` are the names of all resources of the node, in zones or not.
    """
    left = {node.id: dict(node.available) for node in numa_nodes}
    if scope is Scope.POD:
        return None if _zone_for(demand.of_the_pod, demand, left, offered) is not None else _POD
    # Init containers run one after another, before all others, so that each finds all zones free.
    for each in demand.init_containers:
        if _zone_for(each.requests, demand, left, offered) is None:
            # As in scheduler-plugins, a sidecar takes nothing for good; only its message differs.
            return _SIDECAR if each.is_sidecar else _INIT_CONTAINER
    for wanted in demand.containers:
        zone = _zone_for(wanted, demand, left, offered)
        if zone is None:
            return _CONTAINER
        # Without a wish for a zone, `_zone_for` returns 0, which needn't exist.
        _take(wanted, demand, left.get(zone, {}))
    return None


def suits(name: str, wanted: int, available: int, *, guaranteed: bool) -> bool:
    """Return whether `available` suffices for `wanted` of the resource.

    The kubelet gives CPU and memory by zones only to Guaranteed pods. For other pods, they always suffice.
    """
    return available >= wanted or (not guaranteed and is_of_a_zone(name))


def _zone_for(
    wanted: Amounts, demand: Demand, left: Mapping[int, Mapping[str, int]], offered: Container[str]
) -> int | None:
    """Return the zone that the kubelet would choose: the first one that has everything. Return None if no zone has."""
    zones = None
    for name, amount in wanted.items():
        if amount == 0:
            continue
        # The node has none of it, so the kubelet would refuse the pod.
        if name not in offered:
            return None
        with_it = [zone for zone, available in left.items() if name in available]
        # Devices that belong to no zone aren't reported in one.
        if not with_it and may_be_of_the_host(name):
            continue
        fitting = {
            zone for zone in with_it if suits(name, amount, left[zone][name], guaranteed=demand.is_guaranteed)
        }
        zones = fitting if zones is None else zones & fitting
        if not zones:
            return None
    # The kubelet prefers the zone with the lowest number.
    return 0 if zones is None else min(zones)


def _take(wanted: Amounts, demand: Demand, available: dict[str, int]) -> None:
    for name, amount in wanted.items():
        if name in available and (demand.is_guaranteed or not is_of_a_zone(name)):
            available[name] -= amount
