"""CSV files of results, and files that are replaced as a whole."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from kschedfw.api.reading import open_file
from kschedfw_lab.results.journal import LONGEST_LINE, Row, too_many_rows
from kschedfw_lab.results.results import ERROR, METRIC, RUN
from kschedfw_lab.results.values import ResultsError, Value, cell, cell_text, cell_value, text_cell

_TEXTS = (RUN, METRIC, ERROR)
"""The columns that have only texts. Their cells contain the text itself, not JSON."""


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a path to write to. At the end, the written file replaces `path`; after an exception, it is removed."""
    # In the same directory, since only within a file system a file is replaced at once.
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield fresh
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
    """Write a table. A failure leaves no incomplete file.

    Raises:
        OSError: the file can't be written.
    """
    cells = [_text_cell if name in _TEXTS else cell for name in header]
    with replaced(path) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(map(text_cell, header))
        for row in rows:
            table.writerow([text(value) for text, value in zip(cells, row, strict=True)])


def read_csv(path: Path, most_rows: int) -> tuple[list[str], Iterator[Row]]:
    """Return the header, and an iterator over the rows.

    Raises:
        ResultsError: the file isn't a table in CSV. While iterating: a row isn't of the header's length, or there are
            too many rows.
        OSError: the file can't be read.
    """
    rows = _records(path)
    header = next(rows, None)
    if header is None:
        raise ResultsError(f"{path}: empty; expected a header")
    header = list(map(cell_text, header))
    return header, _rows(path, header, rows, most_rows)


def _text_cell(value: Value) -> str:
    return text_cell(str(value))


def _rows(path: Path, header: Sequence[str], records: Iterable[list[str]], most_rows: int) -> Iterator[Row]:
    for number, record in enumerate(records, 1):
        if len(record) != len(header):
            raise ResultsError(
                f"{path}: row {number}: has {len(record)} cells, but the header has {len(header)}"
            )
        if number > most_rows:
            raise too_many_rows(path, most_rows)
        yield {
            name: cell_text(text) if name in _TEXTS else cell_value(text)
            for name, text in zip(header, record, strict=True)
        }


def _records(path: Path) -> Iterator[list[str]]:
    with io.TextIOWrapper(open_file(path), encoding="utf-8-sig", newline="") as file:
        try:
            yield from csv.reader(_lines(path, file), strict=True)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ResultsError(f"{path}: not a table in CSV: {error}") from None


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise ResultsError(f"{path}: a line is longer than {LONGEST_LINE:,} characters")
        yield line
