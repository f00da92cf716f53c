"""A sweep on an executor: what is recorded, what is skipped, and what is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import attrs
import pytest
from kschedfw_apiserver.processes import interruptible
from kschedfw_lab import Run, Sweep, SweepError, read_results, read_series, run_sweep
from kschedfw_lab.results.reading import read_warnings
from kschedfw_lab.sweep.errors import EngineError
from kschedfw_lab.sweep.runs import RunOutcome
from sweep.scenes import TINY, cluster_file, tiny


@pytest.fixture
def thread() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


SEEDS = tiny({"seed": range(6)})


def keys(sweep: Sweep) -> list[str]:
    return [run.key for run in sweep.plan().runs]


def recorded(directory: Path) -> list[str]:
    """The keys of the runs in the journal, as often as they are there."""
    blocks = (directory / "results.jsonl").read_text().split("\n\n")
    return [json.loads(block.splitlines()[0])["run"] for block in blocks if block]


class Failing(Executor):
    """An executor that does some runs differently."""

    def __init__(self, instead: Callable[[Run, int], None]) -> None:
        self.instead = instead
        self.count = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            self.count += 1
            self.instead(args[0], self.count)
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def test_every_run_is_recorded_once_and_the_table_is_in_the_plans_order(
    tmp_path: Path, thread: Executor
) -> None:
    summary = run_sweep(SEEDS, tmp_path / "results", thread, workers=3)
    assert (summary.done, summary.failed, summary.skipped, summary.interrupted) == (6, 0, 0, False)
    assert sorted(recorded(tmp_path / "results")) == sorted(keys(SEEDS))
    results = read_results(tmp_path / "results")
    assert list(dict.fromkeys(results.columns["run"])) == keys(SEEDS)
    assert results.factors == ("cluster", "nodes", "pods", "initialPods", "seed")
    assert set(results.columns["seed"]) == set(range(6))


def test_the_specification_is_there_before_the_first_run(tmp_path: Path, thread: Executor) -> None:
    seen: list[Any] = []

    def look(*_: object) -> None:
        seen.append(json.loads((tmp_path / "sweep.json").read_text()))

    run_sweep(SEEDS, tmp_path, thread, progress=look)
    assert seen[0]["plan"] == SEEDS.plan().key
    assert seen[0]["factors"]["seed"] == [0, 1, 2, 3, 4, 5]
    assert seen[0]["columns"] == ["cluster", "nodes", "pods", "initialPods", "seed"]
    assert seen[0]["distributions"][0].startswith("kschedfw ")
    assert seen[0]["versions"].keys() == {"python", "kschedfw", "kschedfw-lab", "numpy"}
    assert seen[0]["warnings"] == []


def test_warnings_of_the_plan_are_there_for_those_who_read_the_results(
    tmp_path: Path, thread: Executor
) -> None:
    plan = attrs.evolve(SEEDS.plan(), warnings=("week: 2 pods left out",))
    run_sweep(SEEDS, tmp_path, thread, plan=plan)
    assert read_warnings(tmp_path) == ("week: 2 pods left out",)


def test_the_specification_s_commit_is_told(tmp_path: Path, thread: Executor) -> None:
    def git(*args: str) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(tmp_path), *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def told(results: str) -> str | None:
        run_sweep(Sweep({**TINY}, folder=tmp_path), tmp_path / results, thread)
        commit: str | None = json.loads((tmp_path / results / "sweep.json").read_text())["commit"]
        return commit

    git("init", "-q")
    (tmp_path / ".gitignore").write_text("*-results\n")
    git("add", ".")
    git("commit", "-qm", "a sweep")
    commit = git("rev-parse", "HEAD")
    assert told("clean-results") == commit
    (tmp_path / ".gitignore").write_text("*-results\n*.log\n")
    assert told("changed-results") == f"{commit}-dirty"


def test_progress_is_told_run_by_run(tmp_path: Path, thread: Executor) -> None:
    told: list[tuple[str, int, int]] = []

    def tell(run: Run, outcome: RunOutcome, done: int, total: int) -> None:
        assert outcome.metrics["placed"] == 6
        told.append((run.key, done, total))

    run_sweep(SEEDS, tmp_path, thread, progress=tell)
    assert told == [(key, number, 6) for number, key in enumerate(keys(SEEDS), 1)]


def test_series_are_recorded_too(tmp_path: Path, thread: Executor) -> None:
    run_sweep(Sweep({"cluster": cluster_file(tmp_path), "attemptTime": 1}, series=3), tmp_path / "r", thread)
    series = read_series(tmp_path / "r")
    placed = [
        (time, value)
        for time, metric, value in zip(series["time"], series["metric"], series["value"], strict=True)
        if metric == "placed"
    ]
    assert placed[-1][1] == 2
    assert len(placed) == 3


class TestResuming:
    def test_results_are_never_overwritten(self, tmp_path: Path, thread: Executor) -> None:
        run_sweep(SEEDS, tmp_path, thread)
        before = (tmp_path / "results.jsonl").read_bytes()
        with pytest.raises(SweepError, match="has results already; --resume adds what is missing"):
            run_sweep(SEEDS, tmp_path, thread)
        assert (tmp_path / "results.jsonl").read_bytes() == before

    def test_what_is_done_is_skipped(self, tmp_path: Path, thread: Executor) -> None:
        run_sweep(tiny({"seed": range(4)}), tmp_path, thread)
        summary = run_sweep(SEEDS, tmp_path, thread, resume=True)
        assert (summary.done, summary.skipped, summary.stale) == (2, 4, [])
        assert sorted(recorded(tmp_path)) == sorted(keys(SEEDS))

    def test_runs_of_another_specification_are_told_and_left_out_of_the_tables(
        self, tmp_path: Path, thread: Executor
    ) -> None:
        run_sweep(SEEDS, tmp_path, thread)
        fewer = tiny({"seed": [4, 9]})
        summary = run_sweep(fewer, tmp_path, thread, resume=True)
        assert (summary.done, summary.skipped) == (1, 1)
        assert sorted(summary.stale) == sorted(set(keys(SEEDS)) - set(keys(fewer)))
        assert set(read_results(tmp_path).columns["seed"]) == {4, 9}
        assert len(recorded(tmp_path)) == 7

    def test_a_journal_that_ends_in_the_middle_of_a_run_loses_that_run_alone(
        self, tmp_path: Path, thread: Executor
    ) -> None:
        run_sweep(SEEDS, tmp_path, thread)
        expected = (tmp_path / "results.csv").read_text()
        journal = tmp_path / "results.jsonl"
        journal.write_bytes(journal.read_bytes()[:-100])
        summary = run_sweep(SEEDS, tmp_path, thread, resume=True)
        assert (summary.done, summary.skipped) == (1, 5)
        assert without_times((tmp_path / "results.csv").read_text()) == without_times(expected)

    def test_other_factors_need_another_directory(self, tmp_path: Path, thread: Executor) -> None:
        run_sweep(SEEDS, tmp_path, thread)
        with pytest.raises(
            SweepError, match="has results of the factors cluster, nodes, pods, initialPods, seed, and"
        ):
            run_sweep(tiny({"attemptTime": 1}), tmp_path, thread, resume=True)

    def test_failed_runs_are_done_again_if_that_is_wanted(self, tmp_path: Path, thread: Executor) -> None:
        def refuse(_run: Run, number: int) -> None:
            if number == 3:
                raise OSError("no space left")

        failing = run_sweep(SEEDS, tmp_path, Failing(refuse))
        assert (failing.done, failing.failed) == (6, 1)
        assert (tmp_path / "results.csv").read_text().count("OSError: no space left") == 1
        kept = run_sweep(SEEDS, tmp_path, thread, resume=True)
        assert (kept.done, kept.failed, kept.skipped) == (0, 1, 6)
        retried = run_sweep(SEEDS, tmp_path, thread, resume=True, retry_failed=True)
        assert (retried.done, retried.failed, retried.skipped) == (1, 0, 5)
        assert not any(read_results(tmp_path).columns["error"])
        assert list(dict.fromkeys(read_results(tmp_path).columns["run"])) == keys(SEEDS)


def without_times(table: str) -> list[str]:
    return [
        line for line in table.splitlines() if "elapsed_seconds" not in line and "decisions_per" not in line
    ]


class TestBrokenEngines:
    def test_runs_in_flight_at_a_workers_death_are_done_again(self, tmp_path: Path) -> None:
        def die(_run: Run, number: int) -> None:
            if number in (2, 3, 4):
                raise BrokenProcessPool("a worker died")

        summary = run_sweep(SEEDS, tmp_path, Failing(die), workers=2)
        assert (summary.done, summary.failed) == (6, 0)
        assert sorted(recorded(tmp_path)) == sorted(keys(SEEDS))

    def test_a_run_that_always_kills_its_worker_is_one_row_and_the_others_are_fine(
        self, tmp_path: Path
    ) -> None:
        def die(run: Run, _number: int) -> None:
            if run.seed == 2:
                raise BrokenProcessPool("a worker died")

        summary = run_sweep(SEEDS, tmp_path, Failing(die), workers=2)
        assert (summary.done, summary.failed) == (6, 1)
        (row,) = (each for each in read_results(tmp_path).runs() if each.error)
        assert (row.factors["seed"], row.error) == (2, "its worker process died, twice")

    def test_an_engine_that_takes_no_more_runs_ends_the_sweep_and_keeps_its_results(
        self, tmp_path: Path
    ) -> None:
        class Closing(ThreadPoolExecutor):
            def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
                if list(tmp_path.glob("results.jsonl")) and recorded(tmp_path):
                    self.shutdown()
                return super().submit(*args, **kwargs)

        with pytest.raises(EngineError, match="the engine takes no more runs: RuntimeError: cannot schedule"):
            run_sweep(SEEDS, tmp_path, Closing(1))
        assert list(dict.fromkeys(read_results(tmp_path / "results.csv").columns["run"])) == recorded(
            tmp_path
        )
        with ThreadPoolExecutor(1) as thread:
            run_sweep(SEEDS, tmp_path, thread, resume=True)
        assert sorted(recorded(tmp_path)) == sorted(keys(SEEDS))

    def test_a_lost_cluster_ends_the_sweep(self, tmp_path: Path) -> None:
        class Lost(Executor):
            def submit(self, *_args: Any, **_kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                future.cancel()
                future.set_running_or_notify_cancel()
                return future

        with pytest.raises(EngineError, match="the engine is gone; --resume goes on"):
            run_sweep(SEEDS, tmp_path, Lost())


def test_a_metric_that_no_table_can_hold_is_an_error_of_its_run(tmp_path: Path) -> None:
    class Wrong(Executor):
        def submit(self, _fn: Callable[..., Any], /, *args: Any, **_kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(RunOutcome(args[0].key, {"placed": float("nan") if args[0].seed == 2 else 1}))
            return future

    summary = run_sweep(SEEDS, tmp_path, Wrong())
    assert (summary.done, summary.failed) == (6, 1)
    (row,) = (each for each in read_results(tmp_path).runs() if each.error)
    assert (row.factors["seed"], row.error.startswith("metric placed: ")) == (2, True)


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, thread: Executor) -> None:
    def interrupt(_run: Run, _outcome: RunOutcome, done: int, _total: int) -> None:
        if done == 3:
            assert threading.current_thread() is threading.main_thread()
            os.kill(os.getpid(), signal.SIGINT)

    with interruptible():
        summary = run_sweep(SEEDS, tmp_path, thread, progress=interrupt)
    assert (summary.interrupted, summary.done) == (True, 3)
    assert recorded(tmp_path) == keys(SEEDS)[:3]
    assert len(set(read_results(tmp_path).columns["run"])) == 3
    assert run_sweep(SEEDS, tmp_path, thread, resume=True).done == 3
    assert sorted(recorded(tmp_path)) == sorted(keys(SEEDS))
