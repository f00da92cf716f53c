"""The taints that a pod tolerates, as the scheduler sees it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from kschedfw import IntArray, NodeTable, Pod
from kschedfw.api import Taint, TaintEffect, Toleration

# `Gt` and `Lt` (KEP-5471) wait behind the feature gate TaintTolerationComparisonOperators, which is off by default;
# unless it is on, such a toleration tolerates nothing. The functions get its value as `compares`.


def tolerates(tolerations: Sequence[Toleration], taint: Taint, *, compares: bool = False) -> bool:
    """Tell whether any of the tolerations matches the taint."""
    return bool(tolerations) and any(
        (compares or not toleration.operator.compares_integers) and toleration.tolerates(taint)
        for toleration in tolerations
    )


def has_untolerated_taint(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, compares: bool = False
) -> bool:
    """Tell whether a taint forbids scheduling and no toleration matches it; PreferNoSchedule forbids nothing."""
    return any(
        taint.effect is not TaintEffect.PREFER_NO_SCHEDULE
        and not tolerates(tolerations, taint, compares=compares)
        for taint in taints
    )


def sorted_tolerations(pod: Pod) -> Hashable:
    """Return a signature of the pod's tolerations for batching, the same for any order."""
    return tuple(sorted(pod.spec.tolerations, key=lambda each: (each.key, each.value)))


def untolerated_mask(
    nodes: NodeTable, rows: IntArray, tolerations: Sequence[Toleration], *, compares: bool = False
) -> npt.NDArray[np.bool_]:
    """Return `has_untolerated_taint` for many nodes, shape (k,) for `rows` of shape (k,)."""
    column = nodes.taints
    answers = [has_untolerated_taint(taints, tolerations, compares=compares) for taints in column.values]
    return np.array(answers, dtype=np.bool_)[column.codes.take(rows)]
