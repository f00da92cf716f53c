"""Why a pod went to a node, or to none: one structured object per decision.

With an `ExplainingScheduler` as its algorithm, a scheduler makes an `Explanation` of every attempt.
"""

from kschedfw.explain.decision_record import gated
from kschedfw.explain.explanation import (
    Explanation,
    NodeExplanation,
    Result,
    Score,
    UnknownNodeError,
    Verdict,
)
from kschedfw.explain.file import ExplanationFileError, ExplanationWriter, read_explanations
from kschedfw.explain.groups import GroupPreemptionStep, GroupStage, GroupStep, MemberStep, PlacementStep
from kschedfw.explain.recording import Explaining, ExplainingScheduler, explain_pod
from kschedfw.explain.steps import (
    Beyond,
    FilterStep,
    PreemptionCandidate,
    PreemptionStep,
    PreFilterStep,
    Refusals,
    ScoreStep,
    Victim,
)
from kschedfw.framework.diagnosis import Evidence, GivesEvidence

__all__ = [
    "Beyond",
    "Evidence",
    "Explaining",
    "ExplainingScheduler",
    "Explanation",
    "ExplanationFileError",
    "ExplanationWriter",
    "FilterStep",
    "GivesEvidence",
    "GroupPreemptionStep",
    "GroupStage",
    "GroupStep",
    "MemberStep",
    "NodeExplanation",
    "PlacementStep",
    "PreFilterStep",
    "PreemptionCandidate",
    "PreemptionStep",
    "Refusals",
    "Result",
    "Score",
    "ScoreStep",
    "UnknownNodeError",
    "Verdict",
    "Victim",
    "explain_pod",
    "gated",
    "read_explanations",
]
