"""Connections to what kschedfw serves: many of them, before and after TLS, and from several clients."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import attrs
import pytest
import trustme
from kschedfw_kubernetes.web.asgi import Receive, Response, Scope, Send

pytest.importorskip("uvicorn")

from kschedfw_kubernetes.web import http_server  # needs uvicorn

from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow

MOST = 8
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
HANGING = b"GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n"
OTHER_CLIENT = "127.0.0.2"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once, except for `/hang`, which waits until the client has gone."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    while scope["path"] == "/hang" and (await receive())["type"] != "http.disconnect":
        pass
    await Response(200, b"ok").send(send)


@attrs.frozen
class Served:
    port: int
    client: ssl.SSLContext | None

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        """A TCP connection from this address of the client; nothing is sent."""
        return socket.create_connection(
            ("127.0.0.1", self.port), timeout=PATIENCE, source_address=(address, 0)
        )

    def ask(self, connection: socket.socket, request: bytes = REQUEST) -> socket.socket:
        """Send a request on a new connection, over TLS if that is served, and read its answer."""
        secure = connection
        if self.client is not None:
            secure = self.client.wrap_socket(connection, server_hostname="127.0.0.1")
        secure.sendall(request)
        if request is REQUEST:
            assert is_answered(secure)
        return secure


def is_answered(connection: socket.socket) -> bool:
    """Whether the server answers before it closes the connection."""
    answer = b""
    while not answer.endswith(b"ok") and (piece := connection.recv(65536)):
        answer += piece
    return answer.startswith(b"HTTP/1.1 200")


@pytest.fixture(scope="module")
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS settings of the server and of its clients."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


@contextmanager
def serving(tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None) -> Iterator[Served]:
    settings = http_server.configured(application)
    if tls is not None:
        settings.ssl_context_factory = lambda _settings, _default: tls[0]
    ready = threading.Event()
    listening = http_server.listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = http_server.Server(settings, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield Served(port, None if tls is None else tls[1])
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture(params=["http", "https"])
def served(
    request: pytest.FixtureRequest,
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Served]:
    """A server with few connections; nothing but their number ends them while a test runs."""
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", MOST)
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 300.0)
    monkeypatch.setattr(http_server, "GRACE_SECONDS", 0.1)
    with serving(contexts if request.param == "https" else None) as running:
        yield running


def closed(connections: Iterable[socket.socket]) -> set[int]:
    """The positions of those that the server has closed; there must be nothing else to read on them."""
    return {index for index, each in enumerate(connections) if not is_open(each)}


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


class TestMany:
    def test_probe_is_answered_while_idle_connections_take_all_places(self, served: Served) -> None:
        with ExitStack() as stack:
            idle = [stack.enter_context(served.ask(served.connect())) for _ in range(MOST)]
            stack.enter_context(served.ask(served.connect()))
            assert len(idle) == MOST

    def test_probe_is_answered_while_working_connections_take_all_places(self, served: Served) -> None:
        with ExitStack() as stack:
            for _ in range(2 * MOST):
                stack.enter_context(served.ask(served.connect(), HANGING))
            stack.enter_context(served.ask(served.connect()))

    def test_connections_that_say_nothing_are_counted_before_tls(self, served: Served) -> None:
        with ExitStack() as stack:
            silent = [stack.enter_context(served.connect()) for _ in range(5 * MOST)]
            stack.enter_context(served.ask(served.connect()))
            assert closed(silent) == set(range(4 * MOST + 1)), "the oldest ones"

    def test_connections_of_one_client_do_not_replace_those_of_another(self, served: Served) -> None:
        with ExitStack() as stack:
            kept = stack.enter_context(served.ask(served.connect(OTHER_CLIENT)))
            many = [stack.enter_context(served.connect()) for _ in range(3 * MOST)]
            stack.enter_context(served.ask(served.connect(OTHER_CLIENT)))
            assert closed(many)
            kept.sendall(REQUEST)
            assert is_answered(kept)

    def test_idle_connections_are_replaced_before_one_whose_request_is_in_progress(
        self, served: Served
    ) -> None:
        with ExitStack() as stack:
            working = stack.enter_context(served.ask(served.connect(), HANGING))
            for _ in range(3 * MOST):
                stack.enter_context(served.ask(served.connect()))
            assert is_open(working)


def test_handshake_that_does_not_begin_ends_in_time(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.2)
    with serving(contexts) as served, served.connect() as connection:
        assert connection.recv(1) == b""


def test_client_that_speaks_no_tls_is_closed(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with serving(contexts) as served:
        with served.connect() as connection:
            connection.sendall(REQUEST)
            assert b"HTTP" not in connection.recv(65536)
        served.ask(served.connect()).close()


def test_request_that_comes_with_the_end_of_the_handshake_is_answered(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    """In one packet: it is there before the server knows that the handshake is over."""
    with serving(contexts) as served, served.connect() as connection:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        secure = contexts[1].wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        while True:
            try:
                secure.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65536))
        secure.write(REQUEST)
        connection.sendall(outgoing.read())
        while True:
            incoming.write(connection.recv(65536))
            try:
                assert secure.read(12) == b"HTTP/1.1 200"
                break
            except ssl.SSLWantReadError:  # session tickets
                pass
