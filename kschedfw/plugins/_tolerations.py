"""Which taints a pod tolerates, as the scheduler sees it."""

from __future__ import annotations

from collections.abc import Iterable

from kschedfw.api.node import Taint, TaintEffect
from kschedfw.api.pod import Toleration, TolerationOperator

# `Gt` and `Lt` (KEP-5471) wait behind the feature gate TaintTolerationComparisonOperators, which is off in v1.36;
# until it is on, such a toleration tolerates nothing.
_GATED = (TolerationOperator.GT, TolerationOperator.LT)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations matches the taint."""
    return any(
        toleration.operator not in _GATED and toleration.tolerates(taint) for toleration in tolerations
    )


def has_untolerated_taint(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Whether a taint forbids scheduling and no toleration matches it; PreferNoSchedule forbids nothing."""
    return any(
        taint.effect is not TaintEffect.PREFER_NO_SCHEDULE and not tolerates(tolerations, taint)
        for taint in taints
    )
