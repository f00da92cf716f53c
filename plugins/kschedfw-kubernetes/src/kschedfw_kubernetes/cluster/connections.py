"""Connections with TLS, proxies, and a deadline for reads."""

from __future__ import annotations

import base64
import contextlib
import select
import socket
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from kschedfw import Clock
from kschedfw_kubernetes.cluster.credentials import Identity
from kschedfw_kubernetes.cluster.errors import ConnectionConfigError, UnavailableError
from kschedfw_kubernetes.cluster.kubeconfig import ConnectionConfig

BUFFER: Final = 1 << 16
_MOST_AT_ONCE: Final = 1 << 20
_CLOSE_ENOUGH: Final = 1.1
_LONGER: Final = 1.05
_SHORT_REST: Final = 1.0
"""Seconds of idle time up to which a connection isn't checked. Servers keep idle connections longer."""


class Connection:
    """A socket that is read with a deadline."""

    def __init__(self, sock: socket.socket, identity: Identity, clock: Clock) -> None:
        self.sock, self.identity = sock, identity
        self._clock = clock
        self._deadline = 0.0
        self._timeout = -1.0
        """The timeout that is set on the socket, in seconds."""
        self._idle_since = 0.0

    def receive(self) -> bytes:
        """Wait for the next bytes until the deadline; none if the peer has ended. Raises OSError."""
        self.set_timeout()
        return self.sock.recv(BUFFER)

    def receive_all(self) -> bytes:
        """Wait as `receive`, and return all bytes that have arrived, at most a mebibyte or so.

        `receive` returns a single record of TLS, however many have arrived, and servers make one of each change.
        """
        pieces = [self.receive()]
        size = len(pieces[0])
        if size:
            # Without a timeout a read that finds nothing costs less than asking before each read.
            self.sock.settimeout(0.0)
            self._timeout = 0.0
            # Whatever fails here fails again in the next read, which has to wait.
            with contextlib.suppress(OSError):
                while size < _MOST_AT_ONCE and (piece := self.sock.recv(BUFFER)):
                    pieces.append(piece)
                    size += len(piece)
        return b"".join(pieces)

    def wait_at_most(self, seconds: float) -> None:
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
        if self.rested() < _SHORT_REST:
            return True
        try:
            readable, _, _ = select.select([self.sock], [], [], 0)
        # ValueError: the socket is closed already, or its number is too large for `select`.
        except (OSError, ValueError):
            return False
        # An idle connection is readable at its end, or if the peer has sent something that nobody asked for.
        return not readable

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # A shutdown wakes another thread that reads from the socket; closing it alone doesn't.
            self.sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.sock.close()


class Dialer:
    """A maker of connections to one API server."""

    def __init__(self, config: ConnectionConfig, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._url = urlsplit(config.server)
        self._proxy = _proxy(config, self._url)

    def dial(self, identity: Identity, timeout: float) -> Connection:
        """Return a new connection, made within `timeout` seconds. Raises UnavailableError."""
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
                f"{self._config.address}: its certificate isn't accepted: {error.verify_message}"
            ) from None
        except (OSError, HTTPException) as error:
            raise UnavailableError(f"{self._config.address}: can't connect: {why(error)}") from None
        sock: socket.socket = connection.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _notice_dead_peers(sock)
        return Connection(sock, identity, self._clock)


class _TlsConnection(HTTPSConnection):
    """A TLS connection whose certificate is checked for another name than the host connected to."""

    def __init__(
        self, host: str, port: int | None, *, tls: ssl.SSLContext, server_name: str, timeout: float
    ) -> None:
        super().__init__(host, port, context=tls, timeout=timeout)
        self._tls, self._server_name = tls, server_name

    def connect(self) -> None:
        HTTPConnection.connect(self)  # This also opens the proxy's tunnel.
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def _notice_dead_peers(sock: socket.socket) -> None:
    """Turn on TCP keepalive, so that a watch ends if the peer's machine is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A dead peer is noticed after half a minute: 15 s of silence and three probes. A proxy answers these probes itself,
    # so reflectors also limit the length of watches. macOS lacks some of the options.
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _proxy(config: ConnectionConfig, url: SplitResult) -> SplitResult | None:
    """Return the proxy to use: the kubeconfig's, else the environment's; None if there is none."""
    address = config.cluster.proxy_url
    if not address and url.scheme == "https" and not proxy_bypass(url.netloc.rpartition("@")[2]):
        address = getproxies().get("https", "")
    if not address:
        return None
    try:
        proxy = urlsplit(address if "://" in address else f"http://{address}")
        is_address = bool(proxy.hostname) and proxy.port != 0
    except ValueError:  # The port is beyond 65535, or an IPv6 address lacks a bracket.
        is_address = False
    # No message shows the proxy's address, since it may have a password.
    if not is_address:
        raise ConnectionConfigError(
            f"{config.source}: a proxy has to be an address such as http://10.0.0.1:3128"
        )
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


def why(error: Exception) -> str:
    """Return a text for a failure of a connection."""
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
