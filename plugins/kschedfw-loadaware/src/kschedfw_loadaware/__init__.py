"""TargetLoadPacking and LoadVariationRiskBalancing: score nodes by their measured load."""

from kschedfw_loadaware.args import MetricProvider, ProviderType
from kschedfw_loadaware.endpoint import Endpoint
from kschedfw_loadaware.http import LoadWatcherSource, MetricsServerSource, PrometheusSource
from kschedfw_loadaware.load_variation_risk_balancing import (
    LoadVariationRiskBalancing,
    LoadVariationRiskBalancingArgs,
)
from kschedfw_loadaware.report import Load, LoadReport, MetricsError, NodeLoad
from kschedfw_loadaware.sources import FileSource, MetricsSource, StaticSource
from kschedfw_loadaware.target_load_packing import TargetLoadPacking, TargetLoadPackingArgs

__all__ = [
    "Endpoint",
    "FileSource",
    "Load",
    "LoadReport",
    "LoadVariationRiskBalancing",
    "LoadVariationRiskBalancingArgs",
    "LoadWatcherSource",
    "MetricProvider",
    "MetricsError",
    "MetricsServerSource",
    "MetricsSource",
    "NodeLoad",
    "PrometheusSource",
    "ProviderType",
    "StaticSource",
    "TargetLoadPacking",
    "TargetLoadPackingArgs",
]
