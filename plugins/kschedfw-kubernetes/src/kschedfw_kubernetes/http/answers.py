"""Answers of HTTP/1.1 (RFC 9112), read from a connection.

The standard library's reader makes an email message of each head and a file of each body, which took more processor
time than everything else about a binding: 200 µs for a request, of which this reader needs 20.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Final, TypeAlias

import attrs

_LONGEST_HEAD: Final = 64 * 1024
"""The most bytes of an answer's head, of the line before a chunk, and of the fields after the last one."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_BODILESS: Final = (204, 304)


Receive: TypeAlias = Callable[[], bytes]
"""Waits for the next bytes of a connection and returns them; none at its end. Raises OSError."""


class MalformedAnswerError(HTTPException):
    """The error of an answer that isn't HTTP, or that breaks off."""


@attrs.frozen
class Head:
    """The status of an answer, and the fields that are read, by their names in lower case."""

    status: int
    version: str
    fields: Mapping[str, str]

    @property
    def is_chunked(self) -> bool:
        return "transfer-encoding" in self.fields

    @property
    def length(self) -> int | None:
        """The number of bytes in the body; None if only its end tells, or the connection's end."""
        if self.is_chunked:
            return None
        if self.status in _BODILESS:
            return 0
        text = self.fields.get("content-length", "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None

    @property
    def keeps_open(self) -> bool:
        """Return whether the peer keeps the connection for another request."""
        options = self.fields.get("connection", "").lower()
        return "close" not in options if self.version == "HTTP/1.1" else "keep-alive" in options


class Answer:
    """An answer whose head has been read.

    Raises:
        MalformedAnswerError: its head isn't one of HTTP/1.1, or the connection ended within it.
        OSError: the connection broke.
    """

    def __init__(self, receive: Receive, rest: bytes = b"") -> None:
        """Read the head. `rest` are the bytes that have arrived after an answer before."""
        self._receive_next = receive
        self._rest = rest
        self._left = 0
        """The bytes of the current chunk that aren't read."""
        self._is_within = False
        """True while the end of a chunk is still to come."""
        self._has_ended = False
        self.head = self._read_head()
        while 100 <= self.head.status < 200:
            # Only announces the answer.
            self.head = self._read_head()

    @property
    def status(self) -> int:
        return self.head.status

    def receive_by(self, receive: Receive) -> None:
        """Receive the bytes that haven't arrived by another function, which may raise BlockingIOError.

        Then `read_some` raises it, too, and goes on at the next call.
        """
        self._receive_next = receive

    @property
    def rest(self) -> bytes:
        """The bytes that have arrived and aren't read."""
        return self._rest

    def read(self, limit: int) -> bytes:
        """Return the whole body, or its first bytes if it has more than `limit`.

        Raises what the constructor raises; also if the answer doesn't say how long it is.
        """
        if self.head.is_chunked:
            return self._read_chunks(limit)
        length = self.head.length
        if length is None:
            # Without a length, a truncated body couldn't be detected. Perhaps the head itself is truncated.
            raise MalformedAnswerError("the answer doesn't say how long it is")
        parts, size = [self._rest], len(self._rest)
        while size < min(length, limit + 1):
            parts.append(self._receive())
            size += len(parts[-1])
        body = b"".join(parts)
        self._rest = body[length:]
        self._has_ended = len(body) >= length
        return body[:length]

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives, up to its end; without a length that is the connection's.

        Raises what the constructor raises.
        """
        left = self.head.length
        if left is None:
            if not self.head.is_chunked and "content-length" in self.head.fields:
                raise MalformedAnswerError("the answer doesn't say how long it is")
            while piece := self.read_some():
                yield piece
            self._has_ended = True
            return
        while left:
            piece, self._rest = self._rest[:left], self._rest[left:]
            if piece:
                left -= len(piece)
                self._has_ended = not left
                yield piece
            else:
                self._rest = self._receive()
        self._has_ended = True

    @property
    def has_ended(self) -> bool:
        """True once the whole body was read."""
        return self._has_ended

    def read_some(self) -> bytes:
        """Wait for the next bytes of the body, and return all that have arrived; none at its end.

        Raises what the constructor raises.
        """
        if not self.head.is_chunked:
            piece, self._rest = self._rest, b""
            return piece or self._receive_next()
        while not self._has_ended:
            if piece := self._arrived_chunks():
                return piece
            if not self._has_ended:
                self._rest += self._receive()
        return b""

    def _receive(self) -> bytes:
        received = self._receive_next()
        if not received:
            raise MalformedAnswerError("the answer was cut")
        return received

    def _read_head(self) -> Head:
        # An answer mostly arrives in one piece, so nothing is joined.
        received = self._rest or self._receive()
        while (end := received.find(_END_OF_HEAD)) < 0:
            if len(received) > _LONGEST_HEAD:
                raise MalformedAnswerError(f"its head has more than {_LONGEST_HEAD} bytes")
            received += self._receive()
        self._rest = received[end + len(_END_OF_HEAD) :]
        head = received[:end]
        # A line that continues a field is forbidden: readers take it differently.
        if b"\n " in head or b"\n\t" in head:
            raise MalformedAnswerError("the answer's head has a continued line, which isn't a field")
        return _head(head)

    def _read_chunks(self, limit: int) -> bytes:
        pieces, size = [], 0
        while size <= limit and (piece := self.read_some()):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def _arrived_chunks(self) -> bytes:
        """Take the data of chunks from the bytes that have arrived."""
        data, position, pieces = self._rest, 0, []
        while True:
            if self._left:
                piece = data[position : position + self._left]
                if not piece:
                    break
                pieces.append(piece)
                position += len(piece)
                self._left -= len(piece)
            elif self._is_within:
                if len(data) < position + 2:
                    break
                if data[position : position + 2] != b"\r\n":
                    raise MalformedAnswerError("a chunk is longer than it says")
                position += 2
                self._is_within = False
            else:
                end = data.find(b"\r\n", position)
                if end < 0:
                    if len(data) - position > _LONGEST_HEAD:
                        raise MalformedAnswerError("a chunk's length never ends")
                    break
                self._left = _length_of_chunk(data[position:end])
                if not self._left:
                    position = self._end_of_chunks(data, position, end)
                    break
                self._is_within = True
                position = end + 2
        self._rest = data[position:]
        return b"".join(pieces)

    def _end_of_chunks(self, data: bytes, start: int, end: int) -> int:
        """Return the position after the body. Before it has arrived as a whole, return that of the last chunk."""
        # The fields after the last chunk are of no use here. Without any, its line and an empty one are the end.
        after = data.find(_END_OF_HEAD, end)
        if after < 0:
            if len(data) - end > _LONGEST_HEAD:
                raise MalformedAnswerError(f"more than {_LONGEST_HEAD} bytes follow the last chunk")
            return start
        self._has_ended = True
        return after + len(_END_OF_HEAD)


def _head(content: bytes) -> Head:
    first = content.partition(b"\r\n")[0]
    version, _, rest = first.partition(b" ")
    status = rest[:3]
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit():
        begins = first[:40].decode("latin-1")
        raise MalformedAnswerError(f"the answer begins with {begins!r}, not with HTTP/1.1 and a status")
    fields: dict[str, str] = {}
    for line in _read_lines(content):
        name, value = _field(line)
        if name in _ONCE and fields.get(name, value) != value:
            raise MalformedAnswerError(f"the answer has two {name}: {fields[name]}, {value}"[:200])
        fields[name] = value
    if fields.get("transfer-encoding", "chunked").lower() != "chunked":
        raise MalformedAnswerError("the answer has a transfer-encoding other than chunked")
    return Head(int(status), version.decode(), fields)


_read_lines: Final = re.compile(rb"(?i)\r\n((?:con|tr|re|lo)[^\r]*(?:\r(?!\n)[^\r]*)*)").findall
"""Returns the lines of the fields that are read: of the body, the connection, Retry-After and Location.

One search, which takes a third of a look at each line: most fields are the server's notes.
"""
_ONCE: Final = ("content-length", "transfer-encoding")
"""The fields that tell where the answer ends. If two differ, readers take the answer differently."""


def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.decode("latin-1").partition(":")
    # A space before the colon is forbidden: readers take it differently.
    if not colon or name != name.strip():
        raise MalformedAnswerError(f"the answer's head has {line[:40]!r}, which isn't a field")
    return name.lower(), value.strip(" \t")


def _length_of_chunk(line: bytes) -> int:
    digits = line.partition(b";")[0].strip(b" \t")
    # `int` would also take signs, underscores and spaces.
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise MalformedAnswerError(f"{line[:40]!r} isn't the length of a chunk")
    return int(digits, 16)
