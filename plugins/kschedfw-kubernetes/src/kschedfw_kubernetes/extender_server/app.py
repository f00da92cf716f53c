"""The ASGI application: reads requests, has the evaluator answer them, and writes responses."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Final

import attrs

from kschedfw import Clock, Profile, Registry
from kschedfw.cluster import Cluster
from kschedfw_kubernetes.extender_server.errors import AbandonedError, EvaluationError, RequestError
from kschedfw_kubernetes.extender_server.evaluate import Evaluator
from kschedfw_kubernetes.http_extender.go_json import WireError, has_too_many_values
from kschedfw_kubernetes.http_extender.wire import ExtenderArgs, ExtenderPreemptionArgs, FilterResult
from kschedfw_kubernetes.web.asgi import PLAIN_TEXT, Header, Receive, Response, Scope, Send, path_of
from kschedfw_kubernetes.web.hosts import HostRule

_Verb = Callable[[bytes, threading.Event], bytes]

_RETRY_AFTER: Final = (b"retry-after", b"1")  # seconds
_CLOSE: Final = (b"connection", b"close")
"""Closes the connection of a refused request, since the rest of the request isn't read."""

_UNWATCHED: Final = 0.1
"""Seconds after which the server begins to check for a disconnected client. Most requests are answered before."""


@attrs.frozen
class ServerLimits:
    """Limits of requests. A request beyond a limit is refused; others aren't affected."""

    body_bytes: int = 64 << 20
    """Bytes of one request's body. 64 MiB are some thousands of whole nodes."""
    total_bytes: int = attrs.field()
    """Bytes of all bodies in memory at a time; by default twice `body_bytes`."""
    nodes: int = 1 << 16
    """Nodes in one request, whole or by name."""
    waiting: int = 32
    """Completely received requests without an answer."""
    read_seconds: float = 10.0
    """Seconds to receive a body."""
    answer_seconds: float = 60.0
    """Seconds to answer a complete request, waiting included."""

    @total_bytes.default
    def _twice(self) -> int:
        return 2 * self.body_bytes


_LOG = logging.getLogger("kschedfw_kubernetes.extender_server")


def _message(status: int, text: str, *headers: Header) -> Response:
    line = " ".join(text.split())
    return Response(status, f"{line}\n".encode(), PLAIN_TEXT, headers)


def _busy(text: str) -> Response:
    return _message(503, text, _RETRY_AFTER, _CLOSE)


class ExtenderApp:
    """Serves the filter and score plugins of a profile to a kube-scheduler, as an ASGI 3 application.

    | request | answer |
    | --- | --- |
    | `POST /filter` | ExtenderArgs → ExtenderFilterResult |
    | `POST /prioritize` | ExtenderArgs → HostPriorityList |
    | `POST /preempt` | ExtenderPreemptionArgs → ExtenderPreemptionResult; needs a cluster |
    | `GET /healthz` | `ok` |

    Nodes in full come without pods: plugins see the pods of the `cluster`, if there is one. Nodes by name
    (nodeCacheCapable) are looked up in the cluster, which the application follows until it is closed, by the lifespan
    protocol or `close`. The failure of a plugin is the error in an ExtenderFilterResult; every other failure is a
    status other than 200 with one line of text, and affects only its request.

    Plugins run in `executor`, by default a thread of the application's own, one request at a time; the event loop
    must be asyncio's. `parallelism` is the number of threads for one request's nodes. When a client disconnects,
    the work on its request stops after the hook that is running.

    The Host of a request must be an address, `localhost` or one of `allowed_hosts`; `*` in there allows all.

    Raises the errors of `Framework` if the profile can't run.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        registry: Registry | None = None,
        cluster: Cluster | None = None,
        parallelism: int = 1,
        limits: ServerLimits | None = None,
        allowed_hosts: Collection[str] = (),
        executor: Executor | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._limits = ServerLimits() if limits is None else limits
        self._evaluator = Evaluator(
            profile,
            registry=registry,
            cluster=cluster,
            parallelism=parallelism,
            max_nodes=self._limits.nodes,
            clock=clock,
        )
        self._hosts = HostRule(allowed_hosts)
        self._executor = ThreadPoolExecutor(1, "kschedfw-extender") if executor is None else executor
        self._owns_executor = executor is None
        self._verbs: Mapping[str, _Verb] = {
            "/filter": self._filter,
            "/prioritize": self._prioritize,
            "/preempt": self._preempt,
        }
        self._memory = _Memory(self._limits.total_bytes)
        self._works: set[_Work] = set()
        """Complete requests that wait or are being worked on."""
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._serve(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case other:  # The ASGI specification requires an exception for other types.
                raise ValueError(f"the extender server speaks HTTP, not {other!r}")

    def close(self) -> None:
        """Abandon all work, stop following the cluster, and end the threads."""
        self._closed = True
        for work in list(self._works):
            work.abandoned.set()
        if self._owns_executor:
            self._executor.shutdown(cancel_futures=True)
        self._evaluator.close()

    # HTTP

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(scope, receive)
        if response is None:  # The client has disconnected.
            return
        await response.send(send)

    async def _respond(self, scope: Scope, receive: Receive) -> Response | None:
        method, path = scope["method"], path_of(scope)
        if not self._hosts.allows(scope["headers"]):
            return _message(421, "the Host is none that this server goes by; see --allowed-host", _CLOSE)
        if path == "/healthz":
            if method not in ("GET", "HEAD"):
                return _message(405, "/healthz is for GET", (b"allow", b"GET, HEAD"))
            return _message(200, "ok")
        verb = self._verbs.get(path)
        if verb is None:
            return _message(404, f"no such path; there are {', '.join(self._verbs)} and /healthz")
        if method != "POST":
            return _message(405, f"{path} is for POST", (b"allow", b"POST"))
        held = _Held(self._memory)
        try:
            body = await self._read(held, scope["headers"], receive)
            work = self._begin(path, verb, body, held)
        except _RefusedError as refused:
            held.release()
            return refused.response
        except BaseException:
            held.release()
            raise
        return await self._end(work, receive)

    async def _read(self, held: _Held, headers: Iterable[Header], receive: Receive) -> bytes:
        """Return the whole body.

        Raises:
            _RefusedError: the body is too large or too slow, or exceeds the memory limit together with others.
        """
        limits = self._limits
        too_large = _message(413, f"the body is larger than {limits.body_bytes} bytes", _CLOSE)
        announced = next((value for name, value in headers if name == b"content-length"), b"0")
        # 20 digits exceed every limit; Python refuses to convert some thousands.
        if announced.isdigit() and int(announced[:20]) > limits.body_bytes:
            raise _RefusedError(too_large)
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(limits.read_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _RefusedError(None)
                    pieces.append(message.get("body", b""))
                    # Count before the checks: `release` returns what was counted, also for a refused request.
                    has_room = held.add(len(pieces[-1]))
                    if held.bytes > limits.body_bytes:
                        raise _RefusedError(too_large)
                    if not has_room:
                        raise _RefusedError(_busy("there are too many large requests"))
                    if not message.get("more_body", False):
                        return b"".join(pieces)
        except TimeoutError:
            late = f"the body didn't come within {limits.read_seconds:g} s"
            raise _RefusedError(_message(408, late, _CLOSE)) from None

    def _begin(self, path: str, verb: _Verb, body: bytes, held: _Held) -> _Work:
        """Start the verb on the executor, which releases the body's memory when it no longer needs it.

        Raises:
            _RefusedError: too many requests are in progress, or the body has too many values.
        """
        if self._closed:
            raise _RefusedError(_busy("the server is about to end"))
        if len(self._works) >= self._limits.waiting:
            raise _RefusedError(_busy("there are too many requests"))
        if has_too_many_values(body, self._limits.body_bytes):
            raise _RefusedError(_message(413, "the body has too many values"))
        abandoned = threading.Event()
        work = _Work(self._executor.submit(_worked_on, path, verb, body, abandoned), abandoned)
        # Before the callback is added, which runs at once if the work is done already.
        self._works.add(work)

        def done(_: Future[Response]) -> None:
            self._works.discard(work)
            held.release()

        work.future.add_done_callback(done)
        return work

    async def _end(self, work: _Work, receive: Receive) -> Response | None:
        """Return the response, an error on timeout; None if the client has disconnected."""
        answer = asyncio.wrap_future(work.future)
        watch = _Watch(receive, answer)
        begin = asyncio.get_running_loop().call_later(_UNWATCHED, watch.begin)
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return await answer
        except TimeoutError:
            return _busy(f"there was no answer within {self._limits.answer_seconds:g} s")
        # The answer is cancelled by `watch`, or by `close`, which cancels the executor's waiting work. Anything else
        # cancels this task.
        except asyncio.CancelledError:
            if watch.has_gone or self._closed:
                return None
            raise
        finally:
            # Also after an answer, when nobody reads it any more.
            work.abandoned.set()
            begin.cancel()
            watch.end()

    # Verbs, in the executor

    def _filter(self, body: bytes, abandoned: threading.Event) -> bytes:
        args = ExtenderArgs.read(body)
        try:
            result = self._evaluator.filter(args, abandoned)
        except EvaluationError as error:
            _LOG.error("filter failed: %s", error, exc_info=error)
            result = FilterResult(error=str(error))
        return result.write()

    def _prioritize(self, body: bytes, abandoned: threading.Event) -> bytes:
        return self._evaluator.prioritize(ExtenderArgs.read(body), abandoned).write()

    def _preempt(self, body: bytes, abandoned: threading.Event) -> bytes:
        return self._evaluator.preempt(ExtenderPreemptionArgs.read(body), abandoned).write()


class _Memory:
    """Counts the bytes of bodies in memory. The executor's threads release them."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self.lock = threading.Lock()


class _Held:
    """One request's share of the memory."""

    def __init__(self, memory: _Memory) -> None:
        self._memory = memory
        self.bytes = 0

    def add(self, size: int) -> bool:
        """Count bytes. Return False if that exceeds the limit."""
        with self._memory.lock:
            self._memory.used += size
            self.bytes += size
            return self._memory.used <= self._memory.total

    def release(self) -> None:
        with self._memory.lock:
            self._memory.used -= self.bytes
            self.bytes = 0


@attrs.frozen(eq=False)
class _Work:
    """A complete request; `abandoned` is set when the client no longer waits for its answer."""

    future: Future[Response]
    abandoned: threading.Event


class _Watch:
    """Cancels the answer when the client goes away."""

    def __init__(self, receive: Receive, answer: asyncio.Future[Response]) -> None:
        self._receive = receive
        self._answer = answer
        self._task: asyncio.Task[None] | None = None
        self.has_gone = False

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._answer.done():
            self.has_gone = True
            self._answer.cancel()


class _RefusedError(Exception):
    """The request is refused. The response is None if the client has disconnected."""

    def __init__(self, response: Response | None) -> None:
        super().__init__()
        self.response = response


def _worked_on(path: str, verb: _Verb, body: bytes, abandoned: threading.Event) -> Response:
    try:
        return Response(200, verb(body, abandoned))
    except WireError as error:
        return _message(400, f"the body is malformed: {error}")
    except RequestError as error:
        return _message(400, str(error))
    except AbandonedError:
        return _busy("the work was given up")
    except BaseException as error:  # This includes a plugin's SystemExit, which would end the event loop.
        _LOG.exception("%s failed", path)
        return _message(500, f"{path} failed: {error}")
