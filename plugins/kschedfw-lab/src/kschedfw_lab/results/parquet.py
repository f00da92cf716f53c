"""Parquet files of results; needs the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kschedfw.api import how_to_install
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.results.journal import Row, too_many_rows
from kschedfw_lab.results.results import METRIC, VALUE, Results
from kschedfw_lab.results.tables import replaced
from kschedfw_lab.results.values import ResultsError

_ROWS_AT_ONCE: Final = 4096
_COUNTS: Final = b"kschedfw.counts"
"""The name of the file's metadata that lists the metrics with int values, since the column `value` has floats."""


def pyarrow() -> ModuleType:
    """Import and return the library for Parquet.

    Raises:
        MissingExtraError: it isn't installed.
    """
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]  # it has no types
    except ModuleNotFoundError:
        needs = f"Parquet needs the extra parquet: {how_to_install('kschedfw-lab', 'parquet')}"
        raise MissingExtraError(needs) from None
    module: ModuleType = pyarrow
    return module


def write_parquet(path: Path, results: Results) -> None:
    """Write the table. A failure leaves no incomplete file.

    Raises:
        MissingExtraError: pyarrow isn't installed.
        OSError: the file can't be written.
    """
    arrow = pyarrow()
    types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    arrays = {}
    for name, values in results.columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        kind = float if name == VALUE else kinds.pop() if kinds else str
        arrays[name] = arrow.array(values, types[kind])
    table = arrow.table(arrays).replace_schema_metadata({_COUNTS: "\n".join(sorted(results.counts)).encode()})
    with replaced(path) as fresh:
        arrow.parquet.write_table(table, fresh, compression="zstd")


def read_parquet(path: Path, most_rows: int) -> tuple[list[str], Iterator[Row]]:
    """Return the names of the columns, and the rows.

    Raises:
        MissingExtraError: pyarrow isn't installed.
        ResultsError: the file isn't a Parquet file, or has too many rows.
        OSError: the file can't be read.
    """
    arrow = pyarrow()
    try:
        file = arrow.parquet.ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise ResultsError(f"{path}: not a Parquet file: {error}") from None
    if file.metadata.num_rows > most_rows:
        file.close()
        raise too_many_rows(path, most_rows)
    metadata = file.schema_arrow.metadata or {}
    counts = tuple(metadata.get(_COUNTS, b"").decode(errors="replace").split("\n"))
    return file.schema_arrow.names, _rows(path, arrow, file, counts)


def _rows(path: Path, arrow: ModuleType, file: Any, counts: Sequence[str]) -> Iterator[Row]:
    with file as opened:
        try:
            for batch in opened.iter_batches(_ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    value = row.get(VALUE)
                    # Another value is no count, and refused where runs are made of rows.
                    if isinstance(value, float) and value.is_integer() and row.get(METRIC) in counts:
                        row[VALUE] = int(value)
                    yield row
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise ResultsError(f"{path}: damaged: {error}") from None
