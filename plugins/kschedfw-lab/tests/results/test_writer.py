"""Results while they are being written: what a crash leaves, and what is there when a sweep goes on."""

from __future__ import annotations

import csv
import errno
import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab import ResultsError, ResultsWriter, read_results, read_series

from kschedfw.api import how_to_install

Factors = Mapping[str, str | int]


def factors(seed: int) -> Factors:
    return {"policy": "packing", "seed": seed}


def writer(directory: Path, *, parquet: bool = False) -> ResultsWriter:
    return ResultsWriter(directory, ["policy", "seed"], parquet=parquet)


def keys(directory: Path) -> list[str]:
    return [run.run for run in read_results(directory).runs()]


class TestWriting:
    def test_a_run_can_be_read_as_soon_as_it_is_added(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            results.add("a", factors(1), {"placed": 1})
            assert keys(tmp_path) == ["a"]
            results.add_failure("b", factors(2), "it\nfailed")
            assert [run.error for run in read_results(tmp_path).runs()] == ["", "it failed"]

    def test_tables_are_in_the_order_of_the_plan(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            for key in "cab":
                results.add(key, factors(1), {"placed": 1})
            assert keys(tmp_path) == ["c", "a", "b"]
            finished = results.finish(["a", "missing", "b"])
        assert keys(tmp_path) == ["a", "b", "c"]
        assert finished == read_results(tmp_path)

    def test_a_run_that_is_done_again_is_replaced(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            results.add_failure("a", factors(1), "it failed")
        with writer(tmp_path) as results:
            assert results.done == {"a": "it failed"}
            results.add("a", factors(1), {"placed": 1})
            assert results.done == {"a": ""}
            results.finish()
        for name in ("results.csv", "results.jsonl"):
            assert [run.metrics for run in read_results(tmp_path / name).runs()] == [{"placed": 1}]

    def test_tables_go_when_the_sweep_goes_on(self, tmp_path: Path) -> None:
        """Else they would hide what has come since."""
        with writer(tmp_path) as results:
            results.add("a", factors(1), {"placed": 1})
            results.finish()
        with writer(tmp_path) as results:
            results.add("b", factors(2), {"placed": 1})
            assert keys(tmp_path) == ["a", "b"]

    @pytest.mark.parametrize(
        ("given", "metrics", "why"),
        [
            ({"policy": "packing"}, {"placed": 1}, "run a: has the factors policy instead of policy, seed"),
            (factors(1), {}, "run a: neither a metric nor an error"),
            (
                factors(1),
                {"wait": float("nan")},
                "metric wait: NaN: expected a finite float, or an int up to 2^53",
            ),
        ],
    )
    def test_a_run_that_is_refused_leaves_nothing(
        self, tmp_path: Path, given: Factors, metrics: Mapping[str, float], why: str
    ) -> None:
        with writer(tmp_path) as results:
            with pytest.raises(ResultsError) as refused:
                results.add("a", given, metrics)
            assert (str(refused.value), dict(results.done)) == (why, {})
        assert (tmp_path / "results.jsonl").read_bytes() == b""

    def test_parquet_without_its_library_is_refused_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=re.escape(how_to_install("kschedfw-lab", "parquet"))):
            writer(tmp_path / "new", parquet=True)
        assert not (tmp_path / "new").exists()

    def test_results_of_other_factors(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            results.add("a", factors(1), {"placed": 1})
        with pytest.raises(
            ResultsError, match="has results of the factors policy, seed; expected rate, seed"
        ):
            ResultsWriter(tmp_path, ["rate", "seed"])


class TestSeries:
    def test_series(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            results.add("b", factors(2), {"placed": 1}, {"pending": [(0, 3), (1.5, 0)]})
            results.add("a", factors(1), {"placed": 1}, {"pending": [(0.0, 4)]})
            by_time = read_series(tmp_path)
            results.finish(["a", "b"])
        assert by_time == {
            "run": ["b", "b", "a"],
            "time": [0, 1.5, 0],
            "metric": ["pending"] * 3,
            "value": [3, 0, 4],
        }
        assert read_series(tmp_path)["run"] == ["a", "b", "b"]
        assert (tmp_path / "series.csv").read_text().startswith("run,time,metric,value\na,0.0,pending,4\n")

    def test_there_may_be_none(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            results.add("a", factors(1), {"placed": 1})
            results.finish()
        assert set(map(len, read_series(tmp_path).values())) == {0}
        assert not (tmp_path / "series.csv").exists()

    def test_of_a_run_that_is_done_again(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            results.add("a", factors(1), {"placed": 1}, {"pending": [(0, 1), (1, 1)]})
            results.add("a", factors(1), {"placed": 1}, {"pending": [(0, 2)]})
            results.finish()
        assert read_series(tmp_path)["value"] == [2]


class TestCrash:
    """Whatever is cut off, complete runs stay, and nothing is there twice."""

    @given(st.data())
    def test_anywhere(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        directory = tmp_path_factory.mktemp("results")
        ends = [0]
        with writer(directory) as results:
            for key in "abc":
                results.add(key, factors(1), {"placed": 1, "unschedulable": 2, "gated": 0})
                ends.append((directory / "results.jsonl").stat().st_size)
        cut = data.draw(st.integers(0, ends[-1]))
        os.truncate(directory / "results.jsonl", cut)
        complete = sum(end <= cut for end in ends[1:])
        assert keys(directory) == list("abc"[:complete])
        with writer(directory) as results:
            assert list(results.done) == list("abc"[:complete])
            for key in "abc"[complete:]:
                results.add(key, factors(1), {"placed": 1, "unschedulable": 2, "gated": 0})
            finished = results.finish()
        assert (directory / "results.jsonl").stat().st_size == ends[-1]
        assert [run.run for run in finished.runs()] == ["a", "b", "c"]

    def test_a_line_that_no_crash_explains(self, tmp_path: Path) -> None:
        with writer(tmp_path) as results:
            results.add("a", factors(1), {"placed": 1})
            results.add("b", factors(2), {"placed": 1})
        journal = tmp_path / "results.jsonl"
        journal.write_text(journal.read_text().replace('"seed":2', '"seed":two'))
        with pytest.raises(ResultsError, match=r"results\.jsonl:3: no row of results: "):
            writer(tmp_path)

    def test_a_run_counts_only_when_it_is_on_the_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[bytes] = []

        def sync(_file: int) -> None:
            synced.append((tmp_path / "results.jsonl").read_bytes())
            if len(synced) == 2:
                raise OSError(errno.EIO, "the disk is broken")

        monkeypatch.setattr("kschedfw_lab.results.journal.os.fsync", sync)
        with writer(tmp_path) as results:
            results.add("a", factors(1), {"placed": 1})
            assert b'"a"' in synced[0]
            with pytest.raises(OSError, match="the disk is broken"):
                results.add("b", factors(2), {"placed": 1})
            assert b'"b"' in synced[1]
            assert list(results.done) == ["a"]
        assert keys(tmp_path) == ["a"]

    @pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="NOT TESTED: no limits of files here")
    def test_a_full_disk(self, tmp_path: Path) -> None:
        """A limit of the file's size stands for it: the write ends half-way."""
        program = f"""
import resource, signal
from kschedfw_lab import ResultsWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
writer = ResultsWriter({str(tmp_path)!r}, ["seed"])
writer.add("a", {{"seed": 1}}, {{"placed": 1, "gated": 2}})
try:
    writer.add("b", {{"seed": 2}}, {{"metric" + str(number): 1 for number in range(9)}})
except OSError as error:
    print(error.errno, list(writer.done))
writer.add("c", {{"seed": 3}}, {{"placed": 1}})
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == f"{errno.EFBIG} ['a']\n"
        assert keys(tmp_path) == ["a", "c"]


def test_a_table_has_no_formulas_and_is_read_as_it_was_written(tmp_path: Path) -> None:
    formula = '=HYPERLINK("http://example.com")'
    with ResultsWriter(tmp_path, ["=f"]) as results:
        results.add("a", {"=f": formula}, {"@SUM(1)": -1.5})
        results.add_failure("b", {"=f": "+1"}, formula)
        written = results.finish()
    with (tmp_path / "results.csv").open(newline="") as file:
        cells = [each for row in csv.reader(file) for each in row]
    assert [each for each in cells if each.startswith(("=", "+", "-", "@"))] == ["-1.5"]
    assert list(read_results(tmp_path / "results.csv").rows()) == list(written.rows())
