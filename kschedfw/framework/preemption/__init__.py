"""Preemption: making room for a pod by evicting less important ones. For DefaultPreemption and other plugins.

A plugin makes a `PreemptionEvaluator` with its own `PreemptionRules` and calls `preempt` from its post_filter
hook. `plan` returns the decision and its reasons without carrying it out.
"""

from kschedfw.framework.extender import Victims
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import Candidate, ScoreFunction, best_candidates
from kschedfw.framework.preemption.evaluator import PREEMPTION_PLAN, PreemptionEvaluator, PreemptionPlan
from kschedfw.framework.preemption.rules import PreemptionRules, select_victims

__all__ = [
    "PREEMPTION_PLAN",
    "Candidate",
    "DisruptionBudgets",
    "PreemptionEvaluator",
    "PreemptionPlan",
    "PreemptionRules",
    "ScoreFunction",
    "Victims",
    "best_candidates",
    "select_victims",
]
