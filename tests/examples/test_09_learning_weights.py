"""What was learned on some days is better on others."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.examples.running import REPOSITORY, output_as_shown

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "examples" / "09-learning-weights"


@pytest.fixture
def learn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return runpy.run_path(str(EXAMPLE / "learn.py"))


@pytest.mark.nightly
def test_what_was_learned_beats_the_default_on_held_out_days() -> None:
    lines = output_as_shown("09-learning-weights", "learn.py")
    runs = [line.split() for line in lines if line.startswith("held-out run")]
    assert len(runs) == 15
    gains = [float(tuned) - float(default) for *_, default, tuned in runs]
    (mean,) = (line.split() for line in lines if line.startswith("held out, mean"))
    difference, half = float(mean[-3]), float(mean[-1])
    assert difference == pytest.approx(sum(gains) / len(gains), abs=0.001)
    assert difference > half  # 0 isn't in the interval


def test_no_day_of_openb_is_both_for_training_and_held_out(
    learn: dict[str, Any], tmp_path: Path, shared_data: Callable[[str], Path]
) -> None:
    nodes = shared_data("openb/openb_node_list_gpu_node.csv")
    tuning = learn["on_openb"](tmp_path, nodes.parent)
    assert (len(tuning.training.runs), len(tuning.held_out.runs)) == (3, 10)
    seen: set[str] = set()
    for path in sorted(tmp_path.glob("pods-*.csv")):
        _, *rows = path.read_text().splitlines()
        assert len(rows) == 1000
        assert seen.isdisjoint(rows)
        seen.update(rows)
