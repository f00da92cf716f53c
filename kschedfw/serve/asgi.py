"""The little of HTTP that the applications share, on ASGI 3."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

import attrs

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

PLAIN_TEXT: Final = "text/plain; charset=utf-8"


@attrs.frozen
class Response:
    """A whole answer; its length is told by itself."""

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


def path_of(scope: Scope) -> str:
    """The path below where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if root else path


def bearer_token(headers: Iterable[Header]) -> str | None:
    """The token in the Authorization header; None where there is none."""
    given = next((value for name, value in headers if name.lower() == b"authorization"), b"")
    scheme, _, token = given.decode("latin-1").strip().partition(" ")
    return (token.strip() or None) if scheme.lower() == "bearer" else None
