"""Finding and decoding manifests, in pieces."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from kschedfw.api.files import UnreadableError, is_packed, open_file, open_unpacked
from kschedfw.api.limits import DEFAULT_LIMITS, Limits
from kschedfw.api.records import frozen

SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_EXPECTED: Final = "expected .yaml, .yml or .json (or the same with .gz) files"
_PIECE: Final = 1 << 17
_MAGIC: Final = 16
_SIMKUBE: Final = (
    "is no text, and looks like a SimKube trace (MessagePack), which isn't read here; "
    "read the objects themselves, such as `kubectl get -o json` writes them"
)
STANDARD_INPUT: Final = "standard input"


@frozen
class ManifestSource:
    """A text that manifests are read from.

    Attributes:
        name: its name in problems; empty for a text without a name.
        text: the text itself, if it isn't in a file.
        path: its file; `-` is the standard input.
        problem: the reason why it can't be read; empty if it can.
    """

    name: str
    text: str = ""
    path: Path | None = None
    problem: str = ""

    @property
    def size(self) -> int:
        """The approximate size in bytes; 0 if it isn't known."""
        if self.path is None:
            return len(self.text)
        try:
            if is_packed(self.path):
                with open_file(self.path) as file:
                    # A gzip file ends with its unpacked size, modulo 4 GiB.
                    file.seek(-4, io.SEEK_END)
                    return int.from_bytes(file.read(4), "little")
            return self.path.stat().st_size
        except OSError:
            return 0

    def pieces(self, limits: Limits = DEFAULT_LIMITS) -> Iterator[str]:
        """Yield the text, piece by piece.

        Raises:
            UnreadableError: it can't be read, isn't UTF-8, or unpacks to more than the limit.
        """
        if self.problem:
            raise UnreadableError(self.problem)
        if self.path is None:
            text = self.text.removeprefix("\ufeff")
            for start in range(0, len(text), _PIECE):
                piece = text[start : start + _PIECE]
                try:
                    piece.encode()
                except UnicodeEncodeError as error:
                    at = start + error.start
                    raise UnreadableError(f"is no text: {error.reason} at character {at}") from None
                yield piece
            return
        try:
            with _opened(self.path, limits) as file:
                yield from _decoded(_read(file))
        except OSError as error:
            raise UnreadableError(f"can't be read: {error.strerror or error}") from None


def sources(paths: Iterable[Path | str]) -> Iterator[ManifestSource]:
    """Yield files, all manifests in directories (in the order of their names), the standard input for `-`."""
    for given in paths:
        path = Path(given)
        if str(given) == "-":
            yield ManifestSource(STANDARD_INPUT, path=path)
        elif path.is_dir():
            found = False
            for inner in sorted(path.rglob("*")):
                if inner.name.lower().endswith(SUFFIXES) and inner.is_file():
                    found = True
                    yield ManifestSource(str(inner), path=inner)
            if not found:
                yield ManifestSource(str(path), problem=f"no manifest in this directory, {_EXPECTED}")
        else:
            yield ManifestSource(str(path), path=path)


def read_at_most(path: Path | str, most: int) -> bytes:
    """Return the bytes of a file; of a larger one the first `most`, and one more. `-` is the standard input.

    Raises:
        OSError: it can't be read.
    """
    if str(path) == "-":
        return sys.stdin.buffer.read(most + 1)
    with open_file(path) as file:
        return file.read(most + 1)


@contextmanager
def _opened(path: Path, limits: Limits) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
    else:
        with open_unpacked(path, limits) as file:
            yield file


def _read(file: BinaryIO) -> Iterator[bytes]:
    while data := file.read(_PIECE):
        yield data


def _decoded(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    fed = 0
    # The empty piece ends the text.
    for piece in chain(pieces, (b"",)):
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            at = fed - pending + error.start
            if not at and b"version" in piece[:_MAGIC]:
                raise UnreadableError(_SIMKUBE) from None
            raise UnreadableError(f"is not UTF-8 text: {error.reason} at byte {at}") from None
        fed += len(piece)
        if text:
            yield text
