"""Extenders that mean harm, or are broken: a call ends in its time, in little memory, and with an ExtenderError."""

from __future__ import annotations

import gzip
import json
import random
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import trustme
from kschedfw_kubernetes.http_extender import ExtenderError, HTTPExtender
from kschedfw_kubernetes.http_extender import transport as transport_module

from kschedfw import make_node, make_pod
from kschedfw.config.extenders import ExtenderConfig, ExtenderTLSConfig
from kschedfw.framework.clock import SystemClock
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.testing.waiting import PATIENCE

POD = make_pod("web").build()
NODES = [NodeInfo.of(make_node(name).build()) for name in ("a", "b")]
TIMEOUT = 0.3
"""Seconds after which a call with the timeout has to be over, on a busy machine."""
MAX_BYTES = 1 << 20

Behaviour = Callable[[socket.socket, threading.Event], object]


@contextmanager
def hostile(behaviour: Behaviour, *, reads: bool = True, raw: bool = False) -> Iterator[str]:
    """The URL of a server that behaves so with every connection, once the request's headers are there."""
    stopping = threading.Event()
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(5)
            seen = b""
            while reads and b"\r\n\r\n" not in seen:
                seen += connection.recv(65536)
            behaviour(connection, stopping)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):  # else what is unread would undo what was sent
                pass

    def accept() -> None:
        while not stopping.is_set():
            with suppress(OSError):
                connection, _ = listening.accept()
                threads.append(threading.Thread(target=serve, args=(connection,), daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield f"http{'s' if raw else ''}://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stopping.set()
            for thread in (acceptor, *threads):
                thread.join(PATIENCE)


def complaint(url: str, *, timeout: float = TIMEOUT, tls: ExtenderTLSConfig | None = None) -> str:
    """Why the call failed; it has to."""
    config = ExtenderConfig(url, filter_verb="filter", http_timeout=timeout, tls_config=tls)
    with HTTPExtender(config) as extender, pytest.raises(ExtenderError) as caught:
        extender.filter(POD, NODES)
    return caught.value.cause


def drip(*pieces: bytes, start: bytes = b"", pause: float = 0.05) -> Behaviour:
    """Sends these pieces again and again, slowly enough for none to be late."""

    def behave(connection: socket.socket, stopping: threading.Event) -> None:
        connection.sendall(start)
        while not stopping.is_set():
            for piece in pieces:
                connection.sendall(piece)
                stopping.wait(pause)

    return behave


LATE = "no answer within 300ms"


class TestTime:
    """One deadline for the whole call, however busily the other side keeps it waiting."""

    @pytest.mark.parametrize(
        "behaviour",
        [
            pytest.param(drip(b"x", start=b"HTTP/1.1 200 OK\r\nX: "), id="a header in drops"),
            pytest.param(drip(b"X: y\r\n", start=b"HTTP/1.1 200 OK\r\n"), id="headers without end"),
            pytest.param(drip(b"H", start=b""), id="a status line in drops"),
            pytest.param(drip(b"HTTP/1.1 100 Continue\r\n\r\n"), id="continue"),
            pytest.param(drip(b"HTTP/1.1 103 Early Hints\r\n\r\n", pause=0), id="hints in a flood"),
            pytest.param(
                drip(b" ", start=b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"), id="a body in drops"
            ),
            pytest.param(
                drip(b"1\r\n \r\n", start=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                id="chunks without end",
            ),
            pytest.param(lambda _, stopping: stopping.wait(PATIENCE), id="silence"),
        ],
    )
    def test_it_ends_the_call(self, behaviour: Behaviour) -> None:
        with hostile(behaviour) as url:
            assert complaint(url) == LATE

    def test_who_does_not_read(self) -> None:
        """The request is larger than what fits between the two."""
        with hostile(lambda _, stopping: stopping.wait(PATIENCE), reads=False) as url:
            transport = transport_module.Transport(ExtenderConfig(url, http_timeout=TIMEOUT), SystemClock())
            with pytest.raises(ExtenderError, match=LATE):
                transport.post("filter", bytes(64 << 20))
            transport.close()

    def test_redirects_on_and_on(self) -> None:
        """Each comes in time, and the last one would be too many."""

        def behave(connection: socket.socket, stopping: threading.Event) -> None:
            stopping.wait(0.1)
            connection.sendall(b"HTTP/1.1 307 Moved\r\nLocation: /filter\r\nContent-Length: 0\r\n\r\n")

        with hostile(behave) as url:
            assert complaint(url) == LATE

    def test_a_handshake_in_drops(self) -> None:
        with hostile(drip(b"\x16", b"\x03", b"\x03", b"\x40", b"\x00"), reads=False, raw=True) as url:
            assert complaint(url, tls=ExtenderTLSConfig(insecure=True))

    def test_over_tls(self, tmp_path: object) -> None:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)

        def behave(connection: socket.socket, stopping: threading.Event) -> None:
            with context.wrap_socket(connection, server_side=True) as secure:
                drip(b"x", start=b"HTTP/1.1 200 OK\r\nX: ")(secure, stopping)

        tls = ExtenderTLSConfig(ca_data=authority.cert_pem.bytes())
        with hostile(behave, reads=False, raw=True) as url:
            assert complaint(url, timeout=1.0, tls=tls) == "no answer within 1s"


def answering(headers: bytes, body: bytes, times: int = 1) -> Behaviour:
    def behave(connection: socket.socket, stopping: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n")
        for _ in range(times):
            if stopping.is_set():
                return
            connection.sendall(body)

    return behave


class TestSize:
    """An answer has a limit, as it comes and as it unpacks."""

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = transport_module.Transport.__init__
        monkeypatch.setattr(
            transport_module.Transport,
            "__init__",
            lambda self, config, clock: original(self, config, clock, max_bytes=MAX_BYTES),
        )

    @pytest.mark.parametrize(
        ("behaviour", "says"),
        [
            pytest.param(answering(b"", b" " * 65536, 1000), "larger than 1048576 bytes", id="spaces"),
            pytest.param(
                answering(b"Content-Encoding: gzip\r\n", gzip.compress(b" " * (64 << 20)) + b"\0"),
                "larger than 1048576 bytes",
                id="a bomb",
            ),
            pytest.param(
                answering(b"Content-Encoding: gzip\r\n", random.Random(0).randbytes(100)),
                "incorrect header check",
                id="no gzip",
            ),
            pytest.param(
                answering(b"Content-Encoding: gzip\r\n", gzip.compress(b"{}")[:-4]),
                "half a gzip file",
                id="half of one",
            ),
            pytest.param(
                answering(b"Content-Encoding: br\r\n", b"x"), "content-encoding 'br'", id="another encoding"
            ),
            pytest.param(
                answering(b"", b'{"Nodes":{"items":[' + b"{}," * 300_000 + b"{}]}}"),
                "too many values",
                id="values",
            ),
            pytest.param(answering(b"X: " + b"y" * 1_000_000 + b"\r\n", b"{}"), "", id="a long header"),
            pytest.param(answering(b"X: y\r\n" * 1_000_000, b"{}"), "", id="many headers"),
            pytest.param(
                answering(b"Transfer-Encoding: chunked\r\n", b"1;" + b"x" * 65536, 1000),
                "",
                id="a chunk whose extension doesn't end",
            ),
            pytest.param(
                answering(b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 10_000, 1000),
                "",
                id="trailers without end",
            ),
            pytest.param(answering(b"", b'{"Error":' + b"[" * 500_000), "", id="nesting"),
            pytest.param(answering(b"", b"9" * 1_000_000), "", id="a number of a million digits"),
        ],
    )
    def test_it_is_kept(self, behaviour: Behaviour, says: str) -> None:
        tracemalloc.start()
        try:
            with hostile(behaviour) as url:
                assert says in complaint(url, timeout=PATIENCE)
            assert tracemalloc.get_traced_memory()[1] < 16 * MAX_BYTES
        finally:
            tracemalloc.stop()

    def test_what_is_on_the_way_to_it(self) -> None:
        """The body of a redirect isn't read at all."""

        def behave(connection: socket.socket, stopping: threading.Event) -> None:
            connection.sendall(
                b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Encoding: gzip\r\n\r\n"
                + gzip.compress(b" " * (64 << 20))
            )
            stopping.wait(PATIENCE)

        with hostile(behave) as url:
            assert "refused" in complaint(url, timeout=PATIENCE)

    def test_gzip_is_read(self) -> None:
        packed = gzip.compress(b'{"Nodes":{"items":[{"metadata":{"name":"b"}}]}}')
        headers = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(packed)
        with (
            hostile(answering(headers, packed)) as url,
            HTTPExtender(ExtenderConfig(url, filter_verb="filter")) as extender,
        ):
            assert [info.name for info in extender.filter(POD, NODES).feasible] == ["b"]


class TestTexts:
    """What an extender says ends in logs, conditions and events."""

    TEXT = "\x1b]0;owned\x07\r\nI0101 all is well\u202e" + "x" * 5_000_000

    def test_of_an_error(self) -> None:
        body = json.dumps({"Error": self.TEXT}).encode()
        with hostile(answering(b"", body)) as url:
            cause = complaint(url, timeout=PATIENCE)
        assert cause.isprintable()
        assert cause.startswith(r"\x1b]0;owned\a\r\nI0101 all is well\u202exxx")
        assert len(cause) < 1100

    def test_of_names(self) -> None:
        body = json.dumps({"Nodes": {"items": [{"metadata": {"name": self.TEXT}}]}}).encode()
        with hostile(answering(b"", body)) as url:
            cause = complaint(url, timeout=PATIENCE)
        assert cause.isprintable()
        assert len(cause) < 1100

    def test_of_reasons(self) -> None:
        body = json.dumps({"FailedNodes": {"a": self.TEXT}, "FailedAndUnresolvableNodes": {"b": self.TEXT}})
        with (
            hostile(answering(b"", body.encode())) as url,
            HTTPExtender(ExtenderConfig(url, filter_verb="filter")) as extender,
        ):
            result = extender.filter(POD, NODES)
        for reason in (result.failed["a"], result.failed_and_unresolvable["b"]):
            assert reason.isprintable()
            assert len(reason) < 1100


@pytest.mark.parametrize("host", ["x" * 64 + ".example", "a" * 300, "a..b", "xn--a", "[::1", "host:99999"])
def test_redirects_to_nowhere(host: str) -> None:
    location = f"HTTP/1.1 307 Moved\r\nLocation: http://{host}/\r\nContent-Length: 0\r\n\r\n".encode()
    with hostile(lambda connection, _: connection.sendall(location)) as url:
        assert complaint(url, timeout=3.0)


def test_noise() -> None:
    """Whatever bytes come, there is one kind of error."""
    random_bytes = random.Random(1)
    starts = [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
    ]
    for start in starts * 2:
        noise = start + random_bytes.randbytes(random_bytes.randrange(200))
        with hostile(lambda connection, _, noise=noise: connection.sendall(noise)) as url:  # type: ignore[misc]
            assert complaint(url)
