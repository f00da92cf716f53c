"""A node's NUMA zones, and its kubelet's policy for assigning them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Self

import attrs

from kschedfw_topoaware.amounts import Amounts, amounts_of
from kschedfw_topoaware.node_resource_topology import NodeResourceTopology, Zone

MOST_NUMA_NODES: Final = 8
"""The default of how many zones the kubelet's topology manager supports."""

# The kubelet's masks of zones have 64 bits.
_HIGHEST_ID: Final = 63
# The limit of scheduler-plugins.
_LIMIT: Final = 1024


class Policy(StrEnum):
    """The policy of the kubelet's topology manager."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Scope(StrEnum):
    """The scope of the policy: each container, or the pod as a whole."""

    CONTAINER = "container"
    POD = "pod"


_POLICIES: Final = {
    f"{prefix}{scope_name}Level": (policy, scope)
    for prefix, policy in (
        ("SingleNUMANode", Policy.SINGLE_NUMA_NODE),
        ("BestEffort", Policy.BEST_EFFORT),
        ("Restricted", Policy.RESTRICTED),
    )
    for scope_name, scope in (("Pod", Scope.POD), ("Container", Scope.CONTAINER))
}
"""Policy and scope by the value of the older field `topologyPolicies`, which combines both."""


@attrs.frozen
class NumaNode:
    """A NUMA zone: its available amounts, and the distances to other zones by their ids."""

    id: int
    available: Mapping[str, int]
    costs: Mapping[int, int]


@attrs.frozen
class NodeTopology:
    """The NUMA zones of a node. `version` is the resource version of the NodeResourceTopology that reported them."""

    numa_nodes: tuple[NumaNode, ...]
    policy: Policy = Policy.NONE
    scope: Scope = Scope.CONTAINER
    most_numa_nodes: int = MOST_NUMA_NODES
    version: str = ""

    @classmethod
    def of(cls, reported: NodeResourceTopology) -> Self:
        """Convert a reported topology.

        Attributes override `topologyPolicies`. Other types of zones are skipped, and so are unknown names and values.
        Of zones with the same number, the last one counts, so that there are never more than 64.
        """
        policy, scope, most = Policy.NONE, Scope.CONTAINER, MOST_NUMA_NODES
        if reported.topology_policies:
            # Only the first one counts, as in scheduler-plugins.
            policy, scope = _POLICIES.get(reported.topology_policies[0], (policy, scope))
        # After `topologyPolicies`, which they override.
        for attribute in reported.attributes:
            match attribute.name, attribute.value:
                case "topologyManagerPolicy", value if value in list(Policy):
                    policy = Policy(value)
                case "topologyManagerScope", value if value in list(Scope):
                    scope = Scope(value)
                case "topologyManagerMaxNUMANodes", value if value.isdecimal() and int(value) > 1:
                    most = min(int(value), _LIMIT)
        return cls(
            tuple({node.id: node for node in _numa_nodes(reported.zones)}.values()),
            policy,
            scope,
            most,
            reported.metadata.resource_version,
        )

    def less(self, taken: Mapping[str, int]) -> tuple[NumaNode, ...]:
        """Return the zones with `taken` subtracted from each of them, but not below 0.

        The amounts are subtracted everywhere because only the kubelet knows which zone it has assigned.
        """
        if not taken:
            return self.numa_nodes
        return tuple(
            attrs.evolve(
                node,
                available={
                    name: max(amount - taken.get(name, 0), 0) if name in taken else amount
                    for name, amount in node.available.items()
                },
            )
            for node in self.numa_nodes
        )


def _numa_nodes(zones: Iterable[Zone]) -> Iterable[NumaNode]:
    for zone in zones:
        id_ = _numa_id(zone.name)
        if zone.type == "Node" and id_ is not None:
            costs = {other: cost.value for cost in zone.costs if (other := _numa_id(cost.name)) is not None}
            yield NumaNode(id_, _available(zone), costs)


def _available(zone: Zone) -> Amounts:
    return amounts_of({resource.name: resource.available for resource in zone.resources})


def _numa_id(zone_name: str) -> int | None:
    """Return the number in the zone's name, for example 7 for `node-7`; None if the name has another form."""
    prefix, _, number = zone_name.partition("-")
    if prefix != "node" or not number.isdecimal() or int(number) > _HIGHEST_ID:
        return None
    return int(number)
