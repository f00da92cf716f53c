"""Connections whose calls end by a deadline. Only `transport` imports this module; it needs the extra `extender`.

HTTP libraries have timeouts for single reads and writes; Go's timeout is for the whole call. So a thread that makes a
call sets the call's deadline (`Deadline`), and the network backend waits for nothing beyond it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Any, Final, Self
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from kschedfw import Clock

_WRITTEN_AT_ONCE: Final = 64 << 10
"""The most bytes per write, so that a slow reader can't keep a write going beyond the deadline."""


class Deadline:
    """The time by which a call has to end. As a context manager it applies to the thread's calls in the block."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock.now() + seconds

    @property
    def left(self) -> float:
        """Return the seconds left. It is never more than at the beginning, even if the clock was set back.

        Raises:
            httpcore2.TimeoutException: no time is left.
        """
        left = min(self._end - self._clock.now(), self._seconds)
        if left <= 0:
            raise httpcore2.TimeoutException
        return left

    def __enter__(self) -> Self:
        self._token = _DEADLINE.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _DEADLINE.reset(self._token)


_DEADLINE: Final[ContextVar[Deadline | None]] = ContextVar("_DEADLINE", default=None)


def _left(timeout: float | None) -> float | None:
    """Return the seconds left until the call's deadline. Without a deadline, return the library's own timeout."""
    deadline = _DEADLINE.get()
    return timeout if deadline is None else deadline.left


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITTEN_AT_ONCE):
            self._stream.write(buffer[start : start + _WRITTEN_AT_ONCE], _left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    """TCP connections that end by the deadline. Only name look-ups are limited by the system's resolver instead."""

    def __init__(self) -> None:
        self._sync = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            # UnicodeError: a label of the host name is empty or too long.
            raise httpcore2.ConnectError(str(error)) from error
        # One address at a time, each with what is left of the deadline: `socket.create_connection` would give the whole
        # timeout to each address.
        for number, (*_, address) in enumerate(found, 1):
            try:
                return _Stream(
                    self._sync.connect_tcp(
                        str(address[0]), port, _left(timeout), local_address, socket_options
                    )
                )
            except httpcore2.ConnectError:
                if number == len(found):
                    raise
        raise httpcore2.ConnectError(f"{host} has no address")


class _Answer(httpx2.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class PooledTransport(httpx2.BaseTransport):
    """Connection pools: one for each proxy in the environment, and one without a proxy.

    As in Go, no proxy is used for this machine. Raises httpcore2's errors.
    """

    def __init__(self, ssl_context: ssl.SSLContext, keep_alive: float) -> None:
        self._ssl_context = ssl_context
        self._keep_alive = keep_alive
        self._pools: dict[str | None, httpcore2.ConnectionPool] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        proxy = _proxy(url.scheme, url.host)
        pool = self._pools.get(proxy)
        if pool is None:
            # Of two threads that make a pool, one wins. The other pool has no connections yet.
            pool = self._pools.setdefault(proxy, self._new_pool(proxy))
        answer = pool.handle_request(asked)
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Answer(answer.stream),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        for pool in list(self._pools.values()):
            pool.close()

    def _new_pool(self, proxy: str | None) -> httpcore2.ConnectionPool:
        return httpcore2.ConnectionPool(
            ssl_context=self._ssl_context,
            # The limits are httpx's defaults.
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=self._keep_alive,
            network_backend=_Backend(),
            proxy=None if proxy is None else _proxy_of(httpx2.URL(proxy)),
        )


def _proxy(scheme: str, host: str) -> str | None:
    if _is_here(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    found = proxies.get(scheme) or proxies.get("all")
    return f"http://{found}" if found and "://" not in found else found


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _proxy_of(url: httpx2.URL) -> httpcore2.Proxy:
    auth = (url.username, url.password) if url.username or url.password else None
    return httpcore2.Proxy(
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/"), auth=auth
    )
