"""A search for the smallest number of things that achieves as much as any larger number."""

from __future__ import annotations

from collections.abc import Callable


def smallest_count(
    place: Callable[[int], int], most: int, *, guess: int | None = None, all_of_them: int | None = None
) -> int:
    """Return the smallest count from 1 to `most` that achieves as much as `most`.

    `place` returns what a count achieves. It is assumed that more never achieves less. It is called O(log most) times,
    also for the returned count and for one less.

    If the `guess` is right and achieves `all_of_them`, which no count exceeds, `place` is called only twice. Without a
    guess, `most` is tried first.
    """
    # `low` does less than the best, `high` does as much.
    low, step = 0, 1
    high = most if guess is None else min(guess, most)
    best = place(high)
    if best == all_of_them:
        if high > 1 and place(high - 1) < best:
            return high
        high = max(1, high - 1)
    elif high < most:
        best, high = place(most), most
    while high - low > 1:
        # Begin with small counts: to try few costs less than to try many.
        probe = min(low + step, (low + high) // 2)
        if place(probe) >= best:
            high = probe
        else:
            low = probe
        step *= 2
    return high
