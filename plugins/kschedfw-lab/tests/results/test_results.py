"""Results by rows and by runs, and their way through every kind of file."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from kschedfw_lab import Results, ResultsError, ResultsWriter, RunResult, read_results
from kschedfw_lab.results.results import runs_of
from results import strategies

ONE = RunResult("a1", {"policy": "packing", "seed": 1}, {"placed": 10, "utilisation.cpu": 0.5})
TWO = RunResult("a2", {"policy": "packing", "seed": 2}, {}, "it failed")
RESULTS = Results.of(["policy", "seed"], [ONE, TWO])


class TestTable:
    def test_there_is_a_row_per_run_and_metric_and_one_per_failed_run(self) -> None:
        assert RESULTS.columns == {
            "run": ["a1", "a1", "a2"],
            "policy": ["packing", "packing", "packing"],
            "seed": [1, 1, 2],
            "metric": ["placed", "utilisation.cpu", ""],
            "value": [10.0, 0.5, None],
            "error": ["", "", "it failed"],
        }

    def test_counts_are_ints_again_by_run(self) -> None:
        assert RESULTS.counts == {"placed"}
        assert list(map(repr, RESULTS.runs())) == [repr(ONE), repr(TWO)]

    @given(strategies.results())
    def test_runs_have_all_that_the_table_has(self, results: Results) -> None:
        assert Results.of(results.factors, results.runs()) == results

    @given(strategies.results())
    def test_the_order_of_rows_means_nothing(self, results: Results) -> None:
        shuffled = sorted(results.rows(), key=lambda row: str(row["metric"]))
        found = {run.run: run for run in runs_of(results.factors, shuffled)}
        assert found == {run.run: run for run in results.runs()}

    def test_every_column_suits_data_frames(self) -> None:
        """What pandas and polars ask for: columns of equal length, each of one type."""
        lengths = {len(column) for column in RESULTS.columns.values()}
        assert lengths == {3}
        for column in RESULTS.columns.values():
            assert len({type(value) for value in column if value is not None}) == 1

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames(self, library: str) -> None:
        frames = pytest.importorskip(library, reason=f"NOT TESTED: {library} isn't installed")
        mixed = Results.of(
            ["weight", "seed"],
            [
                RunResult("a", {"weight": 1, "seed": 1}, {"n": 1}),
                RunResult("b", {"weight": "x", "seed": 2}, {"y": 0.5}),
            ],
        )
        frame = frames.DataFrame(mixed.columns)
        assert frame.shape == (2, 6)
        assert frame["value"].sum() == 1.5
        assert list(frame["weight"]) == ["1", "x"]

    @pytest.mark.parametrize(
        ("factors", "why"),
        [
            (["value"], "factor value: there is a column of this name already"),
            (["a", "a"], "factor a: there is a column of this name already"),
            ([""], 'factor "": expected a name of visible characters'),
            (["a\n"], 'factor "a\\n": expected a name of visible characters'),
        ],
    )
    def test_names_of_factors(self, factors: list[str], why: str) -> None:
        with pytest.raises(ResultsError) as refused:
            Results.of(factors, [])
        assert str(refused.value) == why

    def test_all_runs_have_the_same_factors(self) -> None:
        with pytest.raises(ResultsError, match="run a1: has the factors policy, seed instead of policy"):
            Results.of(["policy"], [ONE])

    def test_a_run_has_metrics_or_an_error(self) -> None:
        with pytest.raises(ResultsError, match="run x: neither a metric nor an error"):
            RunResult("x", {}, {})
        with pytest.raises(ResultsError, match="run x: both metrics and an error"):
            RunResult("x", {}, {"placed": 1}, "it failed")


class TestFiles:
    @given(strategies.results())
    def test_every_file_has_exactly_the_same(self, results: Results) -> None:
        pytest.importorskip("pyarrow", reason="NOT TESTED: pyarrow isn't installed")
        with TemporaryDirectory() as made:
            directory = Path(made)
            with ResultsWriter(directory, results.factors, parquet=True) as writer:
                for run in results.runs():
                    if run.error:
                        writer.add_failure(run.run, run.factors, run.error)
                    else:
                        writer.add(run.run, run.factors, run.metrics)
                exact = list(map(repr, writer.finish().rows()))
            assert exact == list(map(repr, results.rows()))
            for name in ("", "results.csv", "results.parquet", "results.jsonl"):
                read = read_results(directory / name)
                assert list(map(repr, read.rows())) == exact
                assert read.counts == results.counts

    def test_csv(self, tmp_path: Path) -> None:
        written(tmp_path)
        assert (tmp_path / "results.csv").read_text() == (
            "run,policy,seed,metric,value,error\n"
            "a1,packing,1,placed,10,\n"
            "a1,packing,1,utilisation.cpu,0.5,\n"
            "a2,packing,2,,,it failed\n"
        )

    def test_json_lines(self, tmp_path: Path) -> None:
        written(tmp_path)
        lines = (tmp_path / "results.jsonl").read_text().split("\n")
        rows = [json.loads(line) for line in lines if line]
        assert rows == list(RESULTS.rows())
        assert [number for number, line in enumerate(lines) if not line] == [2, 4, 5]  # behind each run

    def test_lines_of_another_program(self, tmp_path: Path) -> None:
        """Without the empty lines of the journal, and without an end of the last line."""
        rows = [json.dumps(row) for row in RESULTS.rows()]
        (tmp_path / "mine.jsonl").write_text("\n".join(rows))
        assert read_results(tmp_path / "mine.jsonl") == RESULTS
        (tmp_path / "mine.jsonl").write_text("\n".join(rows)[:-5])
        assert read_results(tmp_path / "mine.jsonl").runs() == [ONE]


def written(directory: Path) -> None:
    with ResultsWriter(directory, RESULTS.factors) as writer:
        writer.add(ONE.run, ONE.factors, ONE.metrics)
        writer.add_failure(TWO.run, TWO.factors, TWO.error)
        writer.finish()


class TestRefused:
    """One line for each: the file, and what is wrong with it."""

    def refused(self, path: Path) -> str:
        with pytest.raises(ResultsError) as error:
            read_results(path)
        assert "\n" not in str(error.value)
        return str(error.value).removeprefix(f"{path.parent}/")

    def test_a_directory_without_results(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        expected = "empty: no results: expected results.csv or results.jsonl in it"
        assert self.refused(tmp_path / "empty") == expected

    def test_another_kind_of_file(self, tmp_path: Path) -> None:
        (tmp_path / "r.txt").touch()
        expected = "r.txt: expected a directory, or a file that ends in .csv, .jsonl or .parquet"
        assert self.refused(tmp_path / "r.txt") == expected

    @pytest.mark.parametrize(
        ("name", "text", "why"),
        [
            ("r.csv", "", "r.csv: empty; expected a header"),
            ("r.csv", "run,seed,metric,value\n", "r.csv: no results: there is no column error"),
            ("r.csv", "run,metric,value,error\na,b\n", "r.csv: row 1: has 2 cells, but the header has 4"),
            ("r.csv", 'run,metric,value,error\n"a', "r.csv: not a table in CSV: unexpected end of data"),
            (
                "r.csv",
                "run,metric,value,error\na,b,c,\n",
                'r.csv: metric b: "c": expected a finite float, or an int up to 2^53',
            ),
            (
                "r.csv",
                "run,metric,value,error\na,b,1,\na,b,2,\n",
                "r.csv: run a: has more than one row of b",
            ),
            (
                "r.csv",
                "run,metric,value,error\na,b,1,\na,,,no\n",
                "r.csv: run a: its rows have different factors or errors",
            ),
            (
                "r.csv",
                "run,seed,metric,value,error\na,1,b,1,\na,2,c,2,\n",
                "r.csv: run a: its rows have different factors or errors",
            ),
            (
                "r.csv",
                "run,metric,value,error\na,,,\n",
                "r.csv: run a: a row has neither a metric nor an error",
            ),
            (
                "r.csv",
                "run,metric,value,error\n,b,1,\n",
                'r.csv: run "": expected a name of visible characters',
            ),
            ("r.csv", "run,run,metric,value,error\n", "r.csv: no results: there is more than one column run"),
            ("r.jsonl", '{"run": "a"}\n', "r.jsonl: no results: there is no column metric"),
            ("r.jsonl", '{"run": \n{}', "r.jsonl:1: no row of results: Input data was truncated"),
            (
                "r.jsonl",
                '{"run":"a","metric":"b","value":1,"error":""}\n{"run":"a"}\n',
                "r.jsonl:2: has other columns than the first row",
            ),
            ("results.jsonl", '{"run":"a"}\n\n', "results.jsonl: no results: there is no column metric"),
            ("r.parquet", "PAR1", "r.parquet: not a Parquet file: "),
        ],
    )
    def test_what_is_wrong(self, tmp_path: Path, name: str, text: str, why: str) -> None:
        (tmp_path / name).write_text(text)
        if name.endswith(".parquet"):
            pytest.importorskip("pyarrow", reason="NOT TESTED: pyarrow isn't installed")
            assert self.refused(tmp_path / name).startswith(why)
        else:
            assert self.refused(tmp_path / name) == why

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "r.csv").write_bytes(b"run,metric,value,error\n\xff")
        assert self.refused(tmp_path / "r.csv").startswith("r.csv: not a table in CSV: 'utf-8' codec")
        (tmp_path / "r.jsonl").write_bytes(b'{"run": "\xff"}\n')
        assert self.refused(tmp_path / "r.jsonl").startswith("r.jsonl:1: no row of results: ")

    @pytest.mark.parametrize("name", ["results.csv", "results.jsonl", "results.parquet"])
    def test_too_many_rows(self, tmp_path: Path, name: str) -> None:
        if name.endswith(".parquet"):
            pytest.importorskip("pyarrow", reason="NOT TESTED: pyarrow isn't installed")
        with ResultsWriter(tmp_path, RESULTS.factors, parquet=name.endswith(".parquet")) as writer:
            writer.add(ONE.run, ONE.factors, ONE.metrics)
            writer.finish()
        assert len(read_results(tmp_path / name, most_rows=2).runs()) == 1
        with pytest.raises(ResultsError, match=r"has more than 1 rows; most_rows=N reads more"):
            read_results(tmp_path / name, most_rows=1)

    @pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
    def test_endless_lines(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("x" * (1 << 20) + "\n")
        assert "longer than 1,048,576" in self.refused(tmp_path / name)
