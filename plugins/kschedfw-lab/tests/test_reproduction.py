"""What reproductions have in common: runs that are recorded, resumed and counted, and errors of one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab import read_results
from kschedfw_lab.reproduction import (
    BAD_INPUT,
    DONE,
    FAILED,
    INTERRUPTED,
    Measured,
    Reproduced,
    Task,
    add_options,
    by_policy,
    digest_of,
    engine_of,
    exit_code,
    installed,
    reproduce,
    run_command,
    seeds_of,
    task,
)
from kschedfw_lab.sweep.engine import Engine
from kschedfw_lab.sweep.errors import EngineError

from kschedfw import KschedfwError


def score(policy: str, seed: int) -> Measured:
    return {"score": len(policy) + seed}, {"curve": [(0, seed), (1, seed + 0.5)]}


def fail(error: BaseException) -> Measured:
    raise error


def tasks(*policies: str, seeds: int = 2) -> list[Task]:
    return [
        task(policy, seed, partial(score, policy, seed), content=["a test"], distributions=installed())
        for seed in range(seeds)
        for policy in policies
    ]


def run(
    runs: list[Task], directory: Path, *, resume: bool = False, told: list[str] | None = None
) -> Reproduced:
    with ThreadPoolExecutor(2) as executor:
        engine = Engine(executor, 2, "two threads")
        tell = (told if told is not None else []).append
        return reproduce(runs, directory, engine, resume=resume, tell=tell)


def test_runs_are_recorded_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    told: list[str] = []
    found = run(tasks("one", "other"), tmp_path, told=told)
    assert [each.factors for each in found.results.runs()] == [
        {"policy": policy, "seed": seed} for seed in range(2) for policy in ("one", "other")
    ]
    assert [each.metrics["score"] for each in by_policy(found.results)["other"]] == [5, 6]
    assert read_results(tmp_path).columns == found.results.columns
    assert told[0] == "4 runs on two threads"
    assert len(told) == 5
    assert exit_code(found, tasks("one", "other")) == DONE


def test_resume_does_only_what_is_missing(tmp_path: Path) -> None:
    first = run(tasks("one"), tmp_path)
    with pytest.raises(KschedfwError, match="has results already; --resume adds what is missing"):
        run(tasks("one"), tmp_path)
    told: list[str] = []
    both = run(tasks("one", "other"), tmp_path, resume=True, told=told)
    assert told[:2] == ["2 of 4 runs are there already", "2 runs on two threads"]
    assert by_policy(both.results)["one"] == by_policy(first.results)["one"]


def test_results_of_other_tasks_are_left_out(tmp_path: Path) -> None:
    run(tasks("one"), tmp_path)
    assert set(by_policy(run(tasks("other"), tmp_path, resume=True).results)) == {"other"}


def test_a_run_that_fails_is_a_row_and_leaves_its_policy_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = task("bad", 0, partial(fail, ValueError("no\nluck")), content=[], distributions=[])
    found = run([*tasks("good"), failing], tmp_path)
    assert set(by_policy(found.results)) == {"good"}
    assert [each.error for each in found.failed] == ["ValueError: no (and 1 more)"]
    assert exit_code(found, [*tasks("good"), failing]) == FAILED
    assert capsys.readouterr().err == "1 run failed, so there are no figures for bad\n"


def test_ctrl_c_keeps_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pressed = task("late", 9, partial(fail, KeyboardInterrupt()), content=[], distributions=[])
    todo = [*tasks("one", seeds=8), pressed]
    found = run(todo, tmp_path)
    assert found.interrupted
    assert exit_code(found, todo) == INTERRUPTED
    done = len(found.results.runs())
    assert 0 < done <= 8
    assert capsys.readouterr().err == f"interrupted; {done} of 9 runs are done, --resume does the rest\n"
    rest = run(tasks("one", seeds=8), tmp_path, resume=True)
    assert len(rest.results.runs()) == 8


@pytest.mark.parametrize(
    "other",
    [
        task("two", 1, partial(score, "one", 1), content=["c"], distributions=["d 1"]),
        task("one", 2, partial(score, "one", 1), content=["c"], distributions=["d 1"]),
        task("one", 1, partial(score, "one", 1), content=["e"], distributions=["d 1"]),
        task("one", 1, partial(score, "one", 1), content=["c"], distributions=["d 2"]),
    ],
    ids=["policy", "seed", "content", "version"],
)
def test_a_key_stands_for_all_that_results_depend_on(other: Task) -> None:
    one = task("one", 1, partial(score, "one", 1), content=["c"], distributions=["d 1"])
    again = task("one", 1, partial(score, "one", 1), content=["c"], distributions=["d 1"])
    assert one.key == again.key != other.key


def test_a_digest_is_that_of_the_content(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    for path, text in ((one, "text"), (same, "text"), (other, "texts")):
        path.write_text(text)
    assert digest_of(one) == digest_of(same) != digest_of(other)
    assert digest_of(one, other) != digest_of(other, one)


@given(st.lists(st.integers(0, 99), min_size=1, max_size=5, unique=True))
def test_seeds_are_listed(seeds: list[int]) -> None:
    assert seeds_of(",".join(map(str, seeds))) == tuple(seeds)


@given(st.integers(0, 99), st.integers(0, 99))
def test_seeds_are_ranges(first: int, count: int) -> None:
    assert seeds_of(f"{first}-{first + count}") == tuple(range(first, first + count + 1))


@pytest.mark.parametrize("text", ["", "x", "3-1", "1,", "-1", "1-2-3", "1-999999"])
def test_other_texts_are_no_seeds(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected seeds such as 42-51 or 42,45"):
        seeds_of(text)


def raising(error: BaseException) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KschedfwError("no\nsuch thing"), BAD_INPUT, "it: no (and 1 more)\n"),
        (FileNotFoundError(2, "No such file", "x.csv"), BAD_INPUT, "it: x.csv: No such file\n"),
        (EngineError("the engine is gone"), FAILED, "it: the engine is gone\n"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted before anything was measured\n"),
    ],
)
def test_errors_are_a_line_and_an_exit_code(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("it", raising(error)) == code
    assert capsys.readouterr().err == text


@pytest.mark.slow
def test_a_dask_cluster_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, seeds="1", directory="out")
    options = parser.parse_args(["--data", ".", "--dask", "127.0.0.1"])

    def command() -> int:
        with engine_of(options, installed()):
            return DONE

    assert run_command("it", command) == BAD_INPUT
    error = capsys.readouterr().err
    assert error.startswith("it: --dask 127.0.0.1: ")
    assert error.count("\n") == 1
