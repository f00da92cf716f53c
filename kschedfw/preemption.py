"""Preemption: which pods a plugin may evict for another one, and on which node that does the least harm."""

from __future__ import annotations

from kschedfw.framework.preemption import (
    Candidate,
    DisruptionBudgets,
    PreemptionEvaluator,
    PreemptionPlan,
    PreemptionRules,
    Victims,
)

__all__ = [
    "Candidate",
    "DisruptionBudgets",
    "PreemptionEvaluator",
    "PreemptionPlan",
    "PreemptionRules",
    "Victims",
]
