"""PodTopologySpread: spreads pods evenly over zones, nodes or other domains of a node label."""

from kschedfw.plugins.pod_topology_spread.args import PodTopologySpreadArgs
from kschedfw.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread", "PodTopologySpreadArgs"]
