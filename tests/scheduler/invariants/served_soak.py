"""Runs worlds behind an API server until they have taken so many steps: `python -m …served_soak STEPS [FIRST_SEED]`.

Prints progress; ends with exit code 1 at the first failure, after printing seed, step and what is wrong.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from itertools import count

from kschedfw.framework.clock import SystemClock
from tests.scheduler.invariants.served import ServedWorld

STEPS_PER_WORLD = 2000


def main(arguments: Sequence[str]) -> int:
    """Take arguments[0] steps, from seed arguments[1] on if given."""
    logging.disable(logging.CRITICAL)
    clock = SystemClock()
    wanted = int(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else int(clock.now())
    began = clock.monotonic()
    steps = quiet_points = bound = 0
    for seed in count(first):
        if steps >= wanted:
            break
        with ServedWorld(seed) as world:
            try:
                world.run(min(STEPS_PER_WORLD, wanted - steps))
            except AssertionError as error:
                _say(f"FAILED: {error}")
                return 1
            steps, quiet_points, bound = (
                steps + world.steps,
                quiet_points + world.quiet_points,
                bound + len(world.node_of),
            )
        seconds = clock.monotonic() - began
        done = f"{steps} steps, {quiet_points} quiet points, {bound} pods bound"
        _say(f"{seconds:.0f} s: seeds {first}–{seed}, {done}, {steps / seconds:.0f} steps/s")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
