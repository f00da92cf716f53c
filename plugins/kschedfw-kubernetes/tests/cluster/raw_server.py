"""A server that answers byte by byte what a test says."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kschedfw.testing.waiting import PATIENCE

Answer = Callable[[socket.socket, bytes], None]
"""Takes a connection and a request's head; it may send, wait, close."""


class RawServer:
    """Calls the answer for each request; counts connections."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None = None) -> None:
        self._answer, self._context = answer, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.requests: list[bytes] = []

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _talk(self, connection: socket.socket) -> None:
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                pending = b""
                while data := connection.recv(65536):
                    pending += data
                    while b"\r\n\r\n" in pending:
                        head, _, pending = pending.partition(b"\r\n\r\n")
                        length = next(
                            (
                                int(line.partition(b":")[2])
                                for line in head.splitlines()
                                if line.lower().startswith(b"content-length")
                            ),
                            0,
                        )
                        while len(pending) < length:
                            pending += connection.recv(65536)
                        pending = pending[length:]
                        self.requests.append(head)
                        self._answer(connection, head)
        except OSError:
            return


@contextmanager
def serving(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    server = RawServer(answer, context)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(PATIENCE)


def reply(body: bytes = b"{}", status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body
