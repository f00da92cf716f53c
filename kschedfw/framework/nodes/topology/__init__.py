"""Counts of pods and of their affinity terms by topology domain, updated between cycles."""

from kschedfw.framework.nodes.topology.index import TopologyIndex
from kschedfw.framework.nodes.topology.pods import PodCounter, PodQuery
from kschedfw.framework.nodes.topology.terms import TermKind, TermTally

__all__ = ["PodCounter", "PodQuery", "TermKind", "TermTally", "TopologyIndex"]
