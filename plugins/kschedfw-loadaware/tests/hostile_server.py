"""A server that does what no server should, over real sockets."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

TIMEOUT = 0.4
"""Seconds after which a call is late, for tests in which it is to be late."""
TOKEN = "very-secret"
OK = b"HTTP/1.1 200 OK\r\n"

Talk = Callable[[socket.socket, str], None]


class Server:
    """Does with each connection as `talk` says, which is given the connection and the path that was asked for."""

    def __init__(self, talk: Talk, tls: ssl.SSLContext | None) -> None:
        self.talk, self._tls = talk, tls
        self.seen: list[str] = []
        self._end = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.address = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while not self._end.is_set():
            connection, _ = self._socket.accept()
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        with suppress(OSError), connection if self._tls is None else self._over_tls(connection) as stream:
            request = b""
            while b"\r\n\r\n" not in request and (received := stream.recv(65536)):
                request += received
            if not request:
                return
            self.seen.append(request.decode("latin-1"))
            self.talk(stream, self.seen[-1].split()[1])

    def _over_tls(self, connection: socket.socket) -> ssl.SSLSocket:
        assert self._tls is not None
        with connection:  # which has been taken over then
            return self._tls.wrap_socket(connection, server_side=True)

    def drip(self, connection: socket.socket, content: bytes, *, every: float = 0.02) -> None:
        """Byte by byte, for ever or until the other side is gone."""
        while not self._end.wait(every):
            connection.sendall(content)

    def close(self) -> None:
        self._end.set()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads:
            thread.join()
        self._socket.close()


@contextmanager
def serving(talk: Talk, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(talk, tls)
    try:
        yield server
    finally:
        server.close()


def answering(content: bytes) -> Talk:
    return lambda connection, path: connection.sendall(content)
