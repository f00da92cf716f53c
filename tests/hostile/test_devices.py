"""Claims that are hard to decide on don't stop a command; what a search does is counted in steps, not in time."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from kschedfw_devices.cel import STEPS_PER_SECOND, Budget, DeviceInput, compile_selector
from kschedfw_devices.dynamic_resources import answers

from tests.hostile.devices import COMMANDS, cluster
from tests.hostile.trial import command
from tests.steps import assert_linear

pytestmark = pytest.mark.slow

SEEDS = [
    pytest.param(seed, id=str(seed), marks=pytest.mark.nightly if seed > 2 else ()) for seed in range(12)
]
MOST_STEPS = 20 * 10 * STEPS_PER_SECOND
"""Of a command: 20 searches of the default `filterTimeout`, for a few pods on a few nodes."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_command_takes_more_steps_than_a_few_searches_may(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[float] = []

    class Counted(Budget):
        def spend(self, steps: float) -> None:
            super().spend(steps)
            taken.append(steps)  # what there are too few for isn't done

    monkeypatch.setattr(answers, "Budget", Counted)
    file = tmp_path / "devices.json"
    file.write_text(cluster(Random(seed)))
    for arguments in COMMANDS:
        taken.clear()
        command([each.replace("FILE", str(file)) for each in arguments])
        assert taken
        assert sum(taken) < MOST_STEPS, f"{arguments[0]}: {sum(taken):,.0f} steps"


@pytest.mark.parametrize("made", ["map(i, i)", "transformMap(i, v, v)"])
def test_large_maps_and_lists_in_selectors_take_linear_time(made: str) -> None:
    def check(size: int) -> None:
        selector = compile_selector(f"lists.range({size}).{made}.size() == {size}")
        assert selector.matches(DeviceInput("gpu.example.com", {}, {}), Budget())

    assert_linear(lambda: check(20_000), lambda: check(40_000))
