"""The two ways in which clients reach the server: standard input and output, or HTTP on this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from secrets import compare_digest
from typing import Final

import anyio
from kschedfw_kubernetes.web import Server, configured, listen
from mcp.server.mcpserver import MCPServer
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

ADDRESS: Final = "127.0.0.1"


def serve_stdio(server: MCPServer) -> None:
    """Serve one client on standard input and output, until it has gone."""
    anyio.run(server.run_stdio_async)


def serve_http(server: MCPServer, port: int, token: str, say_where: Callable[[str], None]) -> None:
    """Serve clients on this machine that know the token. `say_where` is called with the address once it is served."""
    # The SDK refuses names of hosts and origins that aren't this machine's: what a foreign page would send.
    app = Guarded(server.streamable_http_app(host=ADDRESS), token)
    listening = listen(ADDRESS, port)
    url = f"http://{ADDRESS}:{listening.getsockname()[1]}/mcp"
    with listening:
        Server(configured(app), partial(say_where, url)).run(sockets=[listening])


class Guarded:
    """Refuses requests without the token: other users of this machine reach its loopback addresses, too."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "").encode()
            if not compare_digest(given, self._wanted):
                refused = PlainTextResponse(
                    "the token is missing or wrong\n", 401, {"www-authenticate": "Bearer"}
                )
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)
