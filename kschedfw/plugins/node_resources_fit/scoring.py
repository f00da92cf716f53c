"""The scoring strategies: from the usage of each resource with the pod to a score of 0–100.

All arithmetic is on integers and rounds as kube-scheduler's does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

from kschedfw import MAX_NODE_SCORE
from kschedfw.plugins.node_resources_fit.args import (
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)

Usage = tuple[int, int, int]
"""The usage of one resource: the requested amount with the pod, the allocatable amount (not 0), the weight."""


class Scorer(Protocol):
    def __call__(self, usages: Iterable[Usage], /) -> int: ...


def scorer_of(strategy: ScoringStrategy) -> Scorer:
    match strategy.type:
        case ScoringStrategyType.LEAST_ALLOCATED:
            return least_allocated
        case ScoringStrategyType.MOST_ALLOCATED:
            return most_allocated
        case ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            return requested_to_capacity_ratio(
                strategy.requested_to_capacity_ratio or RequestedToCapacityRatio()
            )


def least_allocated(usages: Iterable[Usage]) -> int:
    """Return the average of the free shares; a resource requested beyond capacity has no free share."""
    score = weights = 0
    for requested, allocatable, weight in usages:
        if requested <= allocatable:
            score += (allocatable - requested) * MAX_NODE_SCORE // allocatable * weight
        weights += weight
    return score // weights if weights else 0


def most_allocated(usages: Iterable[Usage]) -> int:
    """Return the average of the used shares.

    The capacity may be exceeded, since containers without requests count as if they had some.
    """
    score = weights = 0
    for requested, allocatable, weight in usages:
        score += min(requested, allocatable) * MAX_NODE_SCORE // allocatable * weight
        weights += weight
    return score // weights if weights else 0


def requested_to_capacity_ratio(ratio: RequestedToCapacityRatio) -> Scorer:
    """Return a scorer: the average of the shape's values at each resource's utilization, rounded to nearest.

    A resource with the value 0 doesn't count at all, not even its weight.
    """
    table = shape_table(ratio)

    def score_by_shape(usages: Iterable[Usage]) -> int:
        score = weights = 0
        for requested, allocatable, weight in usages:
            full = requested > allocatable
            utilization = MAX_UTILIZATION if full else requested * MAX_UTILIZATION // allocatable
            # Amounts that don't fit int64 wrap around, even below 0; the shape is constant outside of 0–100.
            value = table[min(max(utilization, 0), MAX_UTILIZATION)]
            # As in kube-scheduler: a resource with the score 0 doesn't lower the average.
            if value > 0:
                score += value * weight
                weights += weight
        return (2 * score + weights) // (2 * weights) if weights else 0

    return score_by_shape


def shape_table(ratio: RequestedToCapacityRatio) -> Sequence[int]:
    """Return the value of the shape at every whole percentage of utilization."""
    return [value_at(ratio.shape, utilization) for utilization in range(MAX_UTILIZATION + 1)]


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
