"""NodeResourceTopologyMatch: pods go where one NUMA zone has all they need."""

from kschedfw_topoaware.args import (
    NodeResourceTopologyMatchArgs,
    ResourceWeight,
    ScoringStrategy,
    ScoringStrategyType,
)
from kschedfw_topoaware.node_resource_topology import (
    Attribute,
    Cost,
    NodeResourceTopology,
    ResourceInfo,
    Zone,
)
from kschedfw_topoaware.plugin import NodeResourceTopologyMatch

__all__ = [
    "Attribute",
    "Cost",
    "NodeResourceTopology",
    "NodeResourceTopologyMatch",
    "NodeResourceTopologyMatchArgs",
    "ResourceInfo",
    "ResourceWeight",
    "ScoringStrategy",
    "ScoringStrategyType",
    "Zone",
]
