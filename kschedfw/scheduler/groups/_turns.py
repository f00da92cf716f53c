"""The compiled search for the nodes of equal pods, one after the other (extra `fast`).

Each pod changes the amounts of one node, so a search costs a look at the totals, and one total that is computed anew.
Draws are those of a `random.Random`, whose generator (MT19937) is written out here: Python's costs more than the
rest of a search.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import FloatArray, IntArray
from kschedfw.framework.runtime.engine._pass import (
    balance,
    balanced_allocation,
    compiled,
    least_allocated,
    most_allocated,
)

Words = npt.NDArray[np.int64]
"""A generator's 624 words, and the position of the next one."""


@compiled
def _generate(words: Words) -> None:
    """Compute the next 624 words (`genrand_uint32` of the reference implementation)."""
    for k in range(624):
        # In place: from k = 227 on, the word 397 further on is one of the new ones, as in the reference
        # implementation.
        mixed = (words[k] & 0x80000000) | (words[(k + 1) % 624] & 0x7FFFFFFF)
        word = words[(k + 397) % 624] ^ (mixed >> 1)
        words[k] = word ^ 0x9908B0DF if mixed & 1 else word
    words[624] = 0


@compiled
def _word(words: Words) -> int:
    if words[624] >= 624:
        _generate(words)
    word = words[words[624]]
    words[624] += 1
    word ^= word >> 11
    # The masks have 32 bits, and so cut off what an int64 has beyond them.
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    return int(word ^ (word >> 18))


@compiled
def draw(words: Words) -> float:
    """Return what `Random.random` would, as its state is moved on."""
    high, low = _word(words) >> 5, _word(words) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0


@compiled
def pick(count: int, words: Words) -> int:
    """Pick one of so many as `kschedfw.scheduler.select.pick_of` does."""
    picked = 0
    while count > 1:
        place = (picked + 1) / (1.0 - draw(words))
        if place >= count:
            break
        picked = int(place)
    return picked


@compiled
def _total(
    k: int,
    scores: FloatArray,
    free: IntArray,
    floats: FloatArray,
    wanted: IntArray,
    scored: tuple[int, int],
    amounts: tuple[int, int],
    weights: tuple[int, int, int],
) -> float:
    """Return the total of a node for one more pod, computed as by `_pass.total_at`."""
    for resource in range(len(wanted)):
        if free[resource, k] < wanted[resource]:
            return -1.0
    total = scores[k] + float(weights[0]) * least_allocated(
        floats[0, k], floats[4, k], float(scored[0]), floats[1, k], floats[5, k], float(scored[1])
    )
    if weights[1]:
        before = balance(floats[0, k], floats[2, k], floats[1, k], floats[3, k])
        cpu, memory = floats[2, k] + float(amounts[0]), floats[3, k] + float(amounts[1])
        after = balance(floats[0, k], cpu, floats[1, k], memory)
        total += float(weights[1]) * balanced_allocation(before, after)
    if weights[2]:
        total += float(weights[2]) * most_allocated(
            floats[0, k], floats[4, k], float(scored[0]), floats[1, k], floats[5, k], float(scored[1])
        )
    return float(total)


@compiled
def place_in_turn(
    number: int,
    scores: FloatArray,
    free: IntArray,
    floats: FloatArray,
    wanted: IntArray,
    scored: tuple[int, int],
    amounts: tuple[int, int],
    weights: tuple[int, int, int],
    taken: IntArray,
    added: IntArray,
    start: int,
    all_nodes: int,
    moves: bool,
    most: int,
    ranks: IntArray,
    words: Words,
    found: IntArray,
) -> tuple[int, int]:
    """Find nodes for `number` equal pods, each of which sees those before it. Return how many got one, and the start.

    Nodes are those of a placement: `scores` (n,) as in a plan, `free` (r, n) with CPU, memory, storage, pods and
    whatever else the pods request, and `floats` (6, n) with the allocatable, requested, and non-zero requested CPU and
    memory. A node is feasible if it has the `wanted` amounts (r,) free. Both arrays are changed: a pod's `taken`
    amounts (r,) are no longer free, and its `added` ones (4,) go to the two sums of CPU and memory. A search begins at
    node `start % n` and ends before the node that would be one more than `most` that pass. Then the start `moves` on by
    the nodes looked at, modulo `all_nodes`. Of the best nodes the one with the lowest of `ranks` is taken, or a
    random one if they are empty.

    Writes a column for each pod that got a node to `found`, (3, number): the node, the number of feasible nodes,
    and of nodes looked at.
    """
    count = len(scores)
    totals = np.empty(count)
    for k in range(count):
        totals[k] = _total(k, scores, free, floats, wanted, scored, amounts, weights)
    tied = np.empty(count, np.int64)
    for placed in range(number):
        begin = start % count
        best, ties, feasible, looked_at = -1.0, 0, 0, 0
        while looked_at < count:
            k = begin + looked_at
            k = k if k < count else k - count
            total = totals[k]
            if total >= 0:
                # One more node than wanted passes: the search ends before it, as in `totals_of`.
                if feasible == most:
                    break
                feasible += 1
            looked_at += 1
            if total < 0:
                continue
            if total > best:
                best, ties = total, 0
            if total == best:
                tied[ties] = k
                ties += 1
        if moves:
            start = (start + looked_at) % all_nodes
        # The others are equal and find the same amounts, so they fit nowhere, either.
        if not ties:
            return placed, start
        if len(ranks):
            k = tied[0]
            for each in tied[1:ties]:
                k = each if ranks[each] < ranks[k] else k
        else:
            k = tied[pick(ties, words)]
        found[0, placed], found[1, placed], found[2, placed] = k, feasible, looked_at
        for resource in range(len(taken)):
            free[resource, k] -= taken[resource]
        for resource in range(4):
            floats[2 + resource, k] += added[resource]
        totals[k] = _total(k, scores, free, floats, wanted, scored, amounts, weights)
    return number, start
