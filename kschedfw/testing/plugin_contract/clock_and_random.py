"""Same seed, same clock, same cluster: same answers."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from kschedfw.testing.plugin_contract.other_time import other_time
from kschedfw.testing.plugin_contract.stage import Stage, difference, on_stages
from kschedfw.testing.plugin_contract.subject import Subject
from kschedfw.testing.plugin_contract.violation import violated


class ChanceChecks(Subject):
    """Time and chance come from the handle, and from nowhere else."""

    def test_two_instances_with_the_same_seed_and_clock_agree(self) -> None:
        def check(new_stage: Callable[[], Stage]) -> None:
            drawn = _global_chance()
            one = new_stage().books()
            if _global_chance() != drawn:
                violated(
                    f"{self._name} draws from the global random generator",
                    "draw from `self.handle.random`, which the scheduler seeds: otherwise no decision can be repeated",
                )
            other = new_stage().books()
            if (different := difference(one, other)) != "":
                violated(
                    f"two instances of {self._name} with the same seed and clock disagree on {different}: "
                    f"{one.get(different)!r} and {other.get(different)!r}",
                    "take chance from `self.handle.random` and time from `self.handle.clock`; keep nothing that "
                    "changes in the class or the module, for each profile has an instance of its own",
                )
            with other_time(_package_of(self)):
                later = new_stage().books()
            if (different := difference(one, later)) != "":
                violated(
                    f"{self._name} reads the wall clock: {different} is {one.get(different)!r}, and years later "
                    f"{later.get(different)!r}, although the scheduler's clock stands still",
                    "ask `self.handle.clock.now()`, which tests and simulations move by hand",
                )

        on_stages(self, check)


def _global_chance() -> object:
    _, keys, *rest = np.random.get_state()  # that nobody else uses it is the question
    return random.getstate(), np.asarray(keys).tolist(), rest


def _package_of(subject: Subject) -> str:
    return subject._registry.load(subject._name).__module__.partition(".")[0]
