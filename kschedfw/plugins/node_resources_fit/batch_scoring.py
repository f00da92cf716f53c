"""The scoring strategies for many nodes at once; `scoring` says what each means, and these agree with it exactly.

Amounts must be small enough for int64 to hold the sum of two, times 100.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from kschedfw import IntArray
from kschedfw.framework.results import MAX_NODE_SCORE
from kschedfw.plugins.node_resources_fit.args import (
    MAX_UTILIZATION,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ScoringStrategyType,
)
from kschedfw.plugins.node_resources_fit.scoring import shape_table

ColumnUsage = tuple[IntArray, IntArray, int]
"""Of one resource: how much each node would have requested with the pod, its allocatable amount, the weight.

Where the allocatable amount is 0, the resource doesn't count.
"""


class BatchScorer(Protocol):
    def __call__(self, usages: Iterable[ColumnUsage], count: int, /) -> IntArray:
        """The scores of `count` nodes."""
        ...


def batch_scorer_of(strategy: ScoringStrategy) -> BatchScorer:
    match strategy.type:
        case ScoringStrategyType.LEAST_ALLOCATED:
            return least_allocated
        case ScoringStrategyType.MOST_ALLOCATED:
            return most_allocated
        case ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            return requested_to_capacity_ratio(
                strategy.requested_to_capacity_ratio or RequestedToCapacityRatio()
            )


def least_allocated(usages: Iterable[ColumnUsage], count: int) -> IntArray:
    score, weights = _zeros(count), _zeros(count)
    for requested, allocatable, weight in usages:
        free = np.maximum(allocatable - requested, 0)
        score += free * MAX_NODE_SCORE // np.maximum(allocatable, 1) * weight
        weights += np.where(allocatable > 0, weight, 0)
    return score // np.maximum(weights, 1)


def most_allocated(usages: Iterable[ColumnUsage], count: int) -> IntArray:
    score, weights = _zeros(count), _zeros(count)
    for requested, allocatable, weight in usages:
        used = np.minimum(requested, allocatable)
        score += used * MAX_NODE_SCORE // np.maximum(allocatable, 1) * weight
        weights += np.where(allocatable > 0, weight, 0)
    return score // np.maximum(weights, 1)


def requested_to_capacity_ratio(ratio: RequestedToCapacityRatio) -> BatchScorer:
    table = np.array(shape_table(ratio), dtype=np.int64)

    def score_by_shape(usages: Iterable[ColumnUsage], count: int) -> IntArray:
        score, weights = _zeros(count), _zeros(count)
        for requested, allocatable, weight in usages:
            utilization = np.minimum(requested, allocatable) * MAX_UTILIZATION // np.maximum(allocatable, 1)
            value = np.where(allocatable > 0, table[utilization], 0)
            score += value * weight
            weights += np.where(value > 0, weight, 0)
        return (2 * score + weights) // np.maximum(2 * weights, 1)

    return score_by_shape


def _zeros(count: int) -> IntArray:
    return np.zeros(count, dtype=np.int64)
