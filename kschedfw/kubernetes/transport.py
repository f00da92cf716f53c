"""Requests and answers over kept connections, each with a deadline and a largest size.

Plain blocking sockets and the standard library's HTTP: measured against httpx2 and aiohttp, that takes the least CPU
time per write, and nothing has to be handed between threads. What the standard library hasn't got is a deadline for
an answer as a whole: here each read waits no longer than what is left of it.
"""

from __future__ import annotations

import base64
import contextlib
import io
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs

from kschedfw.framework.clock import Clock
from kschedfw.kubernetes.credentials import Credentials, Identity
from kschedfw.kubernetes.errors import ConnectionConfigError, UnavailableError
from kschedfw.kubernetes.kubeconfig import ConnectionConfig

_MIB: Final = 1 << 20
_BUFFER: Final = 1 << 16


@attrs.frozen
class TransportLimits:
    """How long to wait for the API server, in seconds, and how much to take from it.

    Attributes:
        connect: for a connection, TLS included.
        request: for an answer, from sending the request to its last byte.
        list: the same for a page of a list.
        quiet: without a byte in a watch, after which the other side counts as gone; the API server sends a bookmark
            every minute.
        response: bytes of an answer.
        event: bytes of one change in a watch.
        idle_connections: that are kept.
    """

    connect: float = 10.0
    request: float = 30.0
    list: float = 60.0
    quiet: float = 150.0
    response: int = 256 * _MIB
    event: int = 16 * _MIB
    idle_connections: int = 64


DEFAULT_TRANSPORT_LIMITS: Final = TransportLimits()


@attrs.frozen
class Reply:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@attrs.frozen
class Request:
    """What is asked; `target` is the path with its query."""

    method: str
    target: str
    body: bytes = b""
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]}"


class _Connection:
    """A socket that is read with a deadline."""

    def __init__(self, sock: socket.socket, identity: Identity, clock: Clock) -> None:
        self.sock, self.identity = sock, identity
        self.deadline = 0.0
        self._clock = clock

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self), _BUFFER)

    def wait_at_most(self, seconds: float) -> None:
        self.deadline = self._clock.monotonic() + seconds

    def set_timeout(self) -> None:
        """Let the next read or write wait as long as there is time; raises TimeoutError where there is none."""
        left = self.deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.sock.settimeout(left)

    @property
    def is_open(self) -> bool:
        """Whether the other side hasn't closed it while it was idle."""
        try:
            readable, _, _ = select.select([self.sock], [], [], 0)
        except (OSError, ValueError):
            return False
        return not readable

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # wakes who reads in another thread
        with contextlib.suppress(OSError):
            self.sock.close()


class _DeadlineReader(io.RawIOBase):
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.set_timeout()
        return self._connection.sock.recv_into(buffer)


class Stream:
    """An answer that goes on, such as a watch."""

    def __init__(
        self, request: Request, connection: _Connection, response: HTTPResponse, quiet: float
    ) -> None:
        self._request, self._connection, self._response, self._quiet = request, connection, response, quiet

    def chunks(self) -> Iterator[bytes]:
        """What comes, as it comes, until the other side ends it or `close` is called.

        Raises:
            UnavailableError: the connection broke, or nothing came for too long.
        """
        try:
            while True:
                self._connection.wait_at_most(self._quiet)
                chunk = self._response.read1(_BUFFER)
                if not chunk:
                    return
                yield chunk
        except (OSError, HTTPException, ValueError) as error:
            raise UnavailableError(f"{self._request}: {_why(error)}") from None

    def close(self) -> None:
        self._connection.close()


class Transport:
    """Connections to one API server. Thread-safe."""

    def __init__(
        self,
        config: ConnectionConfig,
        credentials: Credentials,
        clock: Clock,
        user_agent: str,
        limits: TransportLimits = DEFAULT_TRANSPORT_LIMITS,
    ) -> None:
        self._url = urlsplit(config.server)
        self._config, self._credentials, self._clock, self._limits = config, credentials, clock, limits
        self._prefix = self._url.path.rstrip("/")
        self._proxy = _proxy(config, self._url)
        host = self._url.netloc.rpartition("@")[2]
        self._head = f"Host: {host}\r\nUser-Agent: {user_agent}\r\nAccept: application/json\r\n"
        self._idle: list[_Connection] = []
        self._streams: set[_Connection] = set()
        self._lock = threading.Lock()
        self._closed = False

    def request(
        self, request: Request, timeout: float | None = None, before_send: Callable[[], None] | None = None
    ) -> Reply:
        """Send a request and read the whole answer; `before_send` may raise to hold it back at the last moment.

        Raises:
            UnavailableError: no answer came, or one beyond a limit.
            CredentialsError: there are none to send it with.
        """
        deadline = self._limits.request if timeout is None else timeout
        reply, identity = self._exchange(request, deadline, before_send)
        if reply.status == 401 and self._credentials.refuse(identity):
            reply, _ = self._exchange(request, deadline, before_send)
        return reply

    def stream(self, target: str) -> Stream | Reply:
        """Begin to read an answer that goes on; a Reply where the server refuses to.

        Raises:
            UnavailableError: no answer came.
            CredentialsError: there are none to send it with.
        """
        request = Request("GET", target)
        connection = self._connect(self._limits.connect)
        try:
            with self._lock:
                if self._closed:
                    raise UnavailableError(f"{request}: the client is closed")
                self._streams = {each for each in self._streams if each.sock.fileno() >= 0}
                self._streams.add(connection)
            connection.wait_at_most(self._limits.request)
            response = self._send(connection, request, None)
            if response.status == 200:
                return Stream(request, connection, response, self._limits.quiet)
            if response.status == 401:
                self._credentials.refuse(connection.identity)
            reply = self._read(request, response)
        except BaseException:
            connection.close()
            raise
        connection.close()
        return reply

    def close(self) -> None:
        """Close all connections; streams that are being read end."""
        with self._lock:
            self._closed = True
            connections = [*self._idle, *self._streams]
            self._idle.clear()
            self._streams.clear()
        for connection in connections:
            connection.close()

    def _exchange(
        self, request: Request, timeout: float, before_send: Callable[[], None] | None
    ) -> tuple[Reply, Identity]:
        connection = self._take(timeout)
        try:
            connection.wait_at_most(timeout)
            response = self._send(connection, request, before_send)
            reply = self._read(request, response)
        except BaseException:
            connection.close()
            raise
        self._put_back(connection, response)
        return reply, connection.identity

    def _send(
        self, connection: _Connection, request: Request, before_send: Callable[[], None] | None
    ) -> HTTPResponse:
        authorization = connection.identity.authorization
        head = f"{request.method} {self._prefix}{request.target} HTTP/1.1\r\n{self._head}"
        if authorization:
            head += f"Authorization: {authorization}\r\n"
        if request.body:
            head += f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n"
        elif request.method != "GET":
            head += "Content-Length: 0\r\n"
        message = head.encode("ascii") + b"\r\n" + request.body
        response = HTTPResponse(cast("socket.socket", connection), method=request.method)
        connection.set_timeout()
        if before_send is not None:
            before_send()
        try:
            connection.sock.sendall(message)
            response.begin()
        except (OSError, HTTPException, ValueError) as error:
            raise UnavailableError(f"{request}: {_why(error)}", uncertain=request.method != "GET") from None
        return response

    def _read(self, request: Request, response: HTTPResponse) -> Reply:
        limit = self._limits.response
        uncertain = request.method != "GET"
        if response.length is None and not response.chunked:
            # Its head was cut, or else nobody could tell whether the body was.
            raise UnavailableError(f"{request}: the answer doesn't say how long it is", uncertain=uncertain)
        try:
            body = response.read(limit + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise UnavailableError(f"{request}: {_why(error)}", uncertain=uncertain) from None
        if len(body) > limit:
            raise UnavailableError(f"{request}: the answer has more than {limit} bytes", uncertain=uncertain)
        if response.length:  # to read an amount doesn't notice by itself that the answer was cut
            raise UnavailableError(f"{request}: the answer was cut", uncertain=uncertain)
        return Reply(response.status, dict(response.headers.items()), body)

    # Connections

    def _take(self, timeout: float) -> _Connection:
        identity = self._credentials.identity()
        while True:
            with self._lock:
                if self._closed:
                    raise UnavailableError("the client is closed")
                if not self._idle:
                    break
                connection = self._idle.pop()
            if connection.identity.tls is identity.tls and connection.is_open:
                connection.identity = identity
                return connection
            connection.close()
        return self._connect(min(timeout, self._limits.connect))

    def _put_back(self, connection: _Connection, response: HTTPResponse) -> None:
        with self._lock:
            if not (self._closed or response.will_close) and len(self._idle) < self._limits.idle_connections:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self, timeout: float) -> _Connection:
        identity = self._credentials.identity()
        host, port = self._url.hostname or "", self._url.port
        through = self._proxy
        address = (host, port) if through is None else (through.hostname or "", through.port)
        connection: HTTPConnection
        if self._url.scheme == "https":
            server_name = self._config.cluster.tls_server_name or host
            tls = identity.tls or self._config.tls()
            connection = _TlsConnection(*address, tls=tls, server_name=server_name, timeout=timeout)
        else:
            connection = HTTPConnection(*address, timeout=timeout)
        if through is not None:
            connection.set_tunnel(host, port, headers=_proxy_headers(through))
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise UnavailableError(
                f"{self._config.server}: its certificate isn't accepted: {error.verify_message}"
            ) from None
        except (OSError, HTTPException) as error:
            raise UnavailableError(f"{self._config.server}: can't connect: {_why(error)}") from None
        sock: socket.socket = connection.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _notice_dead_peers(sock)
        return _Connection(sock, identity, self._clock)


class _TlsConnection(HTTPSConnection):
    """With another name in the certificate than the one that is connected to."""

    def __init__(
        self, host: str, port: int | None, *, tls: ssl.SSLContext, server_name: str, timeout: float
    ) -> None:
        super().__init__(host, port, context=tls, timeout=timeout)
        self._tls, self._server_name = tls, server_name

    def connect(self) -> None:
        HTTPConnection.connect(self)  # and the proxy's tunnel
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def _notice_dead_peers(sock: socket.socket) -> None:
    """Have the kernel ask whether the other side is there, so that a watch doesn't hang on a machine that is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _proxy(config: ConnectionConfig, url: SplitResult) -> SplitResult | None:
    """The proxy to go through: that of the kubeconfig, else the environment's."""
    address = config.cluster.proxy_url
    if not address and url.scheme == "https" and not proxy_bypass(url.netloc.rpartition("@")[2]):
        address = getproxies().get("https", "")
    if not address:
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme != "http":
        raise ConnectionConfigError(
            f"{config.source}: a proxy has to be an HTTP one (http://host:port), not {proxy.scheme}"
        )
    return proxy


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
