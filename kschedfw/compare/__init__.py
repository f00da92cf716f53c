"""Compares configurations on the same cluster and pods: where the results differ, and why."""

from kschedfw.compare.candidate import Candidate, UnknownProfileError
from kschedfw.compare.comparison import Change, Comparison, Move, Moves, Run
from kschedfw.compare.condition import Condition, ConditionError, Failure, failures
from kschedfw.compare.metrics import Fragmentation, NodeAllocation, Workload, fragmentation, imbalance_within
from kschedfw.compare.running import compare
from kschedfw.compare.why import Against, Ground, Points

__all__ = [
    "Against",
    "Candidate",
    "Change",
    "Comparison",
    "Condition",
    "ConditionError",
    "Failure",
    "Fragmentation",
    "Ground",
    "Move",
    "Moves",
    "NodeAllocation",
    "Points",
    "Run",
    "UnknownProfileError",
    "Workload",
    "compare",
    "failures",
    "fragmentation",
    "imbalance_within",
]
