"""Compares configurations on the same cluster and pods: which outcomes differ, and why."""

from kschedfw.scheduler import Setup, UnknownProfileError
from kschedfw_lab.compare.comparison import ComparedRun, Comparison, FateChange, Move, Moves
from kschedfw_lab.compare.condition import Condition, ConditionError, Failure, failures, failures_of
from kschedfw_lab.compare.metric_values import Vocabulary
from kschedfw_lab.compare.metrics import (
    Fragmentation,
    NodeAllocation,
    RequestMix,
    Unit,
    fragmentation,
    imbalance_within,
)
from kschedfw_lab.compare.own_metrics import FinishedRun, OwnMetric
from kschedfw_lab.compare.running import compare
from kschedfw_lab.compare.upgrade import UpgradeReason, reasons
from kschedfw_lab.compare.why import Against, Ground, Points, against

__all__ = [
    "Against",
    "Setup",
    "FateChange",
    "Comparison",
    "Condition",
    "ConditionError",
    "Failure",
    "FinishedRun",
    "Fragmentation",
    "Ground",
    "Move",
    "Moves",
    "NodeAllocation",
    "OwnMetric",
    "Points",
    "UpgradeReason",
    "ComparedRun",
    "Unit",
    "UnknownProfileError",
    "Vocabulary",
    "RequestMix",
    "against",
    "compare",
    "failures",
    "failures_of",
    "fragmentation",
    "imbalance_within",
    "reasons",
]
