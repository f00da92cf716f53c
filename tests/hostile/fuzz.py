"""Tries hostile input, one seed after the other, for as long as it is told: `python -m … SECONDS [FIRST_SEED]`.

Prints progress: how many clusters and configurations were tried, how many of them through a command, too, how many
answers of extenders and requests to them, and the longest trial and most memory so far. A seed fails where something
is wrong, or where it takes too long or too much memory; the exit code is 1 then. The input of one seed is tried again
with `python -m tests.hostile.fuzz 0 SEED`.
"""

from __future__ import annotations

import logging
import resource
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random

from kschedfw.framework.clock import SystemClock
from tests.hostile.extender_trial import try_answer, try_request
from tests.hostile.trial import say, try_seed, watch

EXTENDERS = 5  # for every fifth seed, an extender's answer and a request to one are tried, too
PROGRESS = 10.0  # seconds between two lines
LONGEST = 10.0  # seconds that a seed may take
MOST_MEMORY = 1 << 20  # KiB
MOST_FAILURES = 10


def main(arguments: Sequence[str]) -> int:
    """Run for arguments[0] seconds, and at least one seed, from seed arguments[1] on if given."""
    logging.getLogger().addHandler(logging.NullHandler())  # warnings aren't what this is about
    clock = SystemClock()
    seconds = float(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else int(clock.now())
    began = reported = clock.monotonic()
    tried: Counter[str] = Counter()
    failures, longest = 0, 0.0
    with tempfile.TemporaryDirectory() as directory:
        for seed in count(first):
            before = clock.monotonic()
            watch(6 * LONGEST)
            try:
                tried += try_seed(seed, Path(directory))
                if seed % EXTENDERS == 0:
                    try_answer(Random(seed))
                    try_request(Random(seed))
                    tried += Counter(answers=1, requests=1)
            except Exception:
                failures += 1
                say(f"FAILED: seed {seed}\n{traceback.format_exc()[-4000:]}")
            now = clock.monotonic()
            longest = max(longest, now - before)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if now - before > LONGEST or memory > MOST_MEMORY:
                failures += 1
                say(f"FAILED: seed {seed} took {now - before:.1f} s; {memory >> 10} MiB so far")
            is_over = now - began >= seconds or failures >= MOST_FAILURES or memory > MOST_MEMORY
            if now - reported >= PROGRESS or is_over:
                reported = now
                what = ", ".join(f"{number} {name}" for name, number in sorted(tried.items()))
                say(
                    f"{now - began:.0f} s: seeds {first}–{seed}: {what}; "
                    f"{longest:.1f} s and {memory >> 10} MiB at most"
                )
            if is_over:
                break
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
