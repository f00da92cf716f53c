"""The ASGI application: HTTP on one side, the evaluator on the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final

import attrs

from kschedfw.cluster import Cluster
from kschedfw.extender_server.evaluate import EvaluationError, Evaluator, RequestError
from kschedfw.framework.clock import Clock
from kschedfw.framework.profile import Profile
from kschedfw.framework.registry import Registry
from kschedfw.scheduler.http_extender.go_json import WireError
from kschedfw.scheduler.http_extender.wire import ExtenderArgs, ExtenderPreemptionArgs, FilterResult

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY_BYTES: Final = 64 << 20
"""What a request may have; 64 MiB are some thousands of nodes in full."""

_LOG = logging.getLogger("kschedfw.extender_server")


@attrs.frozen
class _Response:
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


def _message(status: int, text: str, *headers: tuple[bytes, bytes]) -> _Response:
    line = " ".join(text.split())
    return _Response(status, f"{line}\n".encode(), "text/plain; charset=utf-8", headers)


class ExtenderApp:
    """Offers the filter and score plugins of a profile to a kube-scheduler, as an ASGI 3 application.

    | request | answer |
    | --- | --- |
    | `POST /filter` | ExtenderArgs → ExtenderFilterResult |
    | `POST /prioritize` | ExtenderArgs → HostPriorityList |
    | `POST /preempt` | ExtenderPreemptionArgs → ExtenderPreemptionResult; needs a cluster |
    | `GET /healthz` | `ok` |

    Nodes that come in full carry no pods: plugins see those of the `cluster`, if there is one. Nodes that come by
    name (nodeCacheCapable) are looked up in the cluster, which the application follows until it is closed: by the
    lifespan protocol, or `close`. An ExtenderFilterResult reports the failure of a plugin in its error; everything else
    that goes wrong is another status than 200 and one line of text, and costs that request alone.

    Plugins run in `executor`, by default a thread of the application's own, one request at a time; the event loop
    must be asyncio's. `parallelism` is the number of threads for one request's nodes.

    Raises what `Framework` does where the profile can't run.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        registry: Registry | None = None,
        cluster: Cluster | None = None,
        parallelism: int = 1,
        max_body_bytes: int = MAX_BODY_BYTES,
        executor: Executor | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._evaluator = Evaluator(
            profile, registry=registry, cluster=cluster, parallelism=parallelism, clock=clock
        )
        self._max_body_bytes = max_body_bytes
        self._own_executor = None if executor else ThreadPoolExecutor(1, "kschedfw-extender")
        self._executor = executor or self._own_executor
        self._verbs: Mapping[str, Callable[[bytes], bytes]] = {
            "/filter": self._filter,
            "/prioritize": self._prioritize,
            "/preempt": self._preempt,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._serve(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case other:
                raise NotImplementedError(f"the extender server doesn't speak {other!r}")

    def close(self) -> None:
        """Stop following the cluster, and end the threads."""
        if self._own_executor is not None:
            self._own_executor.shutdown()
        self._evaluator.close()

    # HTTP

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(scope, receive)
        if response is None:  # nobody is there to hear it
            return
        headers = [
            (b"content-type", response.content_type.encode()),
            (b"content-length", str(len(response.body)).encode()),
            *response.headers,
        ]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, scope: Scope, receive: Receive) -> _Response | None:
        method, path = scope["method"], _path(scope)
        if path == "/healthz":
            if method not in ("GET", "HEAD"):
                return _message(405, "/healthz is for GET", (b"allow", b"GET, HEAD"))
            return _message(200, "ok")
        verb = self._verbs.get(path)
        if verb is None:
            return _message(404, f"no such path; there are {', '.join(self._verbs)} and /healthz")
        if method != "POST":
            return _message(405, f"{path} is for POST", (b"allow", b"POST"))
        try:
            body = await self._read(scope["headers"], receive)
        except _TooLargeError:
            return _message(413, f"the body is larger than {self._max_body_bytes} bytes")
        if body is None:
            return None
        return await asyncio.get_running_loop().run_in_executor(self._executor, _answer, path, verb, body)

    async def _read(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> bytes | None:
        """The whole body; None where the client has gone away.

        Raises:
            _TooLargeError: it is larger than allowed, or says it would be.
        """
        announced = next((value for name, value in headers if name == b"content-length"), b"0")
        if announced.isdigit() and int(announced) > self._max_body_bytes:
            raise _TooLargeError
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._max_body_bytes:
                raise _TooLargeError
            if not message.get("more_body", False):
                return bytes(body)

    # Verbs, in the executor

    def _filter(self, body: bytes) -> bytes:
        args = ExtenderArgs.read(body)
        try:
            result = self._evaluator.filter(args)
        except EvaluationError as error:
            _LOG.error("filter failed: %s", error, exc_info=error)
            result = FilterResult(error=str(error))
        return result.write()

    def _prioritize(self, body: bytes) -> bytes:
        return self._evaluator.prioritize(ExtenderArgs.read(body)).write()

    def _preempt(self, body: bytes) -> bytes:
        return self._evaluator.preempt(ExtenderPreemptionArgs.read(body)).write()


class _TooLargeError(Exception):
    """The body of a request is larger than allowed."""


def _path(scope: Scope) -> str:
    """The path below where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if root else path


def _answer(path: str, verb: Callable[[bytes], bytes], body: bytes) -> _Response:
    try:
        return _Response(200, verb(body))
    except WireError as error:
        return _message(400, f"the body is malformed: {error}")
    except RequestError as error:
        return _message(400, str(error))
    except Exception as error:
        _LOG.exception("%s failed", path)
        return _message(500, f"{path} failed: {error}")
