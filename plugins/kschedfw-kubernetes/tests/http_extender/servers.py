"""Extenders for tests: one that answers what it is told, and remembers what it was asked."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs


@attrs.frozen
class Answer:
    """What the server sends; `delay` (seconds) comes before the status, `pause` between the bytes of the body."""

    body: bytes | str = b"{}"
    status: int = 200
    headers: dict[str, str] = attrs.field(factory=dict)
    delay: float = 0.0
    pause: float = 0.0

    @property
    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


@attrs.frozen
class Asked:
    method: str
    path: str
    body: bytes
    headers: dict[str, str]


class ScriptedExtender:
    """Answers by path; `asked` has the requests in order."""

    def __init__(self, answers: dict[str, Answer | bytes | str]) -> None:
        self.answers = {
            path: answer if isinstance(answer, Answer) else Answer(answer) for path, answer in answers.items()
        }
        self.asked: list[Asked] = []
        self.url = ""
        self.stopping = threading.Event()

    @property
    def bodies(self) -> list[bytes]:
        return [asked.body for asked in self.asked]


@contextmanager
def scripted(
    answers: dict[str, Answer | bytes | str], *, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedExtender]:
    """An extender on a free port of this machine."""
    script = ScriptedExtender(answers)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # refused handshakes, clients that left
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    script.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        script.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(script: ScriptedExtender) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            script.asked.append(Asked(self.command, self.path, body, dict(self.headers)))
            answer = script.answers.get(self.path, Answer(b"not found", 404))
            script.stopping.wait(answer.delay)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            for byte in [answer.content] if not answer.pause else [bytes([byte]) for byte in answer.content]:
                self.wfile.write(byte)
                self.wfile.flush()
                script.stopping.wait(answer.pause)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def refused_url() -> str:
    """A URL where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@contextmanager
def elapsed() -> Iterator[Callable[[], float]]:
    """How many seconds have passed since the beginning of the block."""
    start = time.monotonic()
    yield lambda: time.monotonic() - start
