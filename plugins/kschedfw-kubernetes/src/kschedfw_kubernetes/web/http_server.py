"""kschedfw's HTTP server: uvicorn, with limits on connections and on the duration of a shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import uvicorn

from kschedfw import KschedfwError

MAX_CONNECTIONS: Final = 256
"""The most open connections, TLS handshakes included. A further one replaces another one, see `_make_room`."""
HEADER_BYTES: Final = 64 << 10
"""The most bytes of a request's headers, counted as they arrive."""
HEADER_SECONDS: Final = 10.0
"""Seconds for a TLS handshake, and then for the headers of each request."""
KEEP_ALIVE_SECONDS: Final = 75
"""Seconds for which an idle connection stays open."""
GRACE_SECONDS: Final = 5.0
"""Seconds that requests in progress have to end after the first signal."""
LAST_SECONDS: Final = 3.0
"""Further seconds for work in progress to end, and for the application to be closed."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class ListenError(KschedfwError):
    """The address can't be used. The message says why."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address.

    Raises:
        ListenError: the address is taken, or isn't one of this machine's.
    """
    try:
        return _listening(host, port)
    except OSError as error:
        # Take `strerror` only for errors of name look-up: otherwise it repeats the address.
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise ListenError(f"can't listen on {host}, port {port}: {why}") from error


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket's protocol is TCP. `socket.create_server` leaves it 0. Without
    # TCP_NODELAY every answer would wait for a delayed acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def configured(app: Any) -> uvicorn.Config:
    """Return the settings of a server for this ASGI application, without a certificate."""
    return uvicorn.Config(
        app,
        loop="asyncio",  # The application needs asyncio.
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


class Server(uvicorn.Server):
    """A server that runs until `should_exit`, then ends within GRACE_SECONDS and closes the application.

    `when_ready` is called as soon as clients are answered. `when_stuck` is called if the application hasn't closed
    after further LAST_SECONDS. On the main thread, SIGINT or SIGTERM ends the server, too. A second signal ends the
    process at once, with 128 plus the signal's number as its exit code. The server keeps handling these signals, so the
    process should do nothing after it.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        when_ready: Callable[[], None],
        when_stuck: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._when_ready = when_ready
        self._when_stuck = when_stuck
        if not config.loaded:
            config.load()
        # uvicorn has chosen one of its protocols by what is installed. The protocol does the TLS handshake itself:
        # asyncio would report a connection only after the handshake, although it takes 300 KB from its acceptance on.
        config.http_protocol_class = _limited(config.http_protocol_class, config.ssl)
        config.ssl = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._when_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        last = threading.Timer(GRACE_SECONDS + LAST_SECONDS, self._when_stuck)
        last.daemon = True
        last.start()
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        for connection in self._connections():
            connection.shutdown()
        deadline = asyncio.get_running_loop().time() + GRACE_SECONDS
        while self._connections() and asyncio.get_running_loop().time() < deadline:
            for connection in self._connections():
                if connection.is_done:  # Closing over TLS would wait for the client's close message.
                    connection.abort()
            await asyncio.sleep(0.02)
        for connection in self._connections():
            connection.abort()
        while self.server_state.tasks:
            # The applications of these tasks have been told that their clients have gone.
            await asyncio.sleep(0.01)
        await self.lifespan.shutdown()
        last.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # uvicorn's signature
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    def _connections(self) -> list[Any]:
        return list(self.server_state.connections)


def _limited(protocol: type[Any], tls: ssl.SSLContext | None) -> type[Any]:
    """Return uvicorn's protocol, with limits on connections and on the size and time of headers. `tls` may be None."""

    class Limited(protocol):  # type: ignore[misc]  # which one is known only now
        raw: asyncio.Transport
        """The connection under TLS, or the same as `transport` without TLS."""
        peer = ""
        active_at = 0.0
        """When the client last sent something, by the event loop's clock."""
        _early = b""
        """Data that arrived together with the last message of the handshake."""
        _handshake: asyncio.Task[None] | None = None
        _timer: asyncio.TimerHandle | None = None
        _header_bytes = 0

        @property
        def is_idle(self) -> bool:
            """Return whether no request is in progress; some of its headers may have arrived."""
            return self.cycle is None or bool(self.cycle.response_complete)

        @property
        def is_done(self) -> bool:
            """Return whether no request is in progress, and all answers have been handed to the network."""
            if self.transport is None:  # The TLS handshake isn't complete.
                return True
            # TLS has its own buffer above that of the connection.
            unsent = self.transport.get_write_buffer_size() + self.raw.get_write_buffer_size()
            return self.is_idle and not unsent

        def connection_made(self, transport: asyncio.Transport) -> None:
            self.raw, self.active_at = transport, self.loop.time()
            self.peer = str((transport.get_extra_info("peername") or ("",))[0])
            self.connections.add(self)
            _make_room(self.connections, self)
            if tls is None:
                self._begin(transport)
            else:
                self._handshake = self.loop.create_task(self._shake_hands(tls))

        def data_received(self, data: bytes) -> None:
            if self.transport is None:
                self._early += data
                return
            if self.transport.is_closing():
                # TLS may still deliver data after closing. uvicorn might then close again, which breaks the transport.
                return
            self.active_at = self.loop.time()
            super().data_received(data)
            if not self.is_idle:
                self._headers_came()
                return
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES:
                self.abort()
            elif self._timer is None:
                self._expect_headers()

        def connection_lost(self, error: Exception | None) -> None:
            self._headers_came()
            if self.transport is None:
                self.connections.discard(self)
            else:
                super().connection_lost(error)

        def shutdown(self) -> None:
            """Close the connection after the request in progress, if there is one."""
            if self.transport is None:
                self.abort()
            # A TLS transport that was closed twice can't even be aborted any more.
            elif not self.transport.is_closing():
                super().shutdown()

        def abort(self) -> None:
            """Close the connection at once, even during a request."""
            self.raw.abort()

        async def _shake_hands(self, context: ssl.SSLContext) -> None:
            if not self.raw.is_closing():
                # The client speaks no TLS, has no certificate, or is too slow.
                with contextlib.suppress(OSError):
                    secure = await self.loop.start_tls(
                        self.raw, self, context, server_side=True, ssl_handshake_timeout=HEADER_SECONDS
                    )
                    if secure is not None and not self.raw.is_closing():
                        self._begin(secure)
                        return
            self.connections.discard(self)

        def _begin(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._expect_headers()
            if self._early:
                early, self._early = self._early, b""
                self.data_received(early)

        def _expect_headers(self) -> None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.abort)

        def _headers_came(self) -> None:
            self._header_bytes = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Limited


def _make_room(connections: set[Any], newcomer: Any) -> None:
    """Close another connection if there are too many with this one.

    It is one of the client with the most connections, so that no client shuts out another: the connection that has been
    idle longest, or else the one whose request began first. The newcomer isn't closed, since it may be a health probe
    from the same address. A probe is answered long before MAX_CONNECTIONS further connections are accepted.
    """
    if len(connections) <= MAX_CONNECTIONS:
        return
    shares = Counter(each.peer for each in connections)
    replaced = max(
        (each for each in connections if each is not newcomer),
        key=lambda each: (shares[each.peer], each.is_idle, -each.active_at),
    )
    connections.discard(replaced)
    replaced.abort()
