"""The compiled pass over the columns of a node table (extra `fast`), and the scores of CPU and memory of a node.

The scores are the numbers of the scalar forms for amounts up to `LARGEST_EXACT`. The loops over a chunk have
few arrays each, without branches and from index 0 on: only then does the compiler work on four nodes at a time,
in a third of the time. All numbers are float64, which holds every possible total exactly. The compiled code is
kept on disk, if there is a writable place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np

from kschedfw.framework.nodes.arrays import LARGEST_EXACT, Codes, FloatArray, IntArray, Mask
from kschedfw.framework.runtime.engine import numpy_pass
from kschedfw.framework.runtime.engine.passes import Columns, PassInput, SmallCodes

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

PREFERS_KEPT: Final = False
"""A chunk of nodes is scored in a few microseconds."""
_CHUNK: Final = 1024
"""The number of nodes that are scored at once. With sampling, at most this many more than wanted are scored."""
_SOURCES: Final = sha256(
    b"".join(Path(file).read_bytes() for file in (numpy_pass.__file__, __file__))
).hexdigest()
"""A digest of the files whose functions compiled functions call."""


def compiled(function: FunctionT) -> FunctionT:
    """Return the function in a form that is compiled when it is first called."""
    # Python's error model would test each divisor for 0, and such a branch keeps a loop from working on four
    # nodes at a time. The loops touch no Python object, so other threads may run.
    compiling = partial(numba.njit, error_model="numpy", nogil=True)
    # Numba knows what it keeps on disk by the function's name and by the file of this function alone. The functions
    # that it calls can stand in other files, so the name has their digest, too.
    function.__qualname__ += f"_{_SOURCES[:16]}"
    try:
        made = compiling(cache=True)(function)
    except RuntimeError:  # there is no place that can be written to
        made = compiling()(function)
    return cast("FunctionT", made)


# Compiled from the same lines that NumPy's form calls for a single node.
least_allocated = compiled(numpy_pass.least_allocated)
most_allocated = compiled(numpy_pass.most_allocated)
balance = compiled(numpy_pass.balance)
balanced_allocation = compiled(numpy_pass.balanced_allocation)


@compiled
def _add_least_allocated(
    weight: float,
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
    totals: FloatArray,
) -> None:
    for k in range(len(totals)):
        totals[k] += weight * least_allocated(
            allocatable[k], used[k], request, allocatable_2[k], used_2[k], request_2
        )


@compiled
def _add_most_allocated(
    weight: float,
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
    totals: FloatArray,
) -> None:
    for k in range(len(totals)):
        totals[k] += weight * most_allocated(
            allocatable[k], used[k], request, allocatable_2[k], used_2[k], request_2
        )


@compiled
def _add_balanced_allocation(
    weight: float,
    before: FloatArray,
    allocatable: FloatArray,
    used: FloatArray,
    request: float,
    allocatable_2: FloatArray,
    used_2: FloatArray,
    request_2: float,
    totals: FloatArray,
) -> None:
    for k in range(len(totals)):
        after = balance(allocatable[k], used[k] + request, allocatable_2[k], used_2[k] + request_2)
        totals[k] += weight * balanced_allocation(before[k], after)


@compiled
def _refuse_without_room(
    cpu: IntArray,
    memory: IntArray,
    storage: IntArray,
    pods: IntArray,
    wanted: tuple[int, int, int, int],
    totals: FloatArray,
) -> None:
    for k in range(len(totals)):
        # `&` looks at all four, where `and` would branch.
        has_room = (
            (cpu[k] >= wanted[0])
            & (memory[k] >= wanted[1])
            & (storage[k] >= wanted[2])
            & (pods[k] >= wanted[3])
        )
        totals[k] = totals[k] if has_room else -1.0


@compiled
def _refuse_without(free: IntArray, wanted: int, totals: FloatArray) -> None:
    for k in range(len(totals)):
        totals[k] = totals[k] if free[k] >= wanted else -1.0


@compiled
def passing(totals: FloatArray) -> int:
    """Return the number of feasible nodes."""
    count = 0
    for k in range(len(totals)):
        count += totals[k] >= 0
    return count


@compiled
def _position(totals: FloatArray, nth: int) -> int:
    """Return the position of the passing node with number `nth`, from 0."""
    for k in range(len(totals)):
        if totals[k] >= 0:
            if nth == 0:
                return k
            nth -= 1
    return len(totals)


@compiled
def _highest(totals: FloatArray) -> float:
    # Four maxima side by side, since each comparison waits for the one before it: a third of the time.
    first = second = third = fourth = -1.0
    end = len(totals) // 4 * 4
    for k in range(0, end, 4):
        first = max(first, totals[k])
        second = max(second, totals[k + 1])
        third = max(third, totals[k + 2])
        fourth = max(fourth, totals[k + 3])
    for k in range(end, len(totals)):
        first = max(first, totals[k])
    return max(first, second, third, fourth)


@compiled
def totals_of(
    scores: FloatArray,
    columns: Columns,
    asked: PassInput,
    start: int,
    most: int,
    totals: FloatArray,
) -> tuple[int, int]:
    """Return the number of feasible nodes, at most `most`, from row `start` on, and of nodes looked at.

    Writes the totals of the latter to `totals`, below 0 where a node isn't feasible. A node is feasible if it
    has the `wanted` CPU, memory, storage and pods free, of each of the `extended` resources (k, 2), given by its row in
    `free`, the amount beside it, and its entry in `scores` isn't below 0. Its total is that entry and the scores of
    resources, each times its weight: least allocated with the `scored` amounts, balanced allocation with
    `amounts`, most allocated with the `scored` ones. Amounts by node have a row for each resource, as in the table.
    """
    free, allocatable, requested, non_zero, balances = columns
    wanted, extended, scored, amounts, weights = asked
    count = len(scores)
    feasible, looked_at, row = 0, 0, start
    while looked_at < count:
        end = min(row + min(_CHUNK, count - looked_at), count)
        chunk = totals[row:end]
        # Nodes without room are scored, too, and refused afterwards: to pass them over would take a branch
        # for each.
        chunk[:] = scores[row:end]
        there, there_2 = allocatable[0, row:end], allocatable[1, row:end]
        if weights[0]:
            _add_least_allocated(
                float(weights[0]),
                there,
                non_zero[0, row:end],
                float(scored[0]),
                there_2,
                non_zero[1, row:end],
                float(scored[1]),
                chunk,
            )
        if weights[2]:
            _add_most_allocated(
                float(weights[2]),
                there,
                non_zero[0, row:end],
                float(scored[0]),
                there_2,
                non_zero[1, row:end],
                float(scored[1]),
                chunk,
            )
        if weights[1]:
            _add_balanced_allocation(
                float(weights[1]),
                balances[row:end],
                there,
                requested[0, row:end],
                float(amounts[0]),
                there_2,
                requested[1, row:end],
                float(amounts[1]),
                chunk,
            )
        _refuse_without_room(
            free[0, row:end], free[1, row:end], free[2, row:end], free[3, row:end], wanted, chunk
        )
        for k in range(len(extended)):
            _refuse_without(free[extended[k, 0], row:end], extended[k, 1], chunk)
        its = passing(chunk)
        # The surplus node that ends the search isn't counted, and neither are the nodes behind it.
        if feasible + its > most:
            return most, looked_at + _position(chunk, most - feasible)
        feasible += its
        looked_at += end - row
        row = end if end < count else 0
    return feasible, looked_at


@compiled
def total_at(row: int, scores: FloatArray, columns: Columns, asked: PassInput) -> float:
    """Return the total of this row, computed as by `totals_of`."""
    free, allocatable, requested, non_zero, balances = columns
    wanted, extended, scored, amounts, weights = asked
    for resource in range(4):
        if free[resource, row] < wanted[resource]:
            return -1.0
    for each in range(len(extended)):
        if free[extended[each, 0], row] < extended[each, 1]:
            return -1.0
    there, there_2 = allocatable[0, row], allocatable[1, row]
    # In another order than in `totals_of`: the numbers are whole and exact in float64, so the sum is the
    # same.
    total = scores[row] + float(weights[0]) * least_allocated(
        there, non_zero[0, row], float(scored[0]), there_2, non_zero[1, row], float(scored[1])
    )
    if weights[1]:
        cpu, memory = requested[0, row] + float(amounts[0]), requested[1, row] + float(amounts[1])
        after = balance(there, cpu, there_2, memory)
        total += float(weights[1]) * balanced_allocation(balances[row], after)
    if weights[2]:
        total += float(weights[2]) * most_allocated(
            there, non_zero[0, row], float(scored[0]), there_2, non_zero[1, row], float(scored[1])
        )
    return float(total)


@compiled
def refuse(scores: FloatArray, refused: SmallCodes, by: float, found: FloatArray) -> None:
    """Write the scores to `found`, and the score of a refusal (`by`) where `refused` isn't 0."""
    for k in range(len(found)):
        found[k] = by if refused[k] != 0 else scores[k]


@compiled
def refuse_domains(scores: FloatArray, codes: Codes, refused: Mask, by: float, found: FloatArray) -> None:
    """Write the scores to `found`, and the score of a refusal (`by`) where a node's domain is refused.

    The last entry of `refused` is for nodes without domain, whose code is -1.
    """
    last = len(refused) - 1
    for k in range(len(found)):
        code = codes[k]
        found[k] = by if refused[code if code >= 0 else last] else scores[k]


@compiled
def gather(codes: Codes, values: IntArray, adds: bool, found: FloatArray) -> None:
    """Write the values of the nodes' domains to `found`, or add them to it; the last value is that of code -1."""
    last = len(values) - 1
    for k in range(len(found)):
        code = codes[k]
        value = float(values[code if code >= 0 else last])
        found[k] = value + found[k] if adds else value


@compiled
def _lowest_and_highest(raw: FloatArray, totals: FloatArray) -> tuple[float, float]:
    """Return the bounds of the raw scores of feasible nodes; infinite without any."""
    # Four of each side by side, as in `_highest`.
    low = low_2 = low_3 = low_4 = np.inf
    high = high_2 = high_3 = high_4 = -np.inf
    end = len(totals) // 4 * 4
    for k in range(0, end, 4):
        low = min(low, raw[k] if totals[k] >= 0 else np.inf)
        low_2 = min(low_2, raw[k + 1] if totals[k + 1] >= 0 else np.inf)
        low_3 = min(low_3, raw[k + 2] if totals[k + 2] >= 0 else np.inf)
        low_4 = min(low_4, raw[k + 3] if totals[k + 3] >= 0 else np.inf)
        high = max(high, raw[k] if totals[k] >= 0 else -np.inf)
        high_2 = max(high_2, raw[k + 1] if totals[k + 1] >= 0 else -np.inf)
        high_3 = max(high_3, raw[k + 2] if totals[k + 2] >= 0 else -np.inf)
        high_4 = max(high_4, raw[k + 3] if totals[k + 3] >= 0 else -np.inf)
    for k in range(end, len(totals)):
        low = min(low, raw[k] if totals[k] >= 0 else np.inf)
        high = max(high, raw[k] if totals[k] >= 0 else -np.inf)
    return min(low, low_2, low_3, low_4), max(high, high_2, high_3, high_4)


@compiled
def _add_stretched(
    totals: FloatArray, raw: FloatArray, low: float, spread: float, weight: float, found: FloatArray
) -> None:
    for k in range(len(totals)):
        score = np.floor((raw[k] - low) / spread * 100.0)
        found[k] = totals[k] + (weight * score if totals[k] >= 0 else 0.0)


@compiled
def _add_reversed(
    totals: FloatArray, raw: FloatArray, bounds: float, high: float, weight: float, found: FloatArray
) -> None:
    for k in range(len(totals)):
        score = np.floor((bounds - raw[k]) * 100.0 / high)
        found[k] = totals[k] + (weight * score if totals[k] >= 0 else 0.0)


@compiled
def add_normalized(
    totals: FloatArray,
    start: int,
    looked_at: int,
    raw: FloatArray,
    is_stretched: bool,
    weight: float,
    found: FloatArray,
) -> bool:
    """Write the totals to `found`, with `weight` × the normalised score added where a node is feasible.

    Looks at the nodes from row `start` on, round the end. Scores are `Normalizing.STRETCHED`, or else `REVERSED`.
    Return False, with nothing of use written, where they are too large to be exact in float64.
    """
    count = len(totals)
    first, last = min(start + looked_at, count), max(start + looked_at - count, 0)
    low, high = _lowest_and_highest(raw[start:first], totals[start:first])
    low_2, high_2 = _lowest_and_highest(raw[:last], totals[:last])
    low, high = min(low, low_2), max(high, high_2)
    # 100 × a score must be exact, too. Without a feasible node the bounds are infinite, and refused here.
    if not (low >= -LARGEST_EXACT and high <= LARGEST_EXACT):
        return False
    for begin, end in ((start, first), (0, last)):
        before, its, after = totals[begin:end], raw[begin:end], found[begin:end]
        if is_stretched:
            # Equal scores all become 0, whatever they are divided by.
            _add_stretched(before, its, low, high - low if high > low else 1.0, weight, after)
        elif high:
            _add_reversed(before, its, high + low, high, weight, after)
        else:
            # Scores are 0 or more, so all are 0 here, and (1 − 0) × 100 / 1 is the 100 that REVERSED gives
            # them.
            _add_reversed(before, its, 1.0, 1.0, weight, after)
    return True


@compiled
def feasible_rows(totals: FloatArray, start: int, looked_at: int, feasible: int) -> IntArray:
    """Return the rows of the feasible nodes among those looked at from row `start` on, in visiting order.

    `feasible` is their number.
    """
    count = len(totals)
    first, last = min(start + looked_at, count), max(start + looked_at - count, 0)
    rows = np.empty(feasible + 1, np.int64)  # one more, as each row is written before it is known to count
    found = 0
    for begin, end in ((start, first), (0, last)):
        for k in range(begin, end):
            rows[found] = k
            found += totals[k] >= 0
    return rows[:feasible]


@compiled
def add_at(totals: FloatArray, rows: IntArray, scores: IntArray) -> None:
    """Add the scores of these rows, shape (k,), to the totals of all."""
    for k in range(len(rows)):
        totals[rows[k]] += scores[k]


@compiled
def best_of(totals: FloatArray, start: int, looked_at: int, best: IntArray) -> int:
    """Return the number of nodes with the highest total among those looked at from row `start` on, round the end.

    Writes their rows to `best`, in visiting order.
    """
    count = len(totals)
    first, last = min(start + looked_at, count), max(start + looked_at - count, 0)
    highest = max(_highest(totals[start:first]), _highest(totals[:last]))
    tied = 0
    for begin, end in ((start, first), (0, last)):
        for k in range(begin, end):
            # Without a branch: the processor can't predict which nodes are the best, and a wrong guess costs more
            # than a write.
            best[tied] = k
            tied += totals[k] == highest
    return tied
