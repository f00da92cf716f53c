"""Makes room for a pod by evicting less important ones: the machinery behind DefaultPreemption, for other plugins, too.

A plugin makes a `PreemptionEvaluator` with its own `PreemptionRules` and calls `preempt` from its post_filter hook.
`plan` says what would be done, and why, without doing it.
"""

from kschedfw.framework.extender import Victims
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.preemption.candidates import Candidate, ScoreFunction, best_candidates
from kschedfw.framework.preemption.evaluator import PREEMPTION_PLAN, PreemptionEvaluator, PreemptionPlan
from kschedfw.framework.preemption.rules import PreemptionRules
from kschedfw.framework.preemption.victims import select_victims

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
