"""A thread that serves an ASGI application with uvicorn."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from kschedfw_apiserver.faults import ABORT

_SECONDS: Final = 10.0
"""Seconds that the thread may take to begin, and to end."""


class ServingThread:
    """A server on 127.0.0.1, from `start` until `stop`."""

    def __init__(self, app: Any, port: int, context: ssl.SSLContext | None) -> None:
        # asyncio sets TCP_NODELAY only if the socket's protocol is TCP. `socket.create_server` leaves it 0. Without
        # TCP_NODELAY every answer would wait for a delayed acknowledgement.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen(1024)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_level="critical",  # Faults end connections on purpose, which must not be logged as errors.
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=300,
            timeout_graceful_shutdown=1,
        )
        config.load()
        config.http_protocol_class = _abortable(config.http_protocol_class)
        config.ssl = context
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, name="kschedfw-api-server", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._server.has_started.wait(_SECONDS):
            raise TimeoutError("the API server for tests hasn't started")

    def stop(self) -> None:
        """Abort all connections, then end the thread."""
        self._call(self._server.end)
        self._thread.join(_SECONDS)

    def cut_connections(self) -> None:
        """Abort all connections, as when the network or the server fails."""
        self._call(self._server.abort_connections)

    def _call(self, function: Callable[[], None]) -> None:
        loop = self._server.running_loop
        if loop is not None and loop.is_running():
            loop.call_soon_threadsafe(function)

    def _run(self) -> None:
        asyncio.run(self._server.serve([self._socket]))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.has_started = threading.Event()
        self.running_loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.running_loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        await super().startup(sockets)
        self.has_started.set()

    async def main_loop(self) -> None:
        assert self._ending is not None
        await self._ending.wait()  # uvicorn itself checks for the end only ten times a second.

    def end(self) -> None:
        assert self._ending is not None
        self.should_exit = True
        self._ending.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # asyncio doesn't close a connection that it was just accepting when the server was closed. Its client would
        # wait.
        loop = asyncio.get_running_loop()
        for listening in self.servers:
            for each in listening.sockets:
                loop.remove_reader(each.fileno())
        while self.server_state.connections or len(asyncio.all_tasks()) > 1:
            self.abort_connections()
            await asyncio.sleep(0.001)
        for listening in self.servers:
            listening.close()
        for given in sockets or ():
            given.close()

    def abort_connections(self) -> None:
        for connection in list(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()


def _abortable(protocol: type[Any]) -> type[Any]:
    """Return uvicorn's protocol, extended such that the application can abort the connection."""

    class Abortable(protocol):  # type: ignore[misc]  # which one is known only now
        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["extensions"] = {ABORT: self.transport.abort}

    return Abortable
