"""Connections with TLS and proxies. Everything on them ends by a deadline.

Sockets have timeouts for single reads and writes, and `socket.create_connection` gives its whole timeout to each
address of a host. So each step waits only until the deadline of the call. A look-up of a name is limited by the system
alone.
"""

from __future__ import annotations

import base64
import contextlib
import select
import socket
import ssl
from typing import Final
from urllib.parse import unquote, urlsplit

import attrs

from kschedfw import Clock
from kschedfw_kubernetes.http.answers import Answer, MalformedAnswerError

_BUFFER: Final = 1 << 14
"""The most bytes of a read or a write, which is the size of TLS's largest record. Each read allocates as many."""
_MOST_AT_ONCE: Final = 1 << 20
_CLOSE_ENOUGH: Final = 1.1
_LONGER: Final = 1.05
_SHORT_REST: Final = 1.0
"""Seconds of idle time up to which a connection isn't checked. Servers keep idle connections longer."""


class Connection:
    """A socket that is read and written with a deadline. `tls` is the context that it was made with, if any."""

    def __init__(self, sock: socket.socket, clock: Clock) -> None:
        self.sock = sock
        self.tls: ssl.SSLContext | None = None
        self._clock = clock
        self._deadline = 0.0
        self._timeout = -1.0
        """The timeout that is set on the socket, in seconds."""
        self._idle_since = 0.0

    def receive(self) -> bytes:
        """Wait for the next bytes until the deadline; none if the peer has ended. Raises OSError."""
        self.set_timeout()
        return self.sock.recv(_BUFFER)

    def receive_all(self) -> bytes:
        """Wait as `receive`, and return all bytes that have arrived, at most a mebibyte or so."""
        received = self.receive()
        if received:
            # Whatever fails here fails again in the next read, which has to wait.
            with contextlib.suppress(OSError):
                received += self.receive_arrived()
        return received

    def receive_arrived(self) -> bytes:
        """Return all bytes that have arrived, at most a mebibyte or so; none if the peer has ended.

        `receive` returns a single record of TLS, however many have arrived, and servers make one of each change.

        Raises:
            BlockingIOError: nothing has arrived.
            OSError: the connection broke.
        """
        # Without a timeout a read that finds nothing costs less than asking before each read.
        if self._timeout:
            self.sock.settimeout(0.0)
            self._timeout = 0.0
        pieces: list[bytes] = []
        size = 0
        try:
            while size < _MOST_AT_ONCE and (piece := self.sock.recv(_BUFFER)):
                pieces.append(piece)
                size += len(piece)
        except ssl.SSLWantReadError:
            if not pieces:
                raise BlockingIOError from None
        except OSError:
            # The error is raised again by the next read.
            if not pieces:
                raise
        return b"".join(pieces)

    def send(self, message: bytes) -> None:
        """Send all of it by the deadline. Raises OSError."""
        if len(message) <= _BUFFER:
            self.set_timeout()
            self.sock.sendall(message)
            return
        # In pieces, each with what is left: TLS gives the timeout to each of its records.
        for start in range(0, len(message), _BUFFER):
            self.set_timeout()
            self.sock.sendall(message[start : start + _BUFFER])

    def wait_at_most(self, seconds: float) -> None:
        """Let reads and writes from now on end within these seconds."""
        self._deadline = self._clock.monotonic() + seconds

    def set_timeout(self) -> None:
        """Let the next read or write wait until the deadline. Raises TimeoutError if it has passed.

        The socket's timeout is changed only if it differs by more than a tenth: setting it releases the interpreter to
        other threads, which may keep it for milliseconds.
        """
        left = self._deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if not left <= self._timeout <= _CLOSE_ENOUGH * left:
            # A bit longer, so that it also serves a next request of the same duration, of which less has passed.
            self._timeout = _LONGER * left
            self.sock.settimeout(self._timeout)

    def rest(self) -> None:
        """Note that the connection is idle from now on."""
        self._idle_since = self._clock.monotonic()

    def rested(self) -> float:
        """Return the seconds for which the connection has been idle."""
        return self._clock.monotonic() - self._idle_since

    @property
    def is_open(self) -> bool:
        """Return whether the peer has kept the idle connection open.

        After a short idle time, return True without a check.
        """
        return self.rested() < _SHORT_REST or self.is_silent

    @property
    def is_silent(self) -> bool:
        """Return whether nothing has arrived on an idle connection, not even its end."""
        try:
            readable, _, _ = select.select([self.sock], [], [], 0)
        # ValueError: the socket is closed already, or its number is too large for `select`.
        except (OSError, ValueError):
            return False
        # An idle connection is readable at its end, or if the peer has sent something that nobody asked for.
        return not readable

    def shut_down(self) -> None:
        """End the connection, of which another thread that reads from it is told; closing it alone doesn't."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.shut_down()
        with contextlib.suppress(OSError):
            self.sock.close()


@attrs.frozen
class Proxy:
    """An HTTP proxy. `authorization` is the header's value for its user and password; empty without them."""

    host: str
    port: int
    authorization: str = attrs.field(default="", repr=False)

    @classmethod
    def parse(cls, address: str) -> Proxy:
        """Read an address such as `http://user:password@10.0.0.1:3128`; `http://` may be left out.

        Raises:
            ValueError: it isn't the address of an HTTP proxy. The message doesn't show it: it may have a password.
        """
        try:
            url = urlsplit(address if "://" in address else f"http://{address}")
            host, port = url.hostname, url.port
        except ValueError:  # The port is beyond 65535, or an IPv6 address lacks a bracket.
            host = port = None
        if not host or port == 0:
            raise ValueError("a proxy has to be an address such as http://10.0.0.1:3128")
        if url.scheme != "http":
            raise ValueError(f"a proxy has to be an HTTP one (http://host:port), not {url.scheme}")
        return cls(host, 80 if port is None else port, basic(url.username or "", url.password or ""))


def basic(user: str, password: str) -> str:
    """Return the value of an Authorization header for a URL's user and password; empty without a user."""
    if not user:
        return ""
    pair = f"{unquote(user)}:{unquote(password)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


@attrs.frozen(eq=False)
class Peer:
    """The far end of connections.

    With `tls`, its certificate is checked for `server_name`, or else for the host. Connections go through a `proxy` by
    CONNECT.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: Proxy | None = None


def dial(peer: Peer, seconds: float, clock: Clock) -> Connection:
    """Return a new connection, made within these seconds.

    Raises:
        OSError, MalformedAnswerError, UnicodeError: there is none. UnicodeError: the host's name can't be looked up.
    """
    near = peer if peer.proxy is None else peer.proxy
    connection = _connected(near.host, near.port, seconds, clock)
    connection.tls = peer.tls
    try:
        sock = connection.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _notice_dead_peers(sock)
        if peer.proxy is not None:
            _open_tunnel(connection, peer, peer.proxy)
        if peer.tls is not None:
            connection.set_timeout()
            connection.sock = peer.tls.wrap_socket(
                sock, server_hostname=peer.server_name or peer.host, do_handshake_on_connect=False
            )
            connection.sock.do_handshake()
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(host: str, port: int, seconds: float, clock: Clock) -> Connection:
    """Return a connection to the first address of the host that accepts one."""
    until = clock.monotonic() + seconds
    failure: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connection = Connection(socket.socket(family, kind, protocol), clock)
        try:
            connection.wait_at_most(until - clock.monotonic())
            connection.set_timeout()
            connection.sock.connect(address)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure or OSError(f"{host} has no address")


def _open_tunnel(connection: Connection, peer: Peer, proxy: Proxy) -> None:
    host = f"[{peer.host}]" if ":" in peer.host else peer.host.encode("idna").decode()
    head = f"CONNECT {host}:{peer.port} HTTP/1.1\r\nHost: {host}:{peer.port}\r\n"
    if proxy.authorization:
        head += f"Proxy-Authorization: {proxy.authorization}\r\n"
    connection.send(f"{head}\r\n".encode("ascii"))
    answer = Answer(connection.receive)
    if answer.status != 200:
        raise MalformedAnswerError(f"the proxy answers with status {answer.status}")


def _notice_dead_peers(sock: socket.socket) -> None:
    """Turn on TCP keepalive, so that a watch ends if the peer's machine is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A dead peer is noticed after half a minute: 15 s of silence and three probes. A proxy answers these probes itself,
    # so reflectors also limit the length of watches. macOS lacks some of the options.
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def why(error: Exception) -> str:
    """Return a text for a failure of a connection."""
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
