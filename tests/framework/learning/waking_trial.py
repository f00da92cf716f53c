"""A waking trial with a drawn pure plugin beside the default ones."""

from __future__ import annotations

from random import Random

import attrs

from kschedfw import EnabledPlugin, Registry
from kschedfw.testing.strategies.hooks import PureHooks
from kschedfw.testing.waking import Tally, Trial
from tests.scheduler.waking.gaps import gaps_of
from tests.scheduler.waking.scenes import profile, random_scene


def run_trial(seed: int, drawn: PureHooks, pods: int) -> Tally:
    """Return the counts of a trial. The same seed and plugin make the same trial."""
    random, registry = Random(seed), Registry()
    registry.register(drawn.plugin("Drawn", pure=True))
    enabled = profile(complete_hints=True)
    trial = Trial(
        random_scene(random),
        random,
        attrs.evolve(enabled, multi_point=(*enabled.multi_point, EnabledPlugin("Drawn"))),
        registry,
        gaps_of(complete_hints=True),
    )
    try:
        return trial.run(pods)
    finally:
        trial.close()
