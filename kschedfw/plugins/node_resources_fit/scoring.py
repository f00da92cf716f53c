"""The scoring strategies: from the usage of each resource with the pod to a score of 0–100.

All arithmetic is on integers and rounds as kube-scheduler's does. The same formula scores one node, from ints, and many
nodes, from columns (`Usage`). A resource that a node hasn't got (an allocatable amount of 0) doesn't count there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from kschedfw import MAX_NODE_SCORE
from kschedfw.plugins._resources import Amounts, Usage
from kschedfw.plugins.node_resources_fit.args import (
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)

Scorer: TypeAlias = Callable[[Iterable[Usage]], Amounts]
"""Returns the score of one node, or of many; 0 where no resource counts."""


def scorer_of(strategy: ScoringStrategy) -> Scorer:
    """Return the formula of the strategy."""
    match strategy.type:
        case ScoringStrategyType.LEAST_ALLOCATED:
            return least_allocated
        case ScoringStrategyType.MOST_ALLOCATED:
            return most_allocated
        case ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            return _by_shape(strategy.requested_to_capacity_ratio or RequestedToCapacityRatio())


def least_allocated(usages: Iterable[Usage]) -> Amounts:
    """Return the average of the free shares; a resource requested beyond capacity has no free share."""
    score = weights = 0
    for allocatable, used, request, weight in usages:
        free = allocatable - used - request
        score = score + free * (free > 0) * MAX_NODE_SCORE // _divisor(allocatable) * weight
        weights = weights + weight * (allocatable != 0)
    return score // _divisor(weights)


def most_allocated(usages: Iterable[Usage]) -> Amounts:
    """Return the average of the used shares.

    The capacity may be exceeded, since containers without requests count as if they had some.
    """
    score = weights = 0
    for allocatable, used, request, weight in usages:
        score = (
            score + _within(used + request, allocatable) * MAX_NODE_SCORE // _divisor(allocatable) * weight
        )
        weights = weights + weight * (allocatable != 0)
    return score // _divisor(weights)


def _by_shape(ratio: RequestedToCapacityRatio) -> Scorer:
    """Return a formula: the average of the shape's values at each resource's utilization, rounded to nearest.

    A resource with the value 0 doesn't count at all, not even its weight.
    """
    values = np.array([value_at(ratio.shape, percent) for percent in range(MAX_UTILIZATION + 1)])

    def score_by_shape(usages: Iterable[Usage]) -> Amounts:
        score = weights = 0
        for allocatable, used, request, weight in usages:
            share = _within(used + request, allocatable) * MAX_UTILIZATION // _divisor(allocatable)
            # Amounts that don't fit int64 wrap around, even below 0; the shape is constant outside of 0–100.
            utilization = _within(share * (share > 0), MAX_UTILIZATION)
            value = values[np.asarray(utilization, dtype=np.int64)] * (allocatable != 0)
            # As in kube-scheduler: a resource with the score 0 doesn't lower the average.
            score = score + value * weight
            weights = weights + weight * (value > 0)
        # Rounded to nearest, as by Go's math.Round: no value is negative.
        return (2 * score + weights) // _divisor(2 * weights)

    return score_by_shape


def _within(amount: Amounts, most: Amounts) -> Amounts:
    """Return the amount, or what there is at most."""
    return amount - (amount - most) * (amount > most)


def _divisor(amount: Amounts) -> Amounts:
    """Return the amount, with 1 in place of 0: what is divided by it counts nothing there."""
    return amount + (amount == 0)


def value_at(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """Return the value (0–100) of the line through the points; falling segments round up, rising ones down."""
    scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    if utilization <= shape[0].utilization:
        return shape[0].score * scale
    for left, right in pairwise(shape):
        if utilization <= right.utilization:
            rise = (right.score - left.score) * scale * (utilization - left.utilization)
            run = right.utilization - left.utilization
            return left.score * scale + (rise // run if rise >= 0 else -(-rise // run))
    return shape[-1].score * scale
