"""Tables of published traces: rows of CSV or JSON lines, in parts, in the order of their times."""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NoReturn

import attrs
import msgspec

from kschedfw_replay.importing.observations import file_lines, json_lines
from kschedfw_replay.recording.blocks import RecordingError

LONGEST_ROW: Final = 1 << 16
"""Bytes of a row; those of the traces have a few hundred."""
MOST_AT_A_TIME: Final = 2_000_000
"""The number of tasks that may exist at a time: all of them are kept in memory."""
_LARGEST: Final = 1_000_000_000
"""The largest amount, and the latest time in seconds, which is 31 years."""
_INT64: Final = range(-(1 << 63), 1 << 63)
_ENDINGS: Final = (".csv", ".csv.gz", ".json", ".json.gz")
_BATCH: Final = 10_000


@attrs.frozen
class Row:
    """A row, with errors that name its cell."""

    path: Path
    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """The cell; empty if the row doesn't have it."""
        return self.cells.get(column, "")

    def name(self, column: str) -> str:
        """The cell, which must not be empty."""
        return self.text(column) or self.refuse(column, "a name")

    def integer(self, column: str, default: int | None = None) -> int:
        """The whole number in a cell; the default if the cell is empty."""
        if default is not None and not self.text(column):
            return default
        try:
            number = int(self.text(column))
        except ValueError:
            return self.refuse(column, "a whole number")
        return number if number in _INT64 else self.refuse(column, "a whole number of 64 bits")

    def time(self, column: str, default: int | None = None, *, per_second: int = 1) -> int:
        """The time in a cell, in the trace's unit; the default if the cell is empty."""
        latest = _LARGEST * per_second
        time = self.integer(column, default)
        return time if time <= latest else self.refuse(column, f"a time up to {latest:,}")

    def amount(self, column: str) -> float:
        """The number in a cell, which isn't negative; 0 if the cell is empty."""
        try:
            amount = float(self.text(column) or 0)
        except ValueError:
            amount = math.nan
        return amount if 0 <= amount <= _LARGEST else self.refuse(column, f"a number from 0 to {_LARGEST:g}")

    def refuse(self, column: str, expected: str) -> NoReturn:
        """Raise a RecordingError for a cell."""
        raise RecordingError(
            f"{self.path}: line {self.line}: {column}: expected {expected}, found {self.text(column)[:80]!r}"
        )


@attrs.frozen
class Table:
    """A table of a trace.

    Attributes:
        name: begins the names of its files, or is the directory with its parts.
        columns: the columns of files without a header, in their order.
    """

    name: str
    columns: Sequence[str]

    def parts(self, directory: Path) -> list[Path]:
        """The table's files in a directory, in the order of their names.

        Raises:
            RecordingError: there is an archive only, which has to be unpacked.
            OSError: the directory can't be read.
        """
        found = sorted(path for path in directory.iterdir() if path.name.startswith(self.name))
        files = [each for path in found for each in (sorted(path.iterdir()) if path.is_dir() else (path,))]
        parts = [path for path in files if path.name.endswith(_ENDINGS)]
        if not parts and (archives := [path for path in files if ".tar" in path.suffixes]):
            raise RecordingError(f"{archives[0]}: an archive; unpack it first")
        return parts

    def rows(self, directory: Path) -> Iterator[Row]:
        """Yield the rows of all parts.

        Raises:
            RecordingError: a row is too long, or has another number of cells than there are columns.
            OSError: a file can't be read.
        """
        for path in self.parts(directory):
            yield from self._json(path) if ".json" in path.suffixes else self._csv(path)

    def _json(self, path: Path) -> Iterator[Row]:
        for number, content in json_lines(path):
            if not isinstance(content, Mapping):
                raise RecordingError(f"{path}: line {number}: expected an object")
            yield Row(path, number, dict(_flat(content)))

    def _csv(self, path: Path) -> Iterator[Row]:
        rows = csv.reader(_lines(path), strict=True)
        columns = self.columns
        try:
            for cells in rows:
                if not cells:
                    continue
                # A header. Exports of BigQuery have one, the original files don't.
                if rows.line_num == 1 and columns[0] in cells:
                    # In the order of this part, which may differ from that of others.
                    columns = [_dotted(cell) for cell in cells]
                    continue
                if len(cells) != len(columns):
                    raise RecordingError(
                        f"{path}: line {rows.line_num}: {len(cells)} cells; {self.name} has {len(columns)}: "
                        f"{', '.join(columns)}"
                    )
                yield Row(path, rows.line_num, dict(zip(columns, cells, strict=True)))
        except csv.Error as error:
            raise RecordingError(f"{path}: line {rows.line_num}: not CSV: {error}") from None


Timed = tuple[int, Row]
"""A row with its time, in the trace's unit."""


def in_order(rows: Iterable[Timed]) -> Iterator[Timed]:
    """Yield the rows of a table that is sorted by time already.

    Raises:
        RecordingError: it isn't.
    """
    last: int | None = None
    for at, row in rows:
        if last is not None and at < last:
            raise RecordingError(
                f"{row.path}: line {row.line}: time {at} after {last}; the table has to be sorted by time"
            )
        last = at
        yield at, row


def sort_rows(rows: Iterable[Timed]) -> Iterator[Timed]:
    """Yield rows in the order of their times, those of one time as they come; they are kept on the disk meanwhile."""
    # An empty name makes a database in a temporary file, which SQLite deletes.
    with closing(sqlite3.connect("")) as database:
        database.execute("CREATE TABLE rows (time INTEGER, path TEXT, line INTEGER, cells BLOB)")
        batch = []
        for at, row in rows:
            batch.append((at, str(row.path), row.line, msgspec.json.encode(row.cells)))
            if len(batch) == _BATCH:
                database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", batch)
                batch = []
        database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", batch)
        for at, path, line, cells in database.execute("SELECT * FROM rows ORDER BY time, rowid"):
            yield at, Row(Path(path), line, msgspec.json.decode(cells, type=dict[str, str]))


def timed(rows: Iterable[Row], time_of: Callable[[Row], int | None]) -> Iterator[Timed]:
    """Yield the rows that have a time, with that time."""
    for row in rows:
        if (at := time_of(row)) is not None:
            yield at, row


def _lines(path: Path) -> Iterator[str]:
    for number, line in file_lines(path, LONGEST_ROW):
        try:
            # A file may begin with a byte order mark.
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise RecordingError(f"{path}: line {number}: not UTF-8: {error.reason}") from None


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        # Only one level: the tables' records have no records in them.
        if isinstance(value, Mapping) and not prefix:
            yield from _flat(value, f"{key}.")
        elif value is not None:
            yield prefix + key, str(value)


def _dotted(column: str) -> str:
    """The name of a column as BigQuery has it: flattened tables write `resource_request_cpus`."""
    for record in ("resource_request", "capacity"):
        if column.startswith(f"{record}_"):
            return f"{record}.{column.removeprefix(f'{record}_')}"
    return column
