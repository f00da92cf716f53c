"""The ASGI application: serves the store over HTTP."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import attrs
from kschedfw_kubernetes.web import Receive, Response, Scope, Send

from kschedfw import Clock
from kschedfw_apiserver.access import ANONYMOUS, Access, User
from kschedfw_apiserver.answering import Answering
from kschedfw_apiserver.audit import AuditEvent, AuditLog
from kschedfw_apiserver.requests import ApiRequest, parse_query, parse_target, verb_of
from kschedfw_apiserver.responses import error_response
from kschedfw_apiserver.status import StatusError, internal_error
from kschedfw_apiserver.store import Store
from kschedfw_apiserver.watching import Watch, error_frame

_LOG: Final = logging.getLogger("kschedfw_apiserver")

_MOST_BYTES: Final = 3 << 20
"""The most bytes of a request's body, as in the API server."""


@attrs.define
class _Exchange:
    """The data of a request for the audit log."""

    method: str
    path: str
    user: User = ANONYMOUS
    request: ApiRequest | None = None


class ApiApp:
    """An ASGI 3 application that serves the objects of a store like a kube-apiserver, on asyncio's event loop.

    All requests are handled on the thread of the event loop. A watch with bookmarks gets one every `bookmark_seconds`.
    """

    def __init__(
        self, store: Store, answering: Answering, access: Access, clock: Clock, *, bookmark_seconds: float
    ) -> None:
        self.audit = AuditLog()
        self._store = store
        self._answering = answering
        self._access = access
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._serve(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case other:
                raise NotImplementedError(f"the API server doesn't speak {other!r}")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope["method"], scope["path"])
        try:
            answer = await self._answer(exchange, scope, receive)
        except StatusError as error:
            answer = error_response(error)
        except Exception as error:
            # A field has a type that the API server's rules don't expect. Answer with an error, so that the server goes
            # on.
            _LOG.exception("%s %s", exchange.method, exchange.path)
            answer = error_response(internal_error(f"{type(error).__name__}: {error}"))
        if answer is None:
            return  # The client disconnected before it had sent the whole request.
        self._note(exchange, answer.status if isinstance(answer, Response) else 200)
        if isinstance(answer, Response):
            await answer.send(send)
        else:
            await self._stream(answer, receive, send)

    async def _answer(self, exchange: _Exchange, scope: Scope, receive: Receive) -> Response | Watch | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = await _body(receive)
        if body is None:
            return None
        query = parse_query(scope["query_string"])
        target = parse_target(exchange.path, self._store.catalogue)
        request = ApiRequest(verb_of(exchange.method, target, query), target, query, headers, body)
        exchange.request = request
        exchange.user = self._access.authenticate(headers)
        self._access.authorize(exchange.user, request)
        return self._answering.answer(exchange.user, request)

    def _note(self, exchange: _Exchange, code: int) -> None:
        request, time, user = exchange.request, self._clock.now(), exchange.user.name
        if request is None or request.target.resource is None:
            event = AuditEvent(time, user, exchange.method.lower(), exchange.path, "", "", code)
        else:
            resource, part = request.resource.plural, request.subresource
            full = f"{resource}/{part}" if part else resource
            event = AuditEvent(time, user, request.verb, full, request.namespace, request.name, code)
        self.audit.add(event)

    async def _stream(self, watch: Watch, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        gone = asyncio.ensure_future(_gone(receive))
        sending = asyncio.ensure_future(self._send_events(watch, send))
        try:
            await asyncio.wait([gone, sending], return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            watch.close()
            for each in (gone, sending):
                each.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)
        await send({"type": "http.response.body", "body": b""})

    async def _send_events(self, watch: Watch, send: Send) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + watch.seconds
        bookmark_at = loop.time() + self._bookmark_seconds
        # Send the headers at once, so that the client learns that the watch has begun even if nothing happens.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        while True:
            try:
                frames = watch.events()
            except StatusError as error:
                await send({"type": "http.response.body", "body": error_frame(error), "more_body": True})
                return
            now = loop.time()
            if watch.bookmarks and (now >= bookmark_at or now >= end):
                frames.append(watch.bookmark())
                bookmark_at = now + self._bookmark_seconds
            if frames:
                await send({"type": "http.response.body", "body": b"".join(frames), "more_body": True})
            if now >= end:
                return
            if not frames:
                await watch.wait(min(end, bookmark_at if watch.bookmarks else end) - now)


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if the client has disconnected. Raises StatusError if it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > _MOST_BYTES:
            raise StatusError(
                413, "RequestEntityTooLarge", f"Request entity too large: limit is {_MOST_BYTES}"
            )
        if not message.get("more_body"):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
