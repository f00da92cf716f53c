"""Tries hostile input, one seed after the other, for as long as it is told: `python -m … SECONDS [FIRST_SEED]`.

Prints progress; ends with exit code 1 after the first failure, or where a seed takes too long or too much memory. The
input of one seed is tried again with `python -m tests.hostile.fuzz 0 SEED`.
"""

from __future__ import annotations

import faulthandler
import logging
import resource
import sys
import tempfile
import traceback
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from kschedfw.framework.clock import SystemClock
from tests.hostile.trial import try_seed

PROGRESS = 10.0  # seconds between two lines
LONGEST = 10.0  # seconds that a seed may take
MOST_MEMORY = 1 << 20  # KiB


def main(arguments: Sequence[str]) -> int:
    """Run for arguments[0] seconds, and at least one seed, from seed arguments[1] on if given."""
    logging.disable(logging.CRITICAL)
    clock = SystemClock()
    seconds = float(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else int(clock.now())
    began = reported = clock.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        for seed in count(first):
            before = clock.monotonic()
            _watch(6 * LONGEST)
            try:
                try_seed(seed, Path(directory))
            except Exception:
                _say(f"FAILED: seed {seed}\n{traceback.format_exc()[-4000:]}")
                return 1
            now = clock.monotonic()
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if now - before > LONGEST or memory > MOST_MEMORY:
                _say(f"FAILED: seed {seed} took {now - before:.1f} s; {memory >> 10} MiB so far")
                return 1
            if now - reported >= PROGRESS or now - began >= seconds:
                reported = now
                done = seed - first + 1
                _say(
                    f"{now - began:.0f} s: seeds {first}–{seed}, {done / (now - began):.0f}/s, {memory >> 10} MiB"
                )
            if now - began >= seconds:
                return 0
    return 0


def _watch(seconds: float) -> None:
    """End the process after this time, with a traceback: even where it hangs outside of Python's own code."""
    if sys.stderr is sys.__stderr__:
        faulthandler.dump_traceback_later(seconds, exit=True)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
