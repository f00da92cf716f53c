"""What was learned on some days is better on others, and the search would learn other things as well."""

from __future__ import annotations

import runpy
from random import Random
from typing import Any

import pytest

from kschedfw import default_profile
from tests.examples.running import REPOSITORY, output_as_shown

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "examples" / "09-learning-weights"


@pytest.fixture
def learn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return runpy.run_path(str(EXAMPLE / "learn.py"))


def test_learned_weights_beat_the_default_on_held_out_days() -> None:
    lines = output_as_shown("09-learning-weights", "learn.py")
    days = [line.split() for line in lines if line.strip()[:1].isdigit()]
    assert len(days) == 12
    gains = [float(learned) - float(default) for _, default, learned in days]
    assert sum(gains) / len(gains) > 5
    (mean,) = (line.split() for line in lines if line.strip().startswith("mean"))
    assert float(mean[2]) - float(mean[1]) == pytest.approx(sum(gains) / len(gains), abs=0.1)


def test_no_day_is_both_for_training_and_held_out(learn: dict[str, Any]) -> None:
    assert not set(learn["TRAINING"]) & set(learn["HELD_OUT"])


def test_the_default_is_the_default_profiles() -> None:
    replay = runpy.run_path(str(EXAMPLE / "replay.py"))
    expected = {plugin.name: plugin.weight or 1 for plugin in default_profile().multi_point}
    del expected["DefaultPreemption"]
    profile = replay["profile"](replay["DEFAULT"])
    assert {plugin.name: plugin.weight or 1 for plugin in profile.multi_point} == expected


def test_the_search_finds_the_top_of_a_hill(learn: dict[str, Any]) -> None:
    strategy = learn["EvolutionStrategy"]((0.0, 0.0), step=1.0, population=30, random=Random(0))
    for _ in range(20):
        points = strategy.ask()
        strategy.tell(points, [-((x - 2) ** 2) - (y - 1) ** 2 for x, y in points])
    assert strategy.mean == pytest.approx((2, 1), abs=0.1)
