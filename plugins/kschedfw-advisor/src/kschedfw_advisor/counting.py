"""How many of a thing are needed: the smallest number that does as much as any."""

from __future__ import annotations

from collections.abc import Callable


def smallest_count(place: Callable[[int], int], most: int) -> int:
    """The smallest count from 1 to `most` that does as much as `most` does.

    `place` says how much a count does; it is taken to do no less with more, and asked O(log most) times. It was asked
    for the count that is returned, and for one less.
    """
    best = place(most)
    low, high, step = 0, most, 1  # low does less, high does as much
    while high - low > 1:
        probe = min(low + step, (low + high) // 2)
        if place(probe) >= best:
            high = probe
        else:
            low = probe
        step *= 2
    return high
