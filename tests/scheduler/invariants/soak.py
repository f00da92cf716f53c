"""Runs random worlds, one seed after the other, for as long as it is told: `python -m …soak SECONDS [FIRST_SEED]`.

With `groups` as a third argument (FIRST_SEED may be empty), these are the worlds with groups of pods, with
`groups-1.37` those under v1.37; with `late`, in turns those with and without groups whose events come late.
Prints progress and the most memory that was needed so far; ends with exit code 1 at the first failure, after printing
seed, step and property.
"""

from __future__ import annotations

import logging
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from kschedfw.framework.clock import SystemClock
from tests.scheduler.invariants.group_world import LaterGroupWorld, run_group_world
from tests.scheduler.invariants.late_worlds import LateGroupWorld, LateWorld, run_late_world
from tests.scheduler.invariants.world import run_world

STEPS = 1000
PROGRESS = 10.0  # seconds between two lines


def _run_late(seed: int, steps: int) -> object:
    return run_late_world(LateGroupWorld if seed // 2 % 2 else LateWorld, seed, steps)


_RUNS: Mapping[str, Callable[[int, int], object]] = {
    "": run_world,
    "groups": run_group_world,
    "groups-1.37": lambda seed, steps: run_group_world(seed, steps, LaterGroupWorld),
    "late": _run_late,
}


def main(arguments: Sequence[str]) -> int:
    """Run for arguments[0] seconds, from seed arguments[1] on if given, the worlds that arguments[2] names."""
    logging.disable(logging.CRITICAL)
    clock = SystemClock()
    seconds = float(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 and arguments[1] else int(clock.now())
    run = _RUNS[arguments[2] if len(arguments) > 2 else ""]
    began = reported = clock.monotonic()
    steps = 0
    for seed in count(first):
        now = clock.monotonic()
        if now - reported >= PROGRESS or now - began >= seconds:
            reported = now
            rate = steps / (now - began) if now > began else 0.0
            megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            done = f"seeds {first}–{seed - 1}, {steps} steps, {rate:.0f} steps/s"
            _say(f"{now - began:.0f} s: {done}, {megabytes} MiB at most")
        if now - began >= seconds:
            break
        try:
            run(seed, STEPS)
        except AssertionError as error:
            _say(f"FAILED: {error}")
            return 1
        steps += STEPS
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
