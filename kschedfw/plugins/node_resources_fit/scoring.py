"""The scoring strategies: from the usage of each resource with the pod to a score of 0–100.

All arithmetic is on integers and rounds as kube-scheduler's does. Many nodes are scored at once with division in
float64 where amounts are small enough, which takes a third of the time of int64's. It gives the same integers: with
amounts up to 2⁵³ ÷ 400, the quotient of two integers is never rounded up to the next integer. Larger amounts, of which
100 times the sum of two must be an int64, are divided as integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kschedfw import MAX_NODE_SCORE, IntArray
from kschedfw.framework.nodes.arrays import LARGEST_EXACT
from kschedfw.plugins.node_resources_fit.args import (
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)

Usage: TypeAlias = tuple[int, int, int]
"""The usage of one resource: the requested amount with the pod, the allocatable amount (not 0), the weight."""

ColumnUsage: TypeAlias = tuple[IntArray, IntArray, int]
"""The usage of one resource on each node. An allocatable amount of 0 doesn't count on the node."""

Scorer: TypeAlias = Callable[[Iterable[Usage]], int]
"""Returns the score of a node."""
BatchScorer: TypeAlias = Callable[[Iterable[ColumnUsage], int], IntArray]
"""Returns the scores of so many nodes."""

_Floats = npt.NDArray[np.float64]


def scorers_of(strategy: ScoringStrategy) -> tuple[Scorer, BatchScorer]:
    """Return the strategy for one node, and for many at once. Both give the same scores."""
    match strategy.type:
        case ScoringStrategyType.LEAST_ALLOCATED:
            return least_allocated, _least_allocated_each
        case ScoringStrategyType.MOST_ALLOCATED:
            return most_allocated, _most_allocated_each
        case ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            ratio = strategy.requested_to_capacity_ratio or RequestedToCapacityRatio()
            return _requested_to_capacity_ratio(ratio), _requested_to_capacity_ratio_each(ratio)


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


def _requested_to_capacity_ratio(ratio: RequestedToCapacityRatio) -> Scorer:
    """Return a scorer: the average of the shape's values at each resource's utilization, rounded to nearest.

    A resource with the value 0 doesn't count at all, not even its weight.
    """
    table = _shape_table(ratio)

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
        # Rounded to nearest, as by Go's math.Round: no value is negative.
        return (2 * score + weights) // (2 * weights) if weights else 0

    return score_by_shape


def _shape_table(ratio: RequestedToCapacityRatio) -> Sequence[int]:
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


# Many nodes at once


class _Average:
    """The weighted average of shares (0–100 each) over the resources that a node has."""

    def __init__(self, count: int) -> None:
        self._total: _Floats = np.zeros(count)
        self._weights: int | _Floats = 0

    def add(self, amounts: IntArray, allocatable: IntArray, weight: int) -> None:
        """Add a resource, given these free or used amounts, from 0 to the allocatable amount."""
        if len(allocatable) and allocatable[allocatable.argmax()] > LARGEST_EXACT:
            self._weights = self._weights + np.where(allocatable > 0, float(weight), 0.0)
            self._total += amounts * MAX_NODE_SCORE // np.maximum(allocatable, 1) * weight
            return
        shares = amounts * float(MAX_NODE_SCORE)
        if len(allocatable) and allocatable[allocatable.argmin()] > 0:
            np.divide(shares, allocatable, out=shares)
            self._weights = self._weights + weight
        else:
            np.divide(shares, allocatable, out=shares, where=allocatable > 0)
            self._weights = self._weights + np.where(allocatable > 0, float(weight), 0.0)
        np.floor(shares, out=shares)
        if weight != 1:
            shares *= weight
        self._total += shares

    def scores(self) -> IntArray:
        """Return the scores, shape (k,), int64; 0 for a node without any of the resources."""
        self._total /= np.maximum(self._weights, 1)
        return self._total.astype(np.int64)


def _least_allocated_each(usages: Iterable[ColumnUsage], count: int) -> IntArray:
    average = _Average(count)
    for requested, allocatable, weight in usages:
        free = allocatable - requested
        if count and free[free.argmin()] < 0:
            np.maximum(free, 0, out=free)
        average.add(free, allocatable, weight)
    return average.scores()


def _most_allocated_each(usages: Iterable[ColumnUsage], count: int) -> IntArray:
    average = _Average(count)
    for requested, allocatable, weight in usages:
        average.add(np.minimum(requested, allocatable), allocatable, weight)
    return average.scores()


def _requested_to_capacity_ratio_each(ratio: RequestedToCapacityRatio) -> BatchScorer:
    table = np.array(_shape_table(ratio), dtype=np.int64)

    def score_by_shape(usages: Iterable[ColumnUsage], count: int) -> IntArray:
        score, weights = np.zeros((2, count), dtype=np.int64)
        for requested, allocatable, weight in usages:
            utilization = np.minimum(requested, allocatable) * MAX_UTILIZATION // np.maximum(allocatable, 1)
            value = np.where(allocatable > 0, table[utilization], 0)
            score += value * weight
            weights += np.where(value > 0, weight, 0)
        return (2 * score + weights) // np.maximum(2 * weights, 1)

    return score_by_shape
