"""Results of which cells are damaged are read, or refused with the file's name."""

from __future__ import annotations

import csv
import itertools
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab import ResultsError, read_results, read_series

from kschedfw.cli.app import run
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import damaged

HUGE = 10**400
RUNS = [
    {"run": f"r{seed}{policy}", "policy": policy, "seed": seed, "metric": metric, "value": value, "error": ""}
    for seed in (1, 2)
    for policy in ("a", "b")
    for metric, value in (("placed", 10 + seed), ("share", 0.5))
]
SERIES = [
    {"run": "r1a", "time": time, "metric": "placed", "value": value} for time, value in ((0, 1), (2.5, 7))
]


def csv_table(path: Path, rows: Sequence[Any]) -> None:
    """Write a cell as its JSON, or as it is where it is a text."""
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        mappings = [each for each in rows if isinstance(each, dict)]
        table.writerow(mappings[0] if mappings else ["run"])
        for row in mappings:
            table.writerow(each if isinstance(each, str) else json.dumps(each) for each in row.values())


def json_lines(path: Path, rows: Sequence[Any]) -> None:
    # An empty line after each run's rows.
    blocks = itertools.groupby(rows, lambda row: json.dumps(row.get("run") if isinstance(row, dict) else row))
    text = "".join("".join(f"{json.dumps(row)}\n" for row in block) + "\n" for _, block in blocks)
    path.write_text(text, encoding="utf-8")


WRITERS: Sequence[tuple[str, Callable[[Path, Sequence[Any]], None]]] = (
    ("csv", csv_table),
    ("jsonl", json_lines),
)


def with_value(rows: Sequence[dict[str, Any]], column: str, value: object) -> list[dict[str, Any]]:
    return [{**rows[0], column: value}, *rows[1:]]


@given(st.sampled_from(WRITERS), damaged(RUNS), damaged(SERIES))
@settings(max_examples=examples(500, usual=30))
def test_damaged_results_are_read_or_refused_with_the_name_of_the_file(
    writer: tuple[str, Callable[[Path, Sequence[Any]], None]], rows: Sequence[Any], series: Sequence[Any]
) -> None:
    suffix, write = writer
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory) / f"results.{suffix}", rows)
        write(Path(directory) / f"series.{suffix}", series)
        for read in (read_results, read_series):
            refused = ""
            try:
                read(directory)
            except ResultsError as error:
                refused = str(error)
            assert not refused or refused.startswith(directory)


@pytest.mark.parametrize(("suffix", "write"), WRITERS)
@pytest.mark.parametrize(
    ("rows", "series"),
    [
        (with_value(RUNS, "value", HUGE), SERIES),
        (with_value(RUNS, "seed", HUGE), SERIES),
        (RUNS, with_value(SERIES, "value", HUGE)),
        (RUNS, with_value(SERIES, "time", HUGE)),
    ],
)
def test_number_of_400_digits_in_results_is_refused_by_the_report(
    suffix: str,
    write: Callable[[Path, Sequence[Any]], None],
    rows: Sequence[Any],
    series: Sequence[Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path / f"results.{suffix}", rows)
    write(tmp_path / f"series.{suffix}", series)
    assert run(["report", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"kschedfw: {tmp_path}")
    assert len(error) < 500


@pytest.mark.parametrize(
    ("column", "value"),
    [("run", [1]), ("metric", [1]), ("value", float("nan")), ("value", float("inf")), ("seed", [1])],
)
def test_parquet_cell_of_another_type_is_refused(column: str, value: object, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="NOT TESTED: pyarrow isn't installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "results.parquet"
    columns = {name: [row[name] for row in RUNS[:1]] for name in RUNS[0]} | {column: [value]}
    table = arrow.table(columns).replace_schema_metadata({"kschedfw.counts": "placed"})
    parquet.write_table(table, file)
    with pytest.raises(ResultsError, match=r"results\.parquet: "):
        read_results(file)
