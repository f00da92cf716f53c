"""Reads results from any of the files that a sweep writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kschedfw.api.reading import UnreadableError, content_of, printable, shown
from kschedfw_lab.results.journal import MOST_ROWS, Row, all_rows, complete_blocks, rows_between
from kschedfw_lab.results.parquet import read_parquet
from kschedfw_lab.results.results import FIXED, METRIC, RUN, VALUE, Results, RunResult, runs_of
from kschedfw_lab.results.tables import read_csv
from kschedfw_lab.results.values import ResultsError, Value, checked_number

JOURNAL, CSV, PARQUET = "results.jsonl", "results.csv", "results.parquet"
SERIES_JOURNAL, SERIES_CSV = "series.jsonl", "series.csv"
SPECIFICATION: Final = "sweep.json"
_LARGEST_SPECIFICATION: Final = 64 << 20

TIME: Final = "time"
SERIES_COLUMNS: Final = (RUN, TIME, METRIC, VALUE)


def read_results(path: str | Path, *, most_rows: int = MOST_ROWS) -> Results:
    """Read the results of a sweep.

    Args:
        path: the directory of the results, or one of its files: `.csv`, `.jsonl` or `.parquet`. In a directory,
            results.csv is read, or the journal results.jsonl if there is no results.csv. A run that a crash cut short
            in the journal is skipped.
        most_rows: the most rows that are accepted.

    Raises:
        ResultsError: there are none, or the file isn't a table of results. The message names the file, and the line if
            possible.
        MissingExtraError: the file is `.parquet`, and pyarrow isn't installed.
        OSError: the file can't be read.
    """
    path = Path(path)
    # Raises OSError if the path doesn't exist.
    path.stat()
    if path.is_dir():
        path = _file_of(path, CSV, JOURNAL)
    if path.name == JOURNAL:
        factors, runs = journalled(path, most_rows)
        return Results.of(factors, runs.values())
    columns, cells = _table(path, most_rows)
    factors = _factors(path, columns)
    try:
        return Results.of(factors, runs_of(factors, cells))
    except ResultsError as error:
        raise _placed(path, error) from None


def read_series(path: str | Path, *, most_rows: int = MOST_ROWS) -> Mapping[str, Sequence[Value]]:
    """Read the time series of a sweep, as columns of equal length: `run`, `time` in virtual seconds, `metric`, `value`.

    Args:
        path: the directory of the results. If it has no series, the columns are empty.
        most_rows: the most rows that are accepted.

    Raises:
        ResultsError: the file isn't a table of series. The message names it.
        OSError: the file can't be read.
    """
    directory = Path(path)
    if (directory / SERIES_CSV).is_file():
        names, rows = read_csv(directory / SERIES_CSV, most_rows)
        if tuple(names) != SERIES_COLUMNS:
            raise ResultsError(f"{directory / SERIES_CSV}: expected the columns {', '.join(SERIES_COLUMNS)}")
    else:
        rows = series_rows(directory / SERIES_JOURNAL, most_rows)
    columns: dict[str, list[Value]] = {name: [] for name in SERIES_COLUMNS}
    for row in rows:
        try:
            cells = {**row, TIME: checked_number(TIME, row[TIME]), VALUE: checked_number(VALUE, row[VALUE])}
        except ResultsError as error:
            raise ResultsError(f"{directory}: series of run {shown(row[RUN])}: {error}") from None
        for name, values in columns.items():
            values.append(cells[name])
    return columns


class _Specification(msgspec.Struct):
    """The parts of a sweep's `sweep.json` that reports read."""

    warnings: tuple[str, ...] = ()


def read_warnings(path: str | Path) -> tuple[str, ...]:
    """Return the warnings of the plan of a sweep, such as how many pods no run has; none where `sweep.json` is missing.

    Raises:
        ResultsError: the file isn't what a sweep writes; names it.
        OSError: the file can't be read.
    """
    file = Path(path) / SPECIFICATION
    if not file.is_file():
        return ()
    try:
        return msgspec.json.decode(content_of(file, _LARGEST_SPECIFICATION), type=_Specification).warnings
    except UnreadableError as error:
        raise ResultsError(f"{file}: {error}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ResultsError(f"{file}: expected what a sweep writes: {printable(str(error))}") from None


def journalled(file: Path, most_rows: int = MOST_ROWS) -> tuple[tuple[str, ...], dict[str, RunResult]]:
    """Return the factors of a journal, and its runs by their keys. If a run was written twice, the last one counts.

    Raises:
        ResultsError: a line isn't a row of results.
        OSError: the file can't be read.
    """
    factors: tuple[str, ...] = ()
    runs: dict[str, RunResult] = {}
    for block in complete_blocks(file, most_rows):
        factors = _factors(file, list(block.rows[0]))
        try:
            runs.update((each.run, each) for each in runs_of(factors, block.rows))
        except ResultsError as error:
            raise _placed(file, error) from None
    return factors, runs


def series_rows(file: Path, most_rows: int = MOST_ROWS, runs: Iterable[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a journal of series; none if the file doesn't exist.

    If a run was written twice, its last rows count. Only one run's rows are in memory at a time.

    Args:
        runs: the keys of the wanted runs, in the wanted order. None means all, in the order of the journal.

    Raises:
        ResultsError: a line isn't a row of series.
        OSError: the file can't be read.
    """
    places: dict[str, tuple[int, int]] = {}
    for block in complete_blocks(file, most_rows) if file.is_file() else ():
        if set(block.rows[0]) != set(SERIES_COLUMNS):
            raise ResultsError(f"{file}: expected rows of {', '.join(SERIES_COLUMNS)}")
        places[str(block.rows[0][RUN])] = block.start, block.end
    for run in places if runs is None else runs:
        if run in places:
            yield from rows_between(file, *places[run])


def _file_of(directory: Path, *names: str) -> Path:
    for name in names:
        if (directory / name).is_file():
            return directory / name
    raise ResultsError(f"{directory}: no results: expected {' or '.join(names)} in it")


def _factors(path: Path, columns: Sequence[str]) -> tuple[str, ...]:
    for name in FIXED:
        if columns.count(name) != 1:
            many = "more than one" if name in columns else "no"
            raise ResultsError(f"{path}: no results: there is {many} column {name}")
    return tuple(name for name in columns if name not in FIXED)


def _table(path: Path, most_rows: int) -> tuple[Sequence[str], Iterator[Row]]:
    match path.suffix:
        case ".csv":
            return read_csv(path, most_rows)
        case ".parquet":
            return read_parquet(path, most_rows)
        case ".jsonl":
            rows = all_rows(path, most_rows)
            first = next(rows, None)
            return (FIXED, iter(())) if first is None else (list(first), _chain(first, rows))
    raise ResultsError(f"{path}: expected a directory, or a file that ends in .csv, .jsonl or .parquet")


def _chain(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _placed(path: Path, error: ResultsError) -> ResultsError:
    text = str(error)
    return error if text.startswith(str(path)) else ResultsError(f"{path}: {text}")
