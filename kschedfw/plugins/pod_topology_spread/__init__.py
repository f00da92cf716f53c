"""PodTopologySpread: spread pods evenly over zones, nodes or whatever a node label names."""

from kschedfw.plugins.pod_topology_spread.args import PodTopologySpreadArgs
from kschedfw.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread", "PodTopologySpreadArgs"]
