"""Calls an ASGI application without a server around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import attrs
from kschedfw_kubernetes.extender_server import ExtenderApp
from kschedfw_kubernetes.web.asgi import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


async def _call(app: Application, scope: Scope, receive: Receive, deliver: Send) -> None:
    await app(scope, receive, deliver)


@attrs.frozen
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


def send(
    app: Application,
    method: str,
    path: str,
    body: bytes | Sequence[bytes] = b"",
    *,
    headers: Iterable[tuple[bytes, bytes]] = (),
    root_path: str = "",
    query: bytes = b"",
    leave: bool = False,
) -> Reply | None:
    """The reply to a request whose body comes in these pieces; None if there was none.

    With `leave` the client goes away before the body is complete.
    """
    pieces = [body] if isinstance(body, bytes) else list(body)
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": piece, "more_body": leave or index + 1 < len(pieces)}
        for index, piece in enumerate(pieces)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        if not leave:  # the client waits for the reply, however long that takes
            await asyncio.get_running_loop().create_future()
        return {"type": "http.disconnect"}

    async def deliver(message: Any) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": list(headers),
        "root_path": root_path,
    }
    asyncio.run(_call(app, scope, receive, deliver))
    if not sent:
        return None
    start, *parts = sent
    assert start["type"] == "http.response.start"
    assert [part["type"] for part in parts] == ["http.response.body"]
    return Reply(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(part["body"] for part in parts),
    )


def post(app: ExtenderApp, path: str, content: object) -> Reply:
    """The reply to a JSON body."""
    reply = send(app, "POST", path, json.dumps(content).encode())
    assert reply is not None
    assert reply.headers["content-length"] == str(len(reply.body))
    return reply


def live(app: ExtenderApp, *events: str) -> list[str]:
    """What the application says to these events of the lifespan protocol."""
    coming = list(events)
    said: list[str] = []

    async def receive() -> Any:
        return {"type": f"lifespan.{coming.pop(0)}"}

    async def deliver(message: Any) -> None:
        said.append(message["type"])

    asyncio.run(app({"type": "lifespan"}, receive, deliver))
    return said
