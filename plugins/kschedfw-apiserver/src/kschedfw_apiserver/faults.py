"""Faults that tests inject between clients and the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import attrs
from kschedfw_kubernetes.web import Message, Receive, Scope, Send

from kschedfw_apiserver.responses import error_response
from kschedfw_apiserver.status import (
    StatusError,
    internal_error,
    overtaken,
    too_many_requests,
    too_old,
)
from kschedfw_apiserver.watching import error_frame

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

ABORT: Final = "kschedfw.abort"
"""The name in the scope's `extensions` under which a server may offer a function that aborts the connection."""

_POLL: Final = 0.005  # seconds


@attrs.define
class Faults:
    """The faults of requests; none by default. Changes apply from the next request on.

    Shares are relative to all requests that `only` selects, from 0 (none) to 1 (all). They are drawn independently,
    with `seed`.
    """

    throttled: float = 0.0
    """The share that is answered 429 with `retry_after`, and not executed."""
    retry_after: int = 1
    """Seconds after which a throttled client may try again."""
    conflicting: float = 0.0
    """The share of writes that is answered 409 Conflict, and not executed."""
    failed_before: float = 0.0
    """The share that is answered 500, and not executed."""
    failed_after: float = 0.0
    """The share that is executed, and answered 500."""
    lost: float = 0.0
    """The share that is executed, and whose connection ends without an answer."""
    half_sent: float = 0.0
    """The share whose answer breaks off in the middle."""
    duplicated: float = 0.0
    """The share that is executed twice; the client gets the second answer."""
    late: float = 0.0
    """The share that is executed up to `seconds` later, so that other requests overtake it."""
    slow: float = 0.0
    """The share that is answered up to `seconds` after its execution."""
    seconds: float = 0.1
    """The longest delay of `late` and `slow` requests, in seconds."""
    expired_watches: float = 0.0
    """The share of watches from a version that are answered that the version is too old (410)."""
    watch_seconds: float | None = None
    """Seconds after which every watch is cut; None for never."""
    watch_events: int | None = None
    """The number of events after which every watch is cut; None for never. Events of one chunk are counted together."""
    only: Callable[[str, str], bool] | None = None
    """Selects requests by method and path. None selects all."""
    paused: bool = False
    """True while nothing is executed and nothing is sent, as with a stopped process. Connections stay open."""
    seed: int = 0
    _random: Random = attrs.field(init=False, repr=False, eq=False)

    @_random.default
    def _seeded(self) -> Random:
        return Random(self.seed)

    def draw(self, share: float) -> bool:
        return share > 0 and self._random.random() < share

    def delay(self) -> float:
        return self._random.random() * self.seconds

    def pick(self, method: str, path: str) -> bool:
        return self.only is None or self.only(method, path)


class FaultyApp:
    """An ASGI application in front of another one, which injects `faults`."""

    def __init__(self, app: Application, faults: Faults) -> None:
        self._app = app
        self.faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        faults = self.faults
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self._while_paused()
        if not faults.pick(scope["method"], scope["path"]):
            await self._app(scope, receive, self._pausing(send))
        elif scope["method"] == "GET" and b"watch=" in scope["query_string"]:
            await self._watch(scope, receive, self._pausing(send))
        else:
            await self._request(scope, receive, self._pausing(send))

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        faults = self.faults
        if faults.draw(faults.throttled):
            why = "Too many requests, please try again later."
            await _refuse(send, too_many_requests(why, retry_after=faults.retry_after))
            return
        if scope["method"] != "GET" and faults.draw(faults.conflicting):
            await _refuse(send, overtaken("the fault that was asked for: somebody else was faster"))
            return
        if faults.draw(faults.failed_before):
            await _refuse(send, internal_error("the fault that was asked for, before"))
            return
        if faults.draw(faults.late):
            await asyncio.sleep(faults.delay())
        body = await _whole(receive)
        if faults.draw(faults.duplicated):
            # As a proxy would that sends a request again: both reach the server, and the client sees one answer.
            await self._app(scope, _again(body), _nowhere)
        answer: list[Message] = []
        await self._app(scope, _again(body), _collecting(answer))
        if faults.draw(faults.slow):
            await asyncio.sleep(faults.delay())
        if faults.draw(faults.failed_after):
            await _refuse(send, internal_error("the fault that was asked for, after"))
        elif faults.draw(faults.lost):
            _abort(scope)
        elif faults.draw(faults.half_sent):
            head, *parts = answer
            whole = b"".join(part.get("body", b"") for part in parts)
            await send(head)
            await send({"type": "http.response.body", "body": whole[: len(whole) // 2], "more_body": True})
            # The connection is closed since the answer isn't complete.
        else:
            for message in answer:
                await send(message)

    async def _watch(self, scope: Scope, receive: Receive, send: Send) -> None:
        faults = self.faults
        if b"resourceVersion=" in scope["query_string"] and faults.draw(faults.expired_watches):
            await send({"type": "http.response.start", "status": 200, "headers": _JSON})
            await send({"type": "http.response.body", "body": error_frame(too_old(1, 2))})
            return
        cut = asyncio.Event()
        watching = asyncio.ensure_future(self._app(scope, receive, _counting(send, faults.watch_events, cut)))
        ending = asyncio.ensure_future(cut.wait())
        try:
            await asyncio.wait(
                [watching, ending], timeout=faults.watch_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            is_cut = not watching.done()
            if not is_cut:
                watching.result()
        finally:
            for each in (watching, ending):
                each.cancel()
            await asyncio.gather(watching, ending, return_exceptions=True)
        if is_cut:
            _abort(scope)

    async def _while_paused(self) -> None:
        while self.faults.paused:
            await asyncio.sleep(_POLL)

    def _pausing(self, send: Send) -> Send:
        async def pausing(message: Message) -> None:
            await self._while_paused()
            await send(message)

        return pausing


_JSON: Final = [(b"content-type", b"application/json")]


async def _refuse(send: Send, error: StatusError) -> None:
    await error_response(error).send(send)


def _abort(scope: Scope) -> None:
    abort = (scope.get("extensions") or {}).get(ABORT)
    if abort is not None:
        abort()


async def _whole(receive: Receive) -> list[Message]:
    """Return all messages of a request's body."""
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


def _again(messages: list[Message]) -> Receive:
    left = list(messages)

    async def receive() -> Message:
        return left.pop(0) if left else {"type": "http.disconnect"}

    return receive


async def _nowhere(message: Message) -> None:
    del message


def _collecting(messages: list[Message]) -> Send:
    async def send(message: Message) -> None:
        messages.append(message)

    return send


def _counting(send: Send, limit: int | None, cut: asyncio.Event) -> Send:
    events = 0

    async def counting(message: Message) -> None:
        nonlocal events
        await send(message)
        # Each event is a line.
        events += message.get("body", b"").count(b"\n")
        if limit is not None and events >= limit:
            cut.set()

    return counting
