"""NodeResourceTopologyMatch: places pods on nodes where a single NUMA zone has everything that they request."""

from kschedfw_topoaware.args import (
    Cache,
    ForeignPodsDetect,
    InformerMode,
    NodeResourceTopologyMatchArgs,
    PreemptionMode,
    ResourceWeight,
    ResyncMethod,
    ResyncScope,
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
    "Cache",
    "Cost",
    "ForeignPodsDetect",
    "InformerMode",
    "NodeResourceTopology",
    "NodeResourceTopologyMatch",
    "NodeResourceTopologyMatchArgs",
    "PreemptionMode",
    "ResourceInfo",
    "ResourceWeight",
    "ResyncMethod",
    "ResyncScope",
    "ScoringStrategy",
    "ScoringStrategyType",
    "Zone",
]
