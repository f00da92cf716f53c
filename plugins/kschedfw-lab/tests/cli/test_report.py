"""`kschedfw report`: what it takes, prints and writes, and its exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest
from kschedfw_lab import ResultsWriter, RunResult
from report import scenes

from kschedfw.api import how_to_install
from kschedfw.cli import app
from kschedfw.cli.exits import ExitCode


@attrs.frozen
class Result:
    code: int
    out: str
    err: str


Report = Callable[..., Result]


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Report:
    """Runs `kschedfw report` in this process."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*args: object) -> Result:
        code = app.run(["report", *map(str, args)])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


def written(directory: Path, runs: Iterable[RunResult], *, parquet: bool = False) -> Path:
    runs = list(runs)
    with ResultsWriter(directory, list(runs[0].factors), parquet=parquet) as writer:
        for run in runs:
            if run.error:
                writer.add_failure(run.run, run.factors, run.error)
            else:
                writer.add(run.run, run.factors, run.metrics, {"pending": [(0.0, 1.0), (5.0, 0.0)]})
        writer.finish()
    return directory


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    return written(tmp_path / "sweep", scenes.policies({"default": 0, "good": 2, "twin": 0}))


class TestText:
    def test_shows_which_differences_are_more_than_chance(self, report: Report, sweep: Path) -> None:
        result = report(sweep)
        assert (result.code, result.err) == (0, "")
        assert [line.split() for line in result.out.splitlines()[:7]] == [
            ["30", "runs;", "policy", "compared", "with", "default"],
            [],
            ["default", "good", "twin"],
            ["placed", "101.1", "103.1", "101.1"],
            ["▲", "+2.00", "="],
            ["utilisation.cpu", "50.5%", "51.6%", "50.5%"],
            ["▲", "+1.00", "pp", "="],
        ]
        assert f"page: {sweep}/report.html" in result.out

    def test_more_treatments_than_columns(self, report: Report, tmp_path: Path) -> None:
        effects = {f"a-policy-with-a-long-name-{number}": float(number) for number in range(7)}
        result = report(written(tmp_path / "sweep", scenes.policies(effects)))
        lines = [line for line in result.out.splitlines() if not line.startswith("page: ")]
        assert max(map(len, lines)) <= 80
        assert all(name in result.out for name in effects)
        assert result.out.count("placed ") == 6  # a table for each, beside the baseline

    def test_failed_and_missing_runs_are_named(self, report: Report, tmp_path: Path) -> None:
        runs = scenes.policies({"default": 0, "good": 2})
        runs[13] = scenes.failed("good4", runs[13].factors, "no such plugin")
        del runs[15]
        result = report(written(tmp_path / "sweep", runs))
        assert result.code == 0
        assert "1 run failed\npolicy=good, seed=4: no such plugin\n" in result.out
        assert "2 runs without a pair\ngood, seed=4: it failed\ngood, seed=6: it wasn't run\n" in result.out

    def test_a_single_seed(self, report: Report, tmp_path: Path) -> None:
        result = report(written(tmp_path / "sweep", scenes.policies({"default": 0, "good": 2}, [1])))
        assert result.code == 0
        assert "note: Nothing was repeated with another seed" in result.out
        assert "? +2" in result.out

    def test_options(self, report: Report, tmp_path: Path) -> None:
        runs = scenes.policies({"default": 0, "good": 2}, [1], [float(rate) for rate in range(8)])
        sweep = written(tmp_path / "sweep", runs)
        result = report(sweep, "--baseline", "policy=good", "--over", "rate", "--metric", "util*")
        assert "16 runs; policy compared with good" in result.out
        assert "▼ −1.000 pp" in result.out
        assert "placed" not in result.out


class TestPage:
    def test_it_is_in_the_directory(self, report: Report, sweep: Path) -> None:
        report(sweep)
        page = (sweep / "report.html").read_text(encoding="utf-8")
        assert "<title>kschedfw report: sweep</title>" in page
        assert "Over time" in page

    def test_it_is_beside_a_file(self, report: Report, sweep: Path) -> None:
        result = report(sweep / "results.csv")
        assert f"page: {sweep}/results.html" in result.out

    def test_it_is_where_it_is_wanted(self, report: Report, sweep: Path, tmp_path: Path) -> None:
        report(sweep, "--html", tmp_path / "page.html")
        assert (tmp_path / "page.html").exists()
        assert not (sweep / "report.html").exists()

    def test_nowhere_to_write_it(self, report: Report, sweep: Path, tmp_path: Path) -> None:
        result = report(sweep, "--html", tmp_path / "missing" / "page.html")
        expected = f"kschedfw: --html {tmp_path}/missing/page.html: its directory isn't there\n"
        assert (result.code, result.out, result.err) == (2, "", expected)


class TestJson:
    def test_it_has_the_same_figures(self, report: Report, sweep: Path) -> None:
        result = report(sweep, "--json")
        document: dict[str, Any] = json.loads(result.out)
        assert (result.code, result.err) == (0, "")
        assert (document["runs"], document["compared"], document["baseline"]) == (
            30,
            ["policy"],
            {"policy": "default"},
        )
        placed = document["metrics"][0]
        assert (placed["metric"], placed["direction"]) == ("placed", "higher is better")
        default, good, twin = placed["overall"]
        assert (default["isBaseline"], default["difference"], default["values"]) == (True, None, 10)
        assert good["treatment"] == {"policy": "good"}
        assert good["difference"]["verdict"] == "higher"
        assert good["difference"]["pairs"] == 10
        assert good["difference"]["low"] < good["difference"]["mean"] < good["difference"]["high"]
        assert good["difference"]["p"] <= good["difference"]["correctedP"] <= 0.05
        assert twin["difference"]["verdict"] == "the same"
        assert placed["contexts"] == []

    def test_by_context(self, report: Report, tmp_path: Path) -> None:
        sweep = written(tmp_path / "sweep", scenes.policies({"default": 0, "good": 2}, rates=[1, 2]))
        document = json.loads(report(sweep, "--json", "--baseline", "policy").out)
        assert [row["context"] for row in document["metrics"][0]["contexts"]] == [
            {"rate": 1},
            {"rate": 1},
            {"rate": 2},
            {"rate": 2},
        ]

    def test_a_page_only_if_it_is_wanted(self, report: Report, sweep: Path) -> None:
        report(sweep, "--json")
        assert not (sweep / "report.html").exists()
        report(sweep, "--json", "--html", sweep / "page.html")
        assert (sweep / "page.html").exists()

    def test_failures_and_gaps(self, report: Report, tmp_path: Path) -> None:
        runs = scenes.policies({"default": 0, "good": 2})
        runs[3] = scenes.failed("default4", runs[3].factors, "no such plugin")
        document = json.loads(report(written(tmp_path / "sweep", runs), "--json").out)
        factors = {"policy": "default", "seed": 4}
        assert document["failed"] == [{"run": "default4", "factors": factors, "error": "no such plugin"}]
        assert document["unpaired"] == [
            {
                "context": {},
                "treatment": {"policy": "good"},
                "repetition": {"seed": 4},
                "why": "the baseline failed",
            }
        ]


@pytest.mark.parametrize("name", ["results.csv", "results.jsonl", "results.parquet"])
def test_every_file_gives_the_same(report: Report, tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow", reason="NOT TESTED: pyarrow isn't installed")
    sweep = written(tmp_path / "sweep", scenes.policies({"default": 0, "good": 2}), parquet=True)
    assert report(sweep / name, "--json").out == report(sweep, "--json").out


class TestRefused:
    """One line on stderr."""

    @pytest.mark.parametrize(
        ("args", "why"),
        [
            (
                ["--baseline", "policy=x"],
                "--baseline: no run has policy=x; its values are: default, good, twin",
            ),
            (["--baseline", "x"], "--baseline: there is no factor x; the factors are: policy, seed"),
            (
                ["--baseline", "policy=good,seed=1"],
                "--baseline seed: a repetition can't be compared; runs are paired by their seed",
            ),
            (["--over", "x"], "--over: there is no factor x; the factors are: policy, seed"),
            (["--metric", "plced"], "--metric plced: no run has it; did you mean placed?"),
        ],
    )
    def test_what_the_results_lack(self, report: Report, sweep: Path, args: list[str], why: str) -> None:
        result = report(sweep, *args)
        assert (result.code, result.out, result.err) == (2, "", f"kschedfw: {why}\n")
        assert not (sweep / "report.html").exists()

    def test_no_such_directory(self, report: Report, tmp_path: Path) -> None:
        result = report(tmp_path / "missing")
        assert (result.code, result.err) == (2, f"kschedfw: {tmp_path}/missing: No such file or directory\n")

    def test_a_directory_of_something_else(self, report: Report, tmp_path: Path) -> None:
        result = report(tmp_path)
        expected = f"kschedfw: {tmp_path}: no results: expected results.csv or results.jsonl in it\n"
        assert (result.code, result.err) == (2, expected)

    def test_a_damaged_journal(self, report: Report, tmp_path: Path) -> None:
        (tmp_path / "results.jsonl").write_text("{}\nx\n\n")
        result = report(tmp_path)
        assert result.code == 2
        assert result.err.startswith(f"kschedfw: {tmp_path}/results.jsonl:2: no row of results: ")


class TestNothingToReport:
    def test_no_run_has_finished(self, report: Report, tmp_path: Path) -> None:
        with ResultsWriter(tmp_path, ["policy", "seed"]) as writer:
            before = report(tmp_path)
            writer.finish()
        expected = (1, "", f"kschedfw: {tmp_path}: no run has finished\n")
        for result in (before, report(tmp_path)):
            assert (result.code, result.out, result.err) == expected

    def test_all_have_failed(self, report: Report, tmp_path: Path) -> None:
        runs = [scenes.failed(f"{seed}", {"policy": "a", "seed": seed}, "no such plugin") for seed in (1, 2)]
        result = report(written(tmp_path / "sweep", runs))
        assert (result.code, result.err) == (1, f"kschedfw: {tmp_path}/sweep: all of 2 runs failed\n")
        assert "policy=a, seed=1: no such plugin" in result.out

    def test_results_as_parquet_need_its_extra(
        self, report: Report, sweep: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (sweep / "results.parquet").touch()
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        result = report(sweep / "results.parquet")
        assert (result.code, result.out) == (1, "")
        assert how_to_install("kschedfw-lab", "parquet") in result.err


def test_warnings_of_the_sweep_are_notes(report: Report, sweep: Path) -> None:
    """They are a part of the answer: pods that no run has, for example."""
    (sweep / "sweep.json").write_text(json.dumps({"plan": "x", "warnings": ["week: 2 pods left out"]}))
    assert "note: week: 2 pods left out" in report(sweep).out
    assert "week: 2 pods left out" in (sweep / "report.html").read_text()
    assert json.loads(report(sweep, "--json").out)["notes"][0] == "week: 2 pods left out"


@pytest.mark.parametrize("content", ["{", '{"warnings": 1}', '{"warnings": [1]}', "[" * 100_000])
def test_damaged_specification_is_refused(report: Report, sweep: Path, content: str) -> None:
    (sweep / "sweep.json").write_text(content)
    result = report(sweep)
    assert (result.code, result.out) == (ExitCode.BAD_INPUT, "")
    assert f"{sweep / 'sweep.json'}: expected what a sweep writes" in "".join(result.err.splitlines())


def test_exit_codes_are_documented(report: Report) -> None:
    shown = report("--help").out
    assert all(f"\n    {code.value} " in shown for code in ExitCode if code is not ExitCode.CONDITION_HOLDS)
