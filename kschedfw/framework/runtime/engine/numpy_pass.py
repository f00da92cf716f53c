"""The pass over the columns of a node table with NumPy: the functions of `_pass`, which documents them, for arrays.

It serves where Numba is missing or not loaded yet. Both forms compute the same numbers in float64, which holds them
exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kschedfw.framework.nodes.arrays import LARGEST_EXACT, Codes, FloatArray, IntArray, Mask
from kschedfw.framework.runtime.engine.passes import (
    ANY_AMOUNT,
    Columns,
    CpuAndMemory,
    PassInput,
    SmallCodes,
    Weights,
)

PREFERS_KEPT: Final = True
_CHUNK: Final = 4096
"""The number of nodes that are scored at once: they stay in the processor's cache, and a sampled search ends early."""


def totals_of(
    scores: FloatArray,
    columns: Columns,
    asked: PassInput,
    start: int,
    most: int,
    totals: FloatArray,
) -> tuple[int, int]:
    free, allocatable, requested, non_zero, balances = columns
    wanted, extended, scored, amounts, weights = asked
    count = len(scores)
    feasible, looked_at, row = 0, 0, start
    while looked_at < count:
        end = min(row + min(_CHUNK, count - looked_at), count)
        part = np.s_[row:end]
        chunk = totals[part]
        has_room = scores[part] >= 0
        for resource, amount in (*enumerate(wanted), *extended.tolist()):
            if amount != ANY_AMOUNT:
                has_room &= free[resource, part] >= amount
        # Nobody reads the scores of refused nodes, but to leave them out would copy every column.
        np.add(
            scores[part],
            _scores_of_resources(
                allocatable[:, part],
                requested[:, part],
                non_zero[:, part],
                balances[part],
                scored,
                amounts,
                weights,
            ),
            out=chunk,
        )
        chunk[~has_room] = -1.0
        its = int(np.count_nonzero(has_room))
        # The surplus node that ends the search isn't counted, and neither are the nodes behind it.
        if feasible + its > most:
            return most, looked_at + int(np.flatnonzero(has_room)[most - feasible])
        feasible += its
        looked_at += end - row
        row = end if end < count else 0
    return feasible, looked_at


def total_at(row: int, scores: FloatArray, columns: Columns, asked: PassInput) -> float:
    free, allocatable, requested, non_zero, balances = columns
    wanted, extended, scored, amounts, weights = asked
    for resource, amount in (*enumerate(wanted), *extended.tolist()):
        if free[resource, row] < amount:
            return -1.0
    # Python's floats: for one node they take a fraction of the time of arrays.
    there, there_2 = allocatable[:, row].tolist()
    least, balanced, most = weights
    total = float(scores[row])
    if least or most:
        used, used_2 = non_zero[:, row].tolist()
        if least:
            total += least * least_allocated(there, used, scored[0], there_2, used_2, scored[1])
        if most:
            total += most * most_allocated(there, used, scored[0], there_2, used_2, scored[1])
    if balanced:
        used, used_2 = requested[:, row].tolist()
        after = balance(there, used + amounts[0], there_2, used_2 + amounts[1])
        total += balanced * balanced_allocation(float(balances[row]), after)
    return total


# The scores of CPU and memory of one node. The compiled form is made from these functions, too, so they use what Numba
# compiles well: no branches, and NumPy's `floor`.


def least_allocated(
    allocatable: float, used: float, request: float, allocatable_2: float, used_2: float, request_2: float
) -> float:
    """Score the free shares of two resources of one node. A resource that the node hasn't got doesn't count."""
    there, there_2 = allocatable > 0, allocatable_2 > 0
    share = np.floor(max(allocatable - used - request, 0.0) * 100.0 / allocatable) if there else 0.0
    share_2 = (
        np.floor(max(allocatable_2 - used_2 - request_2, 0.0) * 100.0 / allocatable_2) if there_2 else 0.0
    )
    return float(np.floor((share + share_2) / (2.0 if there & there_2 else 1.0)))


def most_allocated(
    allocatable: float, used: float, request: float, allocatable_2: float, used_2: float, request_2: float
) -> float:
    """Score the used shares of two resources. A resource that the node hasn't got doesn't count."""
    there, there_2 = allocatable > 0, allocatable_2 > 0
    share = np.floor(min(used + request, allocatable) * 100.0 / allocatable) if there else 0.0
    share_2 = np.floor(min(used_2 + request_2, allocatable_2) * 100.0 / allocatable_2) if there_2 else 0.0
    return float(np.floor((share + share_2) / (2.0 if there & there_2 else 1.0)))


def balance(allocatable: float, used: float, allocatable_2: float, used_2: float) -> float:
    """Return how evenly two resources are used, from 0 to 100. A node with only one of them is in balance."""
    # Of two fractions the standard deviation is half their difference, which kube-scheduler computes in this
    # way.
    both = 0.5 if (allocatable > 0) & (allocatable_2 > 0) else 0.0
    there = allocatable if allocatable > 0 else 1.0
    there_2 = allocatable_2 if allocatable_2 > 0 else 1.0
    difference = min(used / there, 1.0) - min(used_2 / there_2, 1.0)
    return float(np.floor((1 - abs(difference) * both) * 100))


def balanced_allocation(before: float, after: float) -> float:
    """Score what a pod changes in the `balance` of a node."""
    return float(50 + np.floor((50 + (after - before)) * 0.5))


def _scores_of_resources(
    allocatable: FloatArray,
    requested: FloatArray,
    non_zero: FloatArray,
    balances: FloatArray,
    scored: CpuAndMemory,
    amounts: CpuAndMemory,
    weights: Weights,
) -> FloatArray:
    """Return the sum of the weighted scores of CPU and memory, shape (k,), from columns of shape (2, k).

    `balances` has shape (k,).
    """
    least, balanced, most = weights
    total: FloatArray = np.zeros(allocatable.shape[1])
    there = allocatable > 0
    # Nearly always every node has both resources, which spares half of the operations.
    missing = None if there.all() else ~there
    shares = allocatable
    if missing is not None:
        # A resource that the node hasn't got scores 0, whatever its amounts are divided by.
        shares = allocatable.copy()
        shares[missing] = 1.0
    if least or most:
        after = non_zero + np.array(scored, dtype=np.float64)[:, np.newaxis]
        if least:
            free = allocatable - after
            np.maximum(free, 0.0, out=free)
            total += least * _mean(free, shares, missing)
        if most:
            total += most * _mean(np.minimum(after, allocatable, out=after), shares, missing)
    if balanced:
        added = requested + np.array(amounts, dtype=np.float64)[:, np.newaxis]
        added /= shares
        gain = _balance(added, missing)
        gain -= balances
        gain += 50.0
        gain *= 0.5
        np.floor(gain, out=gain)
        gain += 50.0
        if balanced != 1:
            gain *= balanced
        total += gain
    return total


def _mean(amounts: FloatArray, shares: FloatArray, missing: Mask | None) -> FloatArray:
    """Return the mean share in percent over the resources that a node has, rounded down twice as in kube-scheduler.

    Overwrites the amounts.
    """
    amounts *= 100.0
    amounts /= shares
    np.floor(amounts, out=amounts)
    if missing is None:
        mean: FloatArray = amounts[0] + amounts[1]
        mean *= 0.5
    else:
        amounts[missing] = 0.0
        mean = amounts.sum(axis=0)
        mean /= np.where(missing.any(axis=0), 1.0, 2.0)
    np.floor(mean, out=mean)
    return mean


def _balance(fractions: FloatArray, missing: Mask | None) -> FloatArray:
    """Return how evenly two resources are used, from 0 to 100; a node with one of them is in balance.

    Of two fractions the standard deviation is half their difference. Overwrites the fractions.
    """
    np.minimum(fractions, 1.0, out=fractions)
    found: FloatArray = fractions[0] - fractions[1]
    np.abs(found, out=found)
    found *= -0.5
    if missing is not None:
        found[missing.any(axis=0)] = 0.0
    found += 1.0
    found *= 100.0
    np.floor(found, out=found)
    return found


def refuse(scores: FloatArray, refused: SmallCodes, by: float, found: FloatArray) -> None:
    np.copyto(found, scores)
    found[refused != 0] = by


def refuse_domains(scores: FloatArray, codes: Codes, refused: Mask, by: float, found: FloatArray) -> None:
    np.copyto(found, scores)
    found[refused[codes]] = by  # as an index, the code -1 of nodes without domain means the last entry, too


def gather(codes: Codes, values: IntArray, adds: bool, found: FloatArray) -> None:
    if adds:
        found += values[codes]
    else:
        found[:] = values[codes]


def add_normalized(
    totals: FloatArray,
    start: int,
    looked_at: int,
    raw: FloatArray,
    is_stretched: bool,
    weight: float,
    found: FloatArray,
) -> bool:
    parts = list(_looked_at(len(totals), start, looked_at))
    low, high = np.inf, -np.inf
    for part in parts:
        feasible = totals[part] >= 0
        its = raw[part] if feasible.all() else raw[part][feasible]
        low, high = float(its.min(initial=low)), float(its.max(initial=high))
    # 100 × a score must be exact, too. Without a feasible node the bounds are infinite, and refused here.
    if not (low >= -LARGEST_EXACT and high <= LARGEST_EXACT):
        return False
    for part in parts:
        before, scores = totals[part], raw[part].copy()
        if is_stretched:
            # Equal scores all become 0, whatever they are divided by.
            scores -= low
            scores /= high - low if high > low else 1.0
            scores *= 100.0
        else:
            # Where all scores are 0, REVERSED gives 100.
            bounds, divisor = (high + low, high) if high else (1.0, 1.0)
            np.subtract(bounds, scores, out=scores)
            scores *= 100.0
            scores /= divisor
        np.floor(scores, out=scores)
        scores *= weight
        refused = before < 0
        if refused.any():
            scores[refused] = 0.0
        np.add(before, scores, out=found[part])
    return True


def feasible_rows(totals: FloatArray, start: int, looked_at: int, feasible: int) -> IntArray:  # noqa: ARG001  # as `_pass`
    return _in_order(totals >= 0, start, looked_at)


def add_at(totals: FloatArray, rows: IntArray, scores: IntArray) -> None:
    totals[rows] += scores  # no row comes twice


def best_of(totals: FloatArray, start: int, looked_at: int, best: IntArray) -> int:
    highest = max(float(totals[part].max(initial=-1.0)) for part in _looked_at(len(totals), start, looked_at))
    rows = _in_order(totals == highest, start, looked_at)
    best[: len(rows)] = rows
    return len(rows)


def _in_order(chosen: Mask, start: int, looked_at: int) -> IntArray:
    """Return the chosen rows among those looked at, in visiting order."""
    rows: IntArray = np.concatenate(
        [np.flatnonzero(chosen[part]) + part.start for part in _looked_at(len(chosen), start, looked_at)]
    )
    return rows


def _looked_at(count: int, start: int, looked_at: int) -> Iterator[slice]:
    """Yield the slices of the rows that were looked at from row `start` on, and round the end."""
    end = start + looked_at
    yield slice(start, min(end, count))
    if end > count:
        yield slice(0, end - count)
