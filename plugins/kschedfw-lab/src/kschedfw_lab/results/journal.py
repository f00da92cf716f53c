"""The journal of a sweep: JSON lines that are appended as runs finish, and that survive a crash.

A row is a line. All rows of a run are a block: they are written at once, with an empty line after them. So everything
after the last empty line belongs to a write that a crash interrupted.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import attrs
import msgspec

from kschedfw.api.reading import open_file
from kschedfw_lab.results.values import ResultsError, Value

Row: TypeAlias = Mapping[str, Value]

LONGEST_LINE: Final = 1 << 20
MOST_ROWS: Final = 5_000_000
"""The default for the most rows that are read from a file. A row takes about half a kilobyte of memory."""

NO_LIMIT: Final = sys.maxsize

_END: Final = b"\n\n"
_ROW: Final = msgspec.json.Decoder(dict[str, Value])
_ENCODER: Final = msgspec.json.Encoder()


@attrs.frozen
class Block:
    """Rows that were written at once, and their position in the file."""

    rows: Sequence[Row]
    start: int
    end: int


def too_many_rows(path: Path, most_rows: int) -> ResultsError:
    return ResultsError(f"{path}: has more than {most_rows:,} rows; most_rows=N reads more")


def complete_blocks(path: Path, most_rows: int = MOST_ROWS) -> Iterator[Block]:
    """Yield the blocks of a journal that were written completely.

    Raises:
        ResultsError: a line is no row of results, or there are too many.
        OSError: the file can't be read.
    """
    rows: list[Row] = []
    start = end = 0
    for line, row in _lines(path, most_rows):
        end += len(line)
        if row is not None:
            rows.append(row)
        # An empty line ends a block. An incomplete last line has no line end.
        elif line.endswith(b"\n"):
            if rows:
                yield Block(rows, start, end)
            rows, start = [], end


def rows_between(path: Path, start: int, end: int) -> list[Row]:
    """Read the rows of a block again."""
    with open_file(path) as file:
        file.seek(start)
        return [_ROW.decode(line) for line in file.read(end - start).splitlines() if line]


def all_rows(path: Path, most_rows: int = MOST_ROWS) -> Iterator[Row]:
    """Yield the rows of any file of JSON lines. An incomplete last line is skipped.

    Raises:
        ResultsError: another line is no row of results, or there are too many.
        OSError: the file can't be read.
    """
    return (row for _, row in _lines(path, most_rows) if row is not None)


def _lines(path: Path, most_rows: int) -> Iterator[tuple[bytes, Row | None]]:
    """Yield the lines with their rows. The row is None for an empty line, and for an incomplete last line."""
    columns: set[str] | None = None
    count = 0
    with open_file(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
            row = None
            if line.strip():
                row = _row(path, number, line)
                columns = columns or (None if row is None else set(row))
                if row is not None and set(row) != columns:
                    raise ResultsError(f"{path}:{number}: has other columns than the first row")
                count += 1
                if count > most_rows:
                    raise too_many_rows(path, most_rows)
            yield line, row


def _row(path: Path, number: int, line: bytes) -> Row | None:
    if len(line) >= LONGEST_LINE:
        raise ResultsError(f"{path}:{number}: longer than {LONGEST_LINE:,} bytes")
    try:
        return _ROW.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not line.endswith(b"\n"):
            return None
        raise ResultsError(f"{path}:{number}: no row of results: {error}") from None


class Journal:
    """A journal that is open for appending. When it is opened, an incomplete block that a crash has left is removed.

    Raises:
        OSError: the file can't be written.
    """

    def __init__(self, path: Path) -> None:
        # Without a buffer, so that a failed write leaves nothing that a later one would flush.
        self._file: BinaryIO = path.open("a+b", buffering=0)
        self._file.truncate(_end_of_blocks(self._file))

    def append(self, rows: Iterable[Row]) -> None:
        """Append a block, and wait until it is on the disk. If that fails, nothing of the block stays.

        Raises:
            OSError: the rows can't be written, for example because the disk is full.
        """
        block = memoryview(_ENCODER.encode_lines(list(rows)) + b"\n")
        start = self._file.seek(0, 2)
        try:
            while block:
                # A raw write may write only a part.
                block = block[self._file.write(block) :]
            os.fsync(self._file.fileno())
        except BaseException:
            self._file.truncate(start)
            raise

    def close(self) -> None:
        self._file.close()


def _end_of_blocks(file: BinaryIO) -> int:
    """Return the position after the last empty line."""
    if not file.seek(0, 2):
        return 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = content.rfind(_END)
    return 0 if found < 0 else found + len(_END)
