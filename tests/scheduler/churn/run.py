"""Streams of changes by seed, as a long run: `python -m tests.scheduler.churn.run DECISIONS [SEED] [without-fast]`.

Also `make churn`. Prints progress; ends with exit code 1 at the first decision that differs from a new scheduler's,
after printing how to repeat the run. With `without-fast` it runs as if Numba weren't installed.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count

from kschedfw import SystemClock

_PER_WORLD = 150
"""Decisions per world: mistakes show early, and mostly in the kinds of pods that a world happens to have."""
_PROGRESS = 20
"""Worlds between two lines."""


def main(arguments: Sequence[str]) -> int:
    logging.disable(logging.CRITICAL)
    if "without-fast" in arguments:
        sys.modules["numba"] = None  # type: ignore[assignment]  # so that its import fails
    # Not before: these import what looks for Numba.
    from tests.scheduler.churn.world import LARGE, SAMPLED, SMALL, Churn, DecisionsDifferError

    numbers = [int(each) for each in arguments if each.isdecimal()]
    wanted, first = numbers[0], (*numbers, 0)[1]
    # A decision in a large world costs three times as much.
    sizes = (SMALL, SMALL, LARGE, SMALL, SMALL, SMALL, SAMPLED, SMALL)
    total: Counter[str] = Counter()
    clock = SystemClock()
    began = clock.monotonic()
    for seed in count(first):
        try:
            left = wanted - total["decisions"]
            total += Churn(seed, sizes[seed % len(sizes)]).run(min(_PER_WORLD, left))
        except DecisionsDifferError as error:
            _say(f"FAILED: {error}")
            return 1
        done = total["decisions"] >= wanted
        if done or (seed - first) % _PROGRESS == _PROGRESS - 1:
            counts = ", ".join(f"{what} {number:,}" for what, number in total.most_common())
            _say(f"{clock.monotonic() - began:.0f} s: seeds {first}–{seed}: {counts}")
        if done:
            return 0
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
