"""Answers in any pieces, and those that no reader may accept; the standard library's reader is the oracle."""

from __future__ import annotations

import io
import socket
from http.client import HTTPResponse
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_kubernetes.http.answers import Answer, MalformedAnswerError

from kschedfw.testing.properties import examples

MANY = settings(max_examples=examples(2000, usual=100))


class Pieces:
    """A source that hands out these bytes, cut at these places."""

    def __init__(self, content: bytes, cuts: list[int] | None = None) -> None:
        places = sorted({min(cut, len(content)) for cut in cuts or ()} | {0, len(content)})
        self._pieces = [content[start:end] for start, end in pairwise(places)]

    def receive(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


class Recorded:
    """A socket for the standard library's reader."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._content)


def of_standard_library(content: bytes) -> tuple[int, bytes]:
    response = HTTPResponse(cast("socket.socket", Recorded(content)), method="POST")
    response.begin()
    return response.status, response.read()


def chunked(pieces: list[bytes], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces)
    return chunks + b"0\r\n" + trailer + b"\r\n"


CUTS = st.lists(st.integers(0, 400), max_size=30)
BODIES = st.lists(st.binary(min_size=1, max_size=60), max_size=6)
STATUSES = st.sampled_from(["200 OK", "201 Created", "409 Conflict", "503", "204 No Content"])
FIELDS = st.lists(
    st.sampled_from(["Date: x", "Audit-Id:1", "X-A: a: b", "Retry-After:  3 ", "Connection: close"]),
    max_size=4,
).map(lambda lines: "".join(f"{line}\r\n" for line in lines))
ANNOUNCED = st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"])


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    status, pieces = draw(STATUSES), draw(BODIES)
    head = f"HTTP/1.1 {status}\r\n{draw(FIELDS)}"
    if status.startswith("204"):
        return draw(ANNOUNCED) + f"{head}\r\n".encode()
    if draw(st.booleans()):
        body = b"".join(pieces)
        return draw(ANNOUNCED) + f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    body = chunked(pieces, draw(st.sampled_from([b"", b";a=b"])), draw(st.sampled_from([b"", b"X: y\r\n"])))
    return draw(ANNOUNCED) + f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body


@MANY
@given(answers(), CUTS)
def test_an_answer_is_read_as_the_standard_library_does_wherever_it_is_cut(
    content: bytes, cuts: list[int]
) -> None:
    answer = Answer(Pieces(content, cuts).receive)
    assert (answer.status, answer.read(10_000)) == of_standard_library(content)
    assert answer.head.keeps_open is (b"Connection: close" not in content)


@MANY
@given(BODIES, CUTS)
def test_a_stream_has_every_byte_once_and_in_order(pieces: list[bytes], cuts: list[int]) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = Answer(Pieces(head + chunked(pieces), cuts).receive)
    assert b"".join(iter(answer.read_some, b"")) == b"".join(pieces)


@MANY
@given(answers(), st.data())
def test_an_answer_that_breaks_off_is_never_taken_for_a_whole_one(
    content: bytes, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(MalformedAnswerError):
        Answer(Pieces(content[:cut]).receive).read(10_000)


@MANY
@given(st.lists(answers(), min_size=2, max_size=4), CUTS)
def test_answers_to_several_requests_are_read_one_after_another(
    contents: list[bytes], cuts: list[int]
) -> None:
    source, rest = Pieces(b"".join(contents), cuts), b""
    for content in contents:
        answer = Answer(source.receive, rest)
        assert (answer.status, answer.read(10_000)) == of_standard_library(content)
        rest = answer.rest
    assert not rest + source.receive()


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not with HTTP/1.1 and a status"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "not with HTTP/1.1 and a status"),
        (b"HTTP/2 200\r\n\r\n", "not with HTTP/1.1 and a status"),
        (b"HTTP/1.1 200 OK\r\nContent-Length 3\r\n\r\nabc", "isn't a field"),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc", "isn't a field"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n", "isn't a field"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            "two content-length: 3, 4",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "other than chunked"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", "doesn't say how long"),
        (b"HTTP/1.1 200 OK\r\n\r\nabc", "doesn't say how long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "isn't the length of a chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\n", "isn't the length of a chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than it says"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000, "more than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000, "never ends"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 20_000,
            "follow the last chunk",
        ),
    ],
)
def test_what_no_reader_may_accept_is_refused(head: bytes, problem: str) -> None:
    cuts = list(range(0, len(head), 1000))
    with pytest.raises(MalformedAnswerError, match=problem):
        Answer(Pieces(head, cuts).receive).read(100)


def test_a_body_beyond_the_limit_isnt_read_to_its_end() -> None:
    for head in (b"Content-Length: 4000000000", b"Transfer-Encoding: chunked"):
        content = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\nee6b2800\r\n" + b"x" * 5000
        assert 100 < len(Answer(Pieces(content, list(range(0, 5000, 50))).receive).read(100)) < 300
