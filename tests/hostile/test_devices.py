"""Claims that are hard to decide on don't stop a command; what a search does is counted in steps, not in time."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kschedfw.cel import STEPS_PER_SECOND, Budget
from kschedfw.plugins.dynamic_resources import answers
from tests.hostile.devices import COMMANDS, cluster
from tests.hostile.trial import command

pytestmark = pytest.mark.slow

SEEDS = range(12)
MOST_STEPS = 10 * STEPS_PER_SECOND * 8
"""Of a command: the searches for a few pods on a few nodes, each of which is given up once."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_command_takes_more_steps_than_a_few_searches_may(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Budget] = []

    class Counted(Budget):
        @classmethod
        def of_seconds(cls, timeout: float) -> Budget:
            given.append(super().of_seconds(timeout))
            return given[-1]

    monkeypatch.setattr(answers, "Budget", Counted)
    file = tmp_path / "devices.json"
    file.write_text(cluster(Random(seed)))
    for arguments in COMMANDS:
        given.clear()
        command([each.replace("FILE", str(file)) for each in arguments])
        assert given
        spent = sum(10 * STEPS_PER_SECOND - max(0.0, budget.left) for budget in given)
        assert spent < MOST_STEPS, f"{arguments[0]}: {spent:,.0f} steps in {len(given)} searches"
