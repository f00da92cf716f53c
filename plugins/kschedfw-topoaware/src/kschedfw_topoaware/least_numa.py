"""The strategy LeastNUMANodes: prefers nodes where the pod needs few zones that are near to one another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedfw_topoaware.alignment import suits
from kschedfw_topoaware.amounts import Amounts
from kschedfw_topoaware.demand import Demand
from kschedfw_topoaware.numa import NodeTopology, NumaNode, Scope

_UNKNOWN_COST: Final = 255
"""The value for "unknown" in the firmware's table of distances."""

_MOST_COMBINATIONS: Final = 500
"""At least as many as a node with up to 11 zones has of any number of zones, and one with up to 32 of two."""


@attrs.frozen
class _Found:
    zones: Sequence[NumaNode]
    is_nearest: bool
    """True if no other combination of as many zones has a smaller distance."""


def least_numa_nodes(demand: Demand, topology: NodeTopology, numa_nodes: Sequence[NumaNode]) -> int:
    """Return the score: 100 if the pod needs nothing of a zone, 0 if all zones together don't suffice."""
    if topology.scope is Scope.POD:
        wishes: Sequence[Amounts] = [demand.of_the_pod]
    else:
        wishes = demand.all_containers
    most, nearest = 0, True
    for wanted in wishes:
        # No zone has any of these resources, so the container needs no zone.
        if not any(name in node.available for node in numa_nodes for name in wanted):
            continue
        found = _fewest(wanted, numa_nodes, guaranteed=demand.is_guaranteed)
        if found is None:
            return 0
        nearest = nearest and found.is_nearest
        most = max(most, len(found.zones))
        taken = dict(_taken(wanted, found.zones))
        numa_nodes = [taken.get(node.id, node) for node in numa_nodes]
    if most == 0:
        return 100
    # Never a division by 0: `NodeTopology.of` takes only numbers above 1.
    step = 100 // topology.most_numa_nodes
    return max(100 - most * step + (step // 2 if nearest else 0), 0)


def _fewest(wanted: Amounts, numa_nodes: Sequence[NumaNode], *, guaranteed: bool) -> _Found | None:
    """Return the smallest combination of zones that together have `wanted`; None if all zones together don't suffice.

    Of equally small combinations, return the one with the smallest distance, and of these the first.
    """
    able = [node for node in numa_nodes if all(name in node.available for name in wanted)]
    for count in range(1, len(able) + 1):
        fitting = [each for each in _combinations(able, count) if _fits(wanted, each, guaranteed=guaranteed)]
        if fitting:
            best = min(fitting, key=_distance)
            # Nearest of all combinations, not only of those that fit.
            return _Found(best, _distance(best) <= min(map(_distance, _combinations(numa_nodes, count))))
    return None


def _combinations(zones: Sequence[NumaNode], count: int) -> Iterable[Sequence[NumaNode]]:
    """Return all combinations of so many zones. If they are too many, return each zone with the nearest others."""
    # A topology may have 64 zones, whose combinations would take years.
    if math.comb(len(zones), count) <= _MOST_COMBINATIONS:
        return itertools.combinations(zones, count)
    return [_nearest([*zones[place:], *zones[:place]])[:count] for place in range(len(zones))]


def _nearest(zones: Sequence[NumaNode]) -> Sequence[NumaNode]:
    """Return the zones in the order of their distance from the first one, which stays the first."""
    first, *others = zones
    return [first, *sorted(others, key=lambda other: first.costs.get(other.id, _UNKNOWN_COST))]


def _fits(wanted: Amounts, zones: Sequence[NumaNode], *, guaranteed: bool) -> bool:
    return all(
        suits(name, amount, sum(zone.available[name] for zone in zones), guaranteed=guaranteed)
        for name, amount in wanted.items()
        if amount
    )


def _distance(zones: Sequence[NumaNode]) -> int:
    """Return the sum of the distances between all zones, each to itself included.

    Sums are only comparable between equal numbers of zones.
    """
    return sum(one.costs.get(other.id, _UNKNOWN_COST) for one in zones for other in zones)


def _taken(wanted: Amounts, zones: Iterable[NumaNode]) -> Iterable[tuple[int, NumaNode]]:
    """Yield the zones by id after `wanted` was taken, from the zone with the lowest id first."""
    missing: Mapping[str, int] = wanted
    for zone in sorted(zones, key=lambda zone: zone.id):
        given = {name: min(missing.get(name, 0), amount) for name, amount in zone.available.items()}
        missing = {name: amount - given.get(name, 0) for name, amount in missing.items()}
        left = {name: amount - given[name] for name, amount in zone.available.items()}
        yield zone.id, attrs.evolve(zone, available=left)
