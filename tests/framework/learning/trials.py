"""Long trials of drawn pure plugins: `python -m tests.framework.learning.trials decisions|waking AMOUNT [KEPT]`.

`decisions` compares learned decisions with those of hooks that are asked about each node (`Twins`), until so many were
compared. `waking` runs waking trials with a drawn plugin, until so many pods that it refused fitted after an event.
KEPT is a file to which the counts of each seed are added, so that a run that was interrupted goes on after its last
seed.

Prints progress; ends with exit code 1 at the first difference, after printing the plugin that hypothesis has shrunk it
to.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import attrs
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import seed as drawn_from
from hypothesis import strategies as st

from kschedfw.testing.properties import register_profiles
from tests.framework.learning.drawn_hooks import PureHooks, pure_hooks, refusing_hooks
from tests.framework.learning.twins import Twins
from tests.framework.learning.waking_trial import run_trial

_PLUGINS: Final = 40
"""Examples of a seed: hypothesis begins each seed with its simplest ones."""
_DECISIONS: Final = 25
"""Decisions of an example: mistakes show early."""
_PODS: Final = 150

Counts = Counter[str]


@attrs.frozen
class Trials:
    """A kind of trials: what it counts, and the counts of one seed."""

    counted: str
    run: Callable[[int], Counts]


def _examples(number: int) -> settings:
    return settings(
        max_examples=number,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def compare_decisions(seed: int) -> Counts:
    """Compare the decisions of two schedulers for the plugins that are drawn from a seed."""
    counts = Counts()

    @drawn_from(seed)
    @_examples(_PLUGINS)
    @given(st.lists(pure_hooks, min_size=1, max_size=2), st.integers(0, 2**32))
    def compare(drawn: Sequence[PureHooks], world: int) -> None:
        twins = Twins(world, drawn, nodes=Random(world).choice([3, 8, 30]))
        try:
            twins.run(_DECISIONS)
            places, pauses = twins.asked()
            counts.update(twins.counts, plugins=len(drawn), places=places, pauses=pauses)
        finally:
            twins.close()

    compare()
    return counts


def wake_pods(seed: int) -> Counts:
    """Run waking trials for the plugins that are drawn from a seed."""
    counts = Counts()

    @drawn_from(seed)
    @_examples(_PLUGINS)
    @given(st.integers(0, 2**32), refusing_hooks)
    def wake(world: int, drawn: PureHooks) -> None:
        tally = run_trial(world, drawn, _PODS)
        assume(tally.cases)  # otherwise hypothesis would vary a plugin that tells nothing
        # Pods that other plugins alone refused say nothing of what was learned.
        counts.update(plugins=1, cases=tally.cases, placeable=tally.by_plugin["Drawn"])

    wake()
    return counts


KINDS: Final[Mapping[str, Trials]] = {
    "decisions": Trials("decisions", compare_decisions),
    "waking": Trials("placeable", wake_pods),
}


def main(arguments: Sequence[str]) -> int:
    logging.disable(logging.CRITICAL)
    register_profiles()
    trials, wanted = KINDS[arguments[0]], int(arguments[1])
    kept = Path(arguments[2]) if len(arguments) > 2 else None
    first, total = _read(kept)
    if total:
        _say(first - 1, total)
    for seed in count(first):
        if total[trials.counted] >= wanted:
            return 0
        try:
            found = trials.run(seed)
        except Exception:
            sys.stdout.write(f"FAILED: seed {seed}\n")
            raise
        total += found
        _say(seed, total)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"seed": seed, **found}) + "\n")
    return 0


def _read(kept: Path | None) -> tuple[int, Counts]:
    """Return the first seed that isn't in the file, and the counts of those that are."""
    rows = [] if kept is None or not kept.exists() else kept.read_text(encoding="utf-8").splitlines()
    total, first = Counts(), 0
    for row in map(json.loads, rows):
        first = row.pop("seed") + 1
        total.update(row)
    return first, total


def _say(last: int, total: Counts) -> None:
    counts = ", ".join(f"{what} {number:,}" for what, number in total.most_common())
    sys.stdout.write(f"seeds 0–{last}: {counts}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
