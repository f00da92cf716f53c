"""What was learned on some days is better on others."""

from __future__ import annotations

import csv
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kschedfw_lab import Environment, read_results

from kschedfw import Pod
from kschedfw.testing.waiting import PATIENCE
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


@pytest.mark.nightly
def test_the_agent_beats_the_scheduler_on_days_that_it_has_not_seen(tmp_path: Path) -> None:
    # The figures in the README aren't compared: the last digits of NumPy's products depend on the processor.
    result = subprocess.run(
        [sys.executable, EXAMPLE / "agent.py", "--results", tmp_path],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    scheduler, _, agent = result.stdout.splitlines()[-3:]
    low = float(agent.split()[-3])
    assert (scheduler.split()[0], agent.split()[0]) == ("scheduler", "agent")
    assert low > 0.05  # 0 isn't in the interval of the paired differences
    with (tmp_path / "curve.csv").open(newline="") as file:
        curve = [float(row["cpu_in_use"]) for row in csv.DictReader(file)]
    assert len(curve) == 11
    assert max(curve) > curve[0] + 0.1
    rewards = {
        (run.factors["agent"], run.factors["seed"]): run.metrics["reward"]
        for run in read_results(tmp_path).runs()
    }
    assert len(rewards) == 150


def test_the_agent_sees_a_node_in_any_row_alike_and_draws_feasible_ones_only() -> None:
    agent = runpy.run_path(str(EXAMPLE / "agent.py"))
    environment = Environment(agent["day"], reward=agent["cpu_in_use"])
    policy, random = agent["Policy"](seed=1), np.random.default_rng(1)
    steps, total = agent["play"](environment, 5, policy, random)
    assert len(steps) == round(environment.simulation.ledger.bound)
    assert total == pytest.approx(
        sum(pod.requests.amounts.milli_cpu for pod in bound_pods(environment)) / 48_000
    )
    for seen, probabilities, taken in steps:
        assert seen.shape == (len(probabilities), 6)
        assert probabilities[taken] > 0
        np.testing.assert_allclose(policy.probabilities(seen[::-1]), probabilities[::-1])
    seen, probabilities, taken = next(each for each in steps if len(np.unique(each[0], axis=0)) > 1)
    policy.learn([([(seen, probabilities, taken)], 1.0)])
    assert policy.probabilities(seen)[taken] > probabilities[taken]


def bound_pods(environment: Environment) -> list[Pod]:
    return [pod for pod in environment.simulation.cluster.list(Pod) if pod.node_name]


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
