"""A search finds values that are better than the default's, and says by how much on runs that it hasn't seen."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from kschedfw_lab import (
    TrialEnd,
    Tuned,
    Tuning,
    TuningError,
    WorkerProcesses,
    read_results,
    tune,
)
from kschedfw_lab.sweep.errors import SweepError
from tuning.days import FIT, SEARCH, write_day


class Here(Executor):
    """Does everything at once, in this thread; counts the calls, and ends like Ctrl-C after so many."""

    def __init__(self, most: int = 10**9) -> None:
        self.calls, self._most = 0, most

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.calls == self._most:
            raise KeyboardInterrupt
        self.calls += 1
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def tuning(folder: Path, *, trials: int = 6, **changed: Any) -> Tuning:
    given: dict[str, Any] = {
        "search": SEARCH,
        "training": {"cluster": [write_day(folder, day) for day in range(3)]},
        "held_out": {"cluster": [write_day(folder, day) for day in range(10, 14)]},
        "objective": {"metric": "placed"},
        "trials": trials,
        "batch": 2,
        "folder": folder,
    }
    return Tuning.of(**{**given, **changed})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("days")


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Tuned:
    return tune(tuning(folder), folder / "results", Here())


def test_it_finds_that_packing_places_more(tuned: Tuned, folder: Path) -> None:
    assert tuned.best.values["strategy"] == "MostAllocated"
    assert len(tuned.trials) == 6
    assert tuned.training.tuned == tuned.best.scores
    gains = [new - old for old, new in zip(tuned.held_out.default, tuned.held_out.tuned, strict=True)]
    assert len(gains) == 4
    assert all(gain >= 1 for gain in gains)
    assert tuned.held_out.difference.mean == pytest.approx(sum(gains) / 4)
    assert tuned.held_out.probability == 0.125  # of four runs all are better: 2 of 16 patterns of signs


def test_the_configuration_is_one_for_the_command(tuned: Tuned, folder: Path) -> None:
    written = yaml.safe_load((folder / "results" / "tuned.yaml").read_text())
    assert written == tuned.configuration
    args = written["profiles"][0]["pluginConfig"][0]["args"]
    assert args["scoringStrategy"]["type"] == "MostAllocated"


def test_the_runs_are_tidy_rows(tuned: Tuned, folder: Path) -> None:
    results = read_results(folder / "results")
    assert results.factors == ("cluster", "seed", "strategy", "plugins.NodeResourcesBalancedAllocation")
    runs = results.runs()
    of_default = [run for run in runs if run.factors["strategy"] in (None, "")]
    assert len(of_default) == 3 + 4
    for day, score in enumerate(tuned.training.default):
        (run,) = (run for run in of_default if run.factors["cluster"] == str(day))
        assert run.metrics["placed"] == score


@pytest.mark.slow
def test_engines_and_workers_make_no_difference(tuned: Tuned, folder: Path, tmp_path: Path) -> None:
    processes = WorkerProcesses(2)
    try:
        assert tune(tuning(folder), tmp_path / "two", processes, workers=2).to_json() == tuned.to_json()
    finally:
        processes.shutdown()
    with ThreadPoolExecutor(3) as threads:
        assert tune(tuning(folder), tmp_path / "three", threads, workers=3).to_json() == tuned.to_json()


@pytest.mark.slow
def test_an_interrupted_search_goes_on_where_it_was(tuned: Tuned, folder: Path, tmp_path: Path) -> None:
    complete = Here()
    tune(tuning(folder), tmp_path / "complete", complete)
    first = Here(most=12)
    with pytest.raises(KeyboardInterrupt):
        tune(tuning(folder), tmp_path / "interrupted", first)
    second = Here()
    resumed = tune(tuning(folder), tmp_path / "interrupted", second, resume=True)
    assert resumed.to_json() == tuned.to_json()
    # What was in flight is done again.
    assert complete.calls <= first.calls + second.calls <= complete.calls + 2


def test_another_seed_draws_other_trials(tuned: Tuned, folder: Path, tmp_path: Path) -> None:
    other = tune(tuning(folder, seed=5), tmp_path, Here())
    assert [trial.values for trial in other.trials] != [trial.values for trial in tuned.trials]


@pytest.mark.slow
def test_a_bad_trial_is_given_up(folder: Path, tmp_path: Path) -> None:
    days = {"cluster": [write_day(folder, day) for day in range(6)]}
    result = tune(tuning(folder, training=days, trials=20, batch=1), tmp_path, Here())
    pruned = [trial for trial in result.trials if trial.end is TrialEnd.PRUNED]
    assert pruned
    assert all(3 <= len(trial.scores) < 6 for trial in pruned)
    assert all(trial.values["strategy"] == "LeastAllocated" for trial in pruned)
    assert result.best.end is TrialEnd.COMPLETE
    unpruned = tune(
        tuning(folder, training=days, trials=20, batch=1, pruning=False), tmp_path / "all", Here()
    )
    assert unpruned.count(TrialEnd.COMPLETE) == 20


def test_a_minimum_can_be_sought(folder: Path, tmp_path: Path) -> None:
    result = tune(tuning(folder, objective={"metric": "placed", "direction": "minimize"}), tmp_path, Here())
    assert result.best.values["strategy"] == "LeastAllocated"


class TestErrors:
    def test_results_of_another_search_are_not_overwritten(self, tuned: Tuned, folder: Path) -> None:
        with pytest.raises(SweepError, match=r"has results already; --resume adds what is missing"):
            tune(tuning(folder), folder / "results", Here())
        other = tuning(folder, search={"plugins.ImageLocality": [1, 2]})
        with pytest.raises(SweepError, match=r"has results of the factors"):
            tune(other, folder / "results", Here(), resume=True)

    def test_a_metric_that_no_run_has(self, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(
            TuningError, match=r"^objective.metric: no run has 'plcaed'; did you mean placed\?$"
        ):
            tune(tuning(folder, objective={"metric": "plcaed"}), tmp_path, Here())

    def test_values_that_do_not_go_together_fail_the_trial_only(self, folder: Path, tmp_path: Path) -> None:
        """The shape is what one of the strategies needs and the other doesn't allow."""
        search = {
            "strategy": {"path": FIT, "values": ["LeastAllocated", "RequestedToCapacityRatio"]},
            "shape": {
                "path": "profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.requestedToCapacityRatio",
                "values": [
                    {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
                    None,
                ],
            },
        }
        result = tune(tuning(folder, search=search, trials=12), tmp_path, Here())
        failed = [trial for trial in result.trials if trial.end is TrialEnd.FAILED]
        assert failed
        for trial in failed:
            assert trial.values == {"strategy": "RequestedToCapacityRatio", "shape": None}
            assert "requestedToCapacityRatio: Required value" in trial.error
