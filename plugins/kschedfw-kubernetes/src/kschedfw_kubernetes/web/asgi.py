"""The HTTP parts that the ASGI 3 applications share."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

import attrs

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

PLAIN_TEXT: Final = "text/plain; charset=utf-8"
NO_SNIFFING: Final[Header] = (b"x-content-type-options", b"nosniff")


@attrs.frozen
class Response:
    """A complete answer. Its Content-Length is added when it is sent."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[Header, ...] = ()

    async def send(self, send: Send) -> None:
        headers = [
            (b"content-type", self.content_type.encode()),
            (b"content-length", str(len(self.body)).encode()),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


@attrs.frozen
class Asked:
    """The Accept header and the query of a request."""

    accept: str
    query: Mapping[str, list[str]]

    @classmethod
    def of(cls, scope: Scope) -> Asked:
        query = scope.get("query_string", b"").decode("latin-1")
        return cls(header(scope["headers"], b"accept"), parse_qs(query, keep_blank_values=True))


Content = Callable[[], Response]
"""Returns the response for a path."""
Page = Callable[[Asked], Response]
"""Returns the response for a path, depending on the request."""


def text(content: str) -> Response:
    """Return an answer with a text."""
    return Response(200, content.encode(), PLAIN_TEXT)


def as_json(content: object) -> Response:
    """Return an answer with JSON."""
    return Response(200, json.dumps(content, ensure_ascii=False).encode())


def status_response(code: int, reason: str, message: str, **further: object) -> Response:
    """Return a failure as a Status object, which is what Kubernetes' clients expect."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **further,
        "code": code,
    }
    body = json.dumps(status, separators=(",", ":"))
    return Response(code, f"{body}\n".encode(), headers=(NO_SNIFFING,))


def header(headers: Iterable[Header], name: bytes) -> str:
    """Return the values of the header, joined by commas; empty if there is none. `name` must be in lower case."""
    return ",".join(value.decode("latin-1") for given, value in headers if given.lower() == name)


def path_of(scope: Scope) -> str:
    """Return the path relative to the application's mount point."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if root else path


def bearer_token(headers: Iterable[Header]) -> str | None:
    """Return the token in the Authorization header; None if there is none."""
    given = next((value for name, value in headers if name.lower() == b"authorization"), b"")
    scheme, _, token = given.decode("latin-1").strip().partition(" ")
    return (token.strip() or None) if scheme.lower() == "bearer" else None
