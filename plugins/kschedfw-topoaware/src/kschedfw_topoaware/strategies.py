"""Scores of what is wanted against what one zone has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kschedfw_topoaware.amounts import Amounts, whole

Strategy = Callable[[Amounts, Mapping[str, int], Mapping[str, int]], int]
"""From what is wanted, what is available and the resources' weights to a score up to 100; 0 where it doesn't fit."""


def least_allocated(wanted: Amounts, available: Mapping[str, int], weights: Mapping[str, int]) -> int:
    """The more is left, the better."""
    return _weighted(wanted, available, weights, lambda amount, of: (of - amount) * 100 // of)


def most_allocated(wanted: Amounts, available: Mapping[str, int], weights: Mapping[str, int]) -> int:
    """The less is left, the better."""
    return _weighted(wanted, available, weights, lambda amount, of: amount * 100 // of)


def balanced_allocation(wanted: Amounts, available: Mapping[str, int], weights: Mapping[str, int]) -> int:  # noqa: ARG001  # weights are of no use here
    """The more equal the shares of all resources, the better."""
    shares = []
    for name, amount in wanted.items():
        of = whole(available.get(name, 0))
        shares.append(whole(amount) / of if of else 1.0)
        if shares[-1] > 1:
            return 0
    return int((1 - _variance(shares)) * 100)


def _weighted(
    wanted: Amounts,
    available: Mapping[str, int],
    weights: Mapping[str, int],
    score: Callable[[int, int], int],
) -> int:
    """The mean over the resources; what doesn't fit scores 0."""
    total = sum(
        weights.get(name, 1) * score(whole(amount), whole(available[name]))
        for name, amount in wanted.items()
        if available.get(name) and amount <= available[name]
    )
    return total // (sum(weights.get(name, 1) for name in wanted) or 1)


def _variance(numbers: list[float]) -> float:
    """Of a sample, with the correction for rounding that the original's library makes."""
    count = len(numbers)
    if count < 2:
        return 0.0
    mean = sum(numbers) / count
    squares = compensation = 0.0
    for number in numbers:
        squares += (number - mean) * (number - mean)
        compensation += number - mean
    return (squares - compensation * compensation / count) / (count - 1)
