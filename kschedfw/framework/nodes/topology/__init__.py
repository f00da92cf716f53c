"""Where pods are, and what they ask for, by domain: kept from one cycle to the next instead of counted anew."""

from kschedfw.framework.nodes.topology.index import TopologyIndex
from kschedfw.framework.nodes.topology.pods import PodCounter, PodQuery
from kschedfw.framework.nodes.topology.terms import TermKind, TermTally

__all__ = ["PodCounter", "PodQuery", "TermKind", "TermTally", "TopologyIndex"]
