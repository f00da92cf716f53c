"""Trials of hints by seed, for the tests and for the long run: `python -m tests.scheduler.waking.run PLACEABLE [SEED]`.

Prints progress and the share of refused pods that fitted after the change they saw; ends with exit code 1 at the first
pod that wasn't woken, after printing the seed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from itertools import count
from random import Random

from kschedfw.framework.runtime.registry import Registry
from kschedfw.testing.waking import NotWokenError, Tally, Trial
from tests.scheduler.waking.gaps import gaps_of
from tests.scheduler.waking.scenes import profile, random_scene

_PODS = 30
_REGISTRY = Registry()


def run_trial(seed: int, pods: int = _PODS) -> Tally:
    """A trial in a scene of its own. In every other one hints are complete, in the rest kube-scheduler's own."""
    random, complete = Random(seed), seed % 2 == 1
    trial = Trial(
        random_scene(random),
        random,
        profile(complete_hints=complete),
        _REGISTRY,
        gaps_of(complete_hints=complete),
    )
    try:
        return trial.run(pods)
    except NotWokenError as error:
        raise NotWokenError(f"seed {seed}: {error}") from error
    finally:
        trial.close()


def main(arguments: Sequence[str]) -> int:
    logging.disable(logging.CRITICAL)
    wanted = int(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else 0
    total = Tally()
    for seed in count(first):
        try:
            total += run_trial(seed)
        except NotWokenError as error:
            _say(f"FAILED: {error}")
            return 1
        done = total.placeable >= wanted
        if done or (seed - first) % 200 == 199:
            _say(f"seeds {first}–{seed}: {total}")
        if done:
            return 0
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
