"""Strategies that score a request against the available amounts of one zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kschedfw_topoaware.amounts import Amounts, whole

Strategy = Callable[[Amounts, Mapping[str, int], Mapping[str, int]], int]
"""A function of the wanted amounts, the available amounts and the weights.

Returns a score from 0 to 100; 0 if the request doesn't fit.
"""


def least_allocated(wanted: Amounts, available: Mapping[str, int], weights: Mapping[str, int]) -> int:
    """Score higher the more is left."""
    return _weighted(wanted, available, weights, lambda amount, of: (of - amount) * 100 // of)


def most_allocated(wanted: Amounts, available: Mapping[str, int], weights: Mapping[str, int]) -> int:
    """Score higher the less is left."""
    return _weighted(wanted, available, weights, lambda amount, of: amount * 100 // of)


def balanced_allocation(wanted: Amounts, available: Mapping[str, int], weights: Mapping[str, int]) -> int:  # noqa: ARG001  # weights are of no use here
    """Score higher the closer the used shares of all resources are to one another."""
    shares = []
    for name, amount in wanted.items():
        of = whole(available.get(name, 0))
        # As in scheduler-plugins, a resource that the zone lacks counts as fully used.
        shares.append(whole(amount) / of if of else 1.0)
        if shares[-1] > 1:
            return 0
    # Truncated, as Go converts floats to integers.
    return int((1 - _variance(shares)) * 100)


def _weighted(
    wanted: Amounts,
    available: Mapping[str, int],
    weights: Mapping[str, int],
    score: Callable[[int, int], int],
) -> int:
    """Return the weighted mean of the scores by resource. A resource that doesn't fit scores 0."""
    total = sum(
        weights.get(name, 1) * score(whole(amount), whole(available[name]))
        for name, amount in wanted.items()
        if available.get(name) and amount <= available[name]
    )
    # A pod without requests has no weights.
    return total // (sum(weights.get(name, 1) for name in wanted) or 1)


def _variance(numbers: list[float]) -> float:
    """Return the sample variance, with the compensation for rounding of gonum, which scheduler-plugins uses."""
    count = len(numbers)
    if count < 2:
        return 0.0
    mean = sum(numbers) / count
    squares = compensation = 0.0
    for number in numbers:
        squares += (number - mean) * (number - mean)
        compensation += number - mean
    return (squares - compensation * compensation / count) / (count - 1)
