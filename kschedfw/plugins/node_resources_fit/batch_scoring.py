"""The scoring strategies for many nodes at once; they agree exactly with those in `scoring`.

Division is done in float64 where amounts are small enough, which takes a third of the time of int64's. It gives
the same integers: with amounts up to 2⁵³ ÷ 400, the quotient of two integers is never rounded up to the next
integer. Larger amounts, of which 100 times the sum of two must be an int64, are divided as integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kschedfw import MAX_NODE_SCORE, IntArray
from kschedfw.framework.nodes.arrays import LARGEST_EXACT
from kschedfw.plugins.node_resources_fit.args import (
    MAX_UTILIZATION,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ScoringStrategyType,
)
from kschedfw.plugins.node_resources_fit.scoring import shape_table

ColumnUsage = tuple[IntArray, IntArray, int]
"""A resource's requested amount on each node with the pod, its allocatable amount, and its weight.

A resource with an allocatable amount of 0 doesn't count on the node.
"""

_Floats = npt.NDArray[np.float64]


class BatchScorer(Protocol):
    def __call__(self, usages: Iterable[ColumnUsage], count: int, /) -> IntArray:
        """Return the scores of `count` nodes."""
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
    average = _Average(count)
    for requested, allocatable, weight in usages:
        free = allocatable - requested
        if count and free[free.argmin()] < 0:
            np.maximum(free, 0, out=free)
        average.add(free, allocatable, weight)
    return average.scores()


def most_allocated(usages: Iterable[ColumnUsage], count: int) -> IntArray:
    average = _Average(count)
    for requested, allocatable, weight in usages:
        average.add(np.minimum(requested, allocatable), allocatable, weight)
    return average.scores()


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


def requested_to_capacity_ratio(ratio: RequestedToCapacityRatio) -> BatchScorer:
    table = np.array(shape_table(ratio), dtype=np.int64)

    def score_by_shape(usages: Iterable[ColumnUsage], count: int) -> IntArray:
        score, weights = np.zeros((2, count), dtype=np.int64)
        for requested, allocatable, weight in usages:
            utilization = np.minimum(requested, allocatable) * MAX_UTILIZATION // np.maximum(allocatable, 1)
            value = np.where(allocatable > 0, table[utilization], 0)
            score += value * weight
            weights += np.where(value > 0, weight, 0)
        return (2 * score + weights) // np.maximum(2 * weights, 1)

    return score_by_shape
