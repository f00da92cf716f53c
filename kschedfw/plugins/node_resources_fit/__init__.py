"""NodeResourcesFit: refuses nodes without enough resources, and scores the others by their usage."""

from kschedfw.plugins._resources import ResourceSpec
from kschedfw.plugins.node_resources_fit.args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)
from kschedfw.plugins.node_resources_fit.fit import NodeResourcesFit
from kschedfw.plugins.node_resources_fit.shortage import Shortage, shortages

__all__ = [
    "NodeResourcesFit",
    "NodeResourcesFitArgs",
    "RequestedToCapacityRatio",
    "ResourceSpec",
    "ScoringStrategy",
    "ScoringStrategyType",
    "Shortage",
    "UtilizationShapePoint",
    "shortages",
]
