"""A helper for tests that makes a topology in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kschedfw import ObjectMeta, Quantity
from kschedfw_topoaware.node_resource_topology import (
    Attribute,
    Cost,
    NodeResourceTopology,
    ResourceInfo,
    Zone,
)


def make_topology(
    node_name: str,
    *available: Mapping[str, str | int],
    policy: str = "single-numa-node",
    scope: str = "container",
    costs: Sequence[Sequence[int]] = (),
) -> NodeResourceTopology:
    """Make the topology of a node with zones `node-0`, `node-1` … that have these amounts available.

    For example `make_topology("a", {"cpu": 4, "memory": "8Gi"}, {"cpu": 2}, scope="pod")`. `costs` are the rows of the
    matrix of distances.
    """
    zones = tuple(
        Zone(
            f"node-{number}",
            "Node",
            tuple(ResourceInfo(name, Quantity.parse(amount)) for name, amount in amounts.items()),
            tuple(
                Cost(f"node-{other}", cost)
                for other, cost in enumerate(costs[number] if number < len(costs) else ())
            ),
        )
        for number, amounts in enumerate(available)
    )
    attributes = Attribute("topologyManagerPolicy", policy), Attribute("topologyManagerScope", scope)
    return NodeResourceTopology(ObjectMeta(name=node_name), zones, attributes=attributes)
