"""Reading of files from outside, within limits: which files are opened, what they unpack to, how long a line is."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from kschedfw.api.limits import DEFAULT_LIMITS, Limits, how_to_raise

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_RATIO: Final = 200
"""The most bytes that a file may unpack to, for each of its own. Lists of objects that differ in little more than their
names reach 120, long lines of one character 1,000."""
_FREE: Final = 4 << 20
"""Bytes that a file may unpack to whatever its size: a few equal objects are packed to very little."""
_STREAMED: Final = Limits(unpacked=sys.maxsize)
"""The limits of what is read line by line and not kept."""
_BUFFER: Final = 1 << 17


class UnreadableError(Exception):
    """The error of a source that can't be read completely; the text says why."""


def open_file(path: Path | str, *, again: bool = False) -> BinaryIO:
    """Open a file to read its bytes.

    Devices are refused, except terminals and /dev/null: /dev/zero has no end, so a digest of it is never done.
    With `again`, because the file is read more than once, pipes are refused, too.

    Raises:
        OSError: it can't be opened, or is refused.
    """
    file = Path(path).open("rb")  # noqa: SIM115  # the caller closes it
    found = os.fstat(file.fileno())
    mode = found.st_mode
    is_stream = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and file.isatty())
    is_empty = os.path.samestat(found, os.stat(os.devnull))  # noqa: PTH116  # it is no path of ours
    if stat.S_ISREG(mode) or is_empty or (is_stream and not again):
        return file
    file.close()
    why = "is a pipe, and has to be a file, since it is read more than once" if is_stream else "is no file"
    raise OSError(errno.EINVAL, why, str(path))


def is_packed(path: Path) -> bool:
    """Return whether a file is to be unpacked, by its name."""
    return path.name.lower().endswith(".gz")


def open_unpacked(path: Path, limits: Limits = DEFAULT_LIMITS) -> BinaryIO:
    """Open a file to read its bytes; of a file that ends in `.gz`, the unpacked ones.

    Reading raises UnreadableError where the file can't be unpacked, or unpacks to more than the limits.

    Raises:
        OSError: it can't be opened, or is no file.
    """
    file = open_file(path)
    return io.BufferedReader(_Unpacked(file, limits), _BUFFER) if is_packed(path) else file


def lines_of(path: Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line, with its end, unpacked.

    Raises:
        UnreadableError: a line has more bytes than `longest`, or see `open_unpacked`.
        OSError: the file can't be read.
    """
    with open_unpacked(path, _STREAMED) as file:
        number = 0
        # One byte more than is allowed tells a line that is too long.
        while line := file.readline(longest + 1):
            number += 1
            if len(line) > longest:
                raise UnreadableError(f"line {number}: has more than {longest} bytes")
            yield number, line


def content_of(path: Path, most: int) -> bytes:
    """Return all bytes of a file, unpacked.

    Raises:
        UnreadableError: it has more bytes than `most`, or see `open_unpacked`.
        OSError: it can't be read.
    """
    with open_unpacked(path, _STREAMED) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UnreadableError(f"has more than {most} bytes")
    return content


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, within limits."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        self._file, self._limits = file, limits
        self._unpacked = gzip.GzipFile(fileobj=file)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        try:
            read = self._unpacked.readinto(memoryview(buffer))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise UnreadableError(f"can't be unpacked: {error}") from None
        self._size += read
        limits = self._limits
        if self._size > limits.unpacked:
            limit = how_to_raise("unpacked", limits.unpacked)
            raise UnreadableError(f"unpacks to more than {limits.unpacked} bytes: {limit}")
        if self._size > _FREE and self._size > MOST_RATIO * self._file.tell():
            raise UnreadableError(
                f"unpacks to more than {MOST_RATIO} times its size; if that is right, unpack it first"
            )
        return read

    def close(self) -> None:
        self._unpacked.close()
        self._file.close()
        super().close()
