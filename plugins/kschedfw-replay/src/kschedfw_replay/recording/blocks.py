"""The file of a segment: a first line with the format's version, then compressed, checksummed blocks.

A block is what was flushed at a time: a head of four little-endian 32-bit numbers (length in the file, length
unpacked, CRC of the packed bytes, CRC of the three numbers before), then the packed bytes. The head has a checksum of
its own, so that a damaged length isn't taken for a block that isn't complete yet.

All blocks of a segment are one raw deflate stream, flushed after each block: a pod's next state is mostly its last one,
which the stream's window still has. The stream is raw, without zlib's head and sum, because then another compressor
can go on with it, which is how a restarted recorder ends the segment of one that was killed.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from kschedfw import KschedfwError

FORMAT: Final = 1
"""The version of the format that is written, and the only one that is read."""
LONGEST_BLOCK: Final = 16 << 20
"""Bytes of a block, unpacked: a change of one object is at most as long as the API server may send."""

NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Makes `os.open` refuse a symbolic link, where the system can (Windows can't)."""
_AS_IT_IS: Final[int] = NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Neither a link, nor waiting for a pipe's other end, nor with line ends changed, as Windows would."""
_MAGIC: Final = b"kschedfw recording "
_FIRST_LINE: Final = b"%b%d\n" % (_MAGIC, FORMAT)
_LONGEST_FIRST_LINE: Final = len(_MAGIC) + 12
_HEAD: Final = struct.Struct("<III")
_CHECK: Final = struct.Struct("<I")
_HEAD_SIZE: Final = _HEAD.size + _CHECK.size
_RAW: Final = -zlib.MAX_WBITS
_LONGEST_PACKED: Final = LONGEST_BLOCK + (LONGEST_BLOCK >> 8) + 1024
"""Deflate adds 5 bytes to each 16 KiB that it can't pack."""


class RecordingError(KschedfwError):
    """A recording can't be read or written; the text names the file, where in it, and what would be right."""


class TornError(RecordingError):
    """A segment ends in the middle of a block; `whole` is how many bytes before are complete blocks."""

    def __init__(self, message: str, whole: int) -> None:
        super().__init__(message)
        self.whole = whole


def open_regular(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a file of a recording without following a link and without waiting for a pipe's other end.

    Raises:
        RecordingError: it can't be opened, or is no regular file.
    """
    try:
        descriptor = os.open(path, flags | _AS_IT_IS, 0o600)
    except OSError as error:
        why = "is a symbolic link" if error.errno == errno.ELOOP else f"can't be opened ({error.strerror})"
        raise RecordingError(f"{path}: {why}; a segment of a recording is a regular file") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RecordingError(f"{path}: is no regular file, as a segment of a recording is")
    return os.fdopen(descriptor, "rb" if flags == os.O_RDONLY else "r+b", buffering=0)


class BlockWriter:
    """Appends blocks to a segment; each is in the file, as far as this process is concerned, when `write` returns."""

    def __init__(self, file: BinaryIO) -> None:
        """The file is empty, or ends with a whole block."""
        self._file = file
        self._packer = zlib.compressobj(wbits=_RAW)
        self.size = file.seek(0, os.SEEK_END)
        if not self.size:
            self._append(_FIRST_LINE)

    def write(self, content: bytes) -> None:
        """Append a block of at most `LONGEST_BLOCK` bytes."""
        # Z_SYNC_FLUSH, so that a reader can unpack all that was written so far.
        packed = self._packer.compress(content) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        head = _HEAD.pack(len(packed), len(content), zlib.crc32(packed))
        # With one write, so that a kill leaves no less of it than can be helped.
        self._append(b"".join((head, _CHECK.pack(zlib.crc32(head)), packed)))

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self.size += len(data)

    def close(self) -> None:
        self._file.close()


class BlockReader:
    """Reads the blocks of a segment one after the other. `offset` is where in the file the last one begins."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file
        self.offset = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the blocks, unpacked.

        Raises:
            TornError: the file ends in the middle of a block.
            RecordingError: a block is damaged, or the file is no segment of this version of the format.
        """
        self._file.seek(0)
        whole = self._check_first_line()
        unpacker = zlib.decompressobj(wbits=_RAW)
        while True:
            self.offset = whole
            head = self._read(_HEAD_SIZE, whole)
            if not head:
                return
            packed_length, length, check = self._checked(head)
            packed = self._read(packed_length, whole)
            if len(packed) < packed_length:
                # A block that isn't complete yet: a recorder may still be writing it.
                raise self._torn(whole)
            if zlib.crc32(packed) != check:
                raise self.error("the block is damaged: its checksum differs")
            yield self._unpacked(unpacker, packed, length)
            whole += _HEAD_SIZE + packed_length

    def error(self, problem: str) -> RecordingError:
        return RecordingError(f"{self.path}: offset {self.offset}: {problem}")

    def _check_first_line(self) -> int:
        """Return the length of the first line, which says the version."""
        line = self._read(_LONGEST_FIRST_LINE, 0).partition(b"\n")[0] + b"\n"
        if line == _FIRST_LINE:
            self._file.seek(len(line))
            return len(line)
        # A kill may have left a part of the first line.
        if _FIRST_LINE.startswith(line[:-1]):
            raise self._torn(0)
        version = line[len(_MAGIC) : -1]
        if line.startswith(_MAGIC) and version.isdigit():
            raise self.error(f"format {int(version)} of recordings; this kschedfw reads format {FORMAT}")
        raise self.error(
            f"isn't a segment of a recording, which begins with {_FIRST_LINE.decode().strip()!r}"
        )

    def _checked(self, head: bytes) -> tuple[int, int, int]:
        """The numbers of a block's head: length packed, length unpacked, checksum."""
        if len(head) < _HEAD_SIZE:
            raise self._torn(self.offset)
        numbers, check = head[: _HEAD.size], head[_HEAD.size :]
        packed_length, length, content_check = _HEAD.unpack(numbers)
        if zlib.crc32(numbers) != _CHECK.unpack(check)[0]:
            raise self.error("the head of a block is damaged: its checksum differs")
        # The checksum says that the numbers are those that were written, not that they are harmless.
        if length > LONGEST_BLOCK or packed_length > _LONGEST_PACKED:
            raise self.error(
                f"a block of {length} bytes, {packed_length} packed; at most {LONGEST_BLOCK} are allowed"
            )
        return packed_length, length, content_check

    def _unpacked(self, unpacker: zlib._Decompress, packed: bytes, length: int) -> bytes:
        try:
            # One byte more than is announced: a bomb gets no further, and the flush's own bytes are read, too.
            content = unpacker.decompress(packed, length + 1)
        except zlib.error as error:
            raise self.error(f"the block can't be unpacked: {error}") from None
        if len(content) != length or unpacker.unconsumed_tail or unpacker.eof:
            raise self.error(f"the block has other contents than the {length} bytes that it announces")
        return content

    def _read(self, size: int, whole: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""
        parts: list[bytes] = []
        left = size
        while left:
            try:
                # In pieces, so that a length that exceeds the file doesn't take that much memory.
                part = self._file.read(min(left, 1 << 20))
            except OSError as error:
                raise RecordingError(
                    f"{self.path}: offset {whole}: can't be read ({error.strerror})"
                ) from None
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _torn(self, whole: int) -> TornError:
        return TornError(
            f"{self.path}: offset {whole}: ends in the middle of a block; all before it can be read", whole
        )
