"""Why a pod went to a node, or to none: one structured object per decision.

With an `ExplainingScheduler` as its algorithm, a scheduler makes an `Explanation` of every attempt.
"""

from kschedfw.explain.as_json import SCHEMA_VERSION
from kschedfw.explain.causes import Cause, cause_of_group, causes_of, decided_on
from kschedfw.explain.codes import CAUSES, FINDINGS, GROUP_CAUSES, ReasonCode
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
from kschedfw.explain.group_sections import members_section
from kschedfw.explain.groups import GroupPreemptionStep, GroupStage, GroupStep, MemberStep, PlacementStep
from kschedfw.explain.recording import Explaining, ExplainingScheduler, explain_pod
from kschedfw.explain.section import Section
from kschedfw.explain.sections import headline, overview
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
from kschedfw.framework.diagnosis import Evidence, EvidenceValue, GivesEvidence, code_of_plugin

__all__ = [
    "CAUSES",
    "FINDINGS",
    "GROUP_CAUSES",
    "SCHEMA_VERSION",
    "Beyond",
    "Cause",
    "ReasonCode",
    "Evidence",
    "EvidenceValue",
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
    "Section",
    "UnknownNodeError",
    "Verdict",
    "Victim",
    "cause_of_group",
    "causes_of",
    "decided_on",
    "code_of_plugin",
    "explain_pod",
    "gated",
    "headline",
    "members_section",
    "overview",
    "read_explanations",
]
