"""Client of an API server: JSON requests with credentials, rate limits and retries."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from kschedfw import Clock, SystemClock
from kschedfw_kubernetes.cluster.credentials import Credentials
from kschedfw_kubernetes.cluster.decoding import UNREADABLE, Content, content_of
from kschedfw_kubernetes.cluster.errors import ApiError, FencedError, UnavailableError, api_error
from kschedfw_kubernetes.cluster.fence import Fence
from kschedfw_kubernetes.cluster.kubeconfig import ConnectionConfig, load_connection
from kschedfw_kubernetes.cluster.rate_limit import TokenBucket
from kschedfw_kubernetes.cluster.request_metrics import NO_ANSWER, NO_REQUEST_METRICS, RequestMetrics
from kschedfw_kubernetes.cluster.stopping import Backoff, StopSignal
from kschedfw_kubernetes.cluster.transport import (
    DEFAULT_TRANSPORT_LIMITS,
    Reply,
    Request,
    Stream,
    Transport,
    TransportLimits,
)

T = TypeVar("T")

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
_LONGEST_RETRY_AFTER: Final = 30.0
_ATTEMPTS: Final = 5
PAGE: Final = 500
"""The number of objects on a page of a list, as in client-go."""


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _ListMeta(
    msgspec.Struct,
    rename={"version": "resourceVersion", "token": "continue", "remaining": "remainingItemCount"},
):
    version: str = ""
    token: str = ""
    remaining: int = 0


class Page(msgspec.Struct):
    """A page of a list: the JSON of its objects. `token` requests the next page; it is empty on the last one."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None

    @property
    def resource_version(self) -> str:
        return self.metadata.version

    @property
    def token(self) -> str:
        return self.metadata.token

    @property
    def remaining(self) -> int:
        """The number of objects on later pages, if the server reports it."""
        return self.metadata.remaining


_decode_page: Final = msgspec.json.Decoder(Page).decode
_decode_status: Final = msgspec.json.Decoder(_Status).decode


class Client:
    """A client of one API server with one identity. Thread-safe; a context manager that closes its connections.

    Repeatable requests are sent again after 429 and 5xx answers, resets and timeouts: up to five times in total, after
    growing pauses or the pauses that the server requests. Requests, reads included, are limited to `qps` in a second
    and `burst` at once. No write is sent when `fence` says that this process may not be the leader any more. Every
    request is reported to `metrics`.
    """

    def __init__(
        self,
        config: ConnectionConfig,
        *,
        qps: float = 50.0,
        burst: int = 100,
        user_agent: str = "kschedfw",
        clock: Clock | None = None,
        chance: random.Random | None = None,
        limits: TransportLimits = DEFAULT_TRANSPORT_LIMITS,
        metrics: RequestMetrics = NO_REQUEST_METRICS,
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.chance = chance or random.Random()
        self.limits = limits
        self.fence = Fence(self.clock)
        self._qps, self._burst = qps, burst
        self._bucket = TokenBucket(qps, burst, self.clock)
        self._metrics = metrics
        self._host = urlsplit(config.server).netloc.rpartition("@")[2]
        self._credentials = Credentials(config, self.clock, metrics=metrics)
        self._transport = Transport(config, self._credentials, self.clock, user_agent, limits)
        self._owns_transport = True
        self._closing = StopSignal(self.clock)

    @property
    def namespace(self) -> str:
        """The namespace of the context."""
        return self.config.namespace

    @property
    def unanswered(self) -> int:
        """The number of requests, or batches of them, that are under way; watches don't count."""
        return self._transport.unanswered

    def with_own_rate(
        self, qps: float | None = None, burst: int | None = None, *, is_fenced: bool = True
    ) -> Client:
        """Return another client with its own rate limit, by default as large, so that events don't delay bindings.

        It shares the connections, which are this client's to close: a thread that binds a pod and then sends the event
        needs one connection for both. It also shares the fence, unless its writes are no decisions of a leader: a
        process that has lost its lease writes no events either, as the new leader records its own.
        """
        other = copy(self)
        other._bucket = TokenBucket(
            self._qps if qps is None else qps, self._burst if burst is None else burst, self.clock
        )
        other._owns_transport, other._closing = False, StopSignal(self.clock)
        if not is_fenced:
            other.fence = Fence(self.clock)
        return other

    def close(self) -> None:
        """Close all connections; requests in progress and watches end with an UnavailableError.

        A client `with_own_rate` sends nothing more, but what is on its way goes on.
        """
        self._closing.set()
        if self._owns_transport:
            self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading ---

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Content:
        """Return the object at the path.

        Raises:
            MissingObjectError, ForbiddenError, ApiError: the server refuses.
            UnavailableError: it can't be reached.
        """
        request = Request("GET", _target(path, query))
        return self._decoded(request, self._repeated(request).body, content_of)

    def pages(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[Page]:
        """Yield all pages of a list. Raises what `get` raises, and ExpiredError if reading took too long."""
        token = ""
        while True:
            asked = {**(query or {}), "limit": str(PAGE), **({"continue": token} if token else {})}
            request = Request("GET", _target(path, asked))
            # Each page is retried by itself. A page can't be retried after a 410: its token has expired, so the caller
            # begins again.
            page = self._decoded(request, self._repeated(request, self.limits.list).body, _decode_page)
            yield page
            token = page.token
            if not token:
                return

    def watch(self, path: str, query: Mapping[str, str]) -> Stream:
        """Begin a watch. Raises what `get` raises; failures aren't retried."""
        request = Request("GET", _target(path, {**query, "watch": "1"}))
        self._wait_for_turn(request)
        try:
            begun = self._transport.stream(request.target)
        except UnavailableError:
            self._metrics.attempted("GET", self._host, NO_ANSWER, is_retry=False)
            raise
        code = begun.status if isinstance(begun, Reply) else 200
        self._metrics.attempted("GET", self._host, str(code), is_retry=False)
        if isinstance(begun, Reply):
            raise _refusal(request, begun)
        return begun

    # --- writing ---

    def write(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        content_type: str = "application/json",
        settle: Callable[[], T | None] | None = None,
        query: Mapping[str, str] | None = None,
        deadline: float = math.inf,
        attempts: int = _ATTEMPTS,
        unguarded: bool = False,
        needs_response: bool = True,
        failed: ApiError | UnavailableError | None = None,
    ) -> Content | T:
        """Send a write, up to `attempts` times on transient failures. Return the response.

        `settle` is called before a retry if the former attempt may have taken effect. It returns the result if the
        write has taken effect, None if it hasn't, and may raise. Leave it out for writes that may be applied twice.
        After `deadline`, on the monotonic clock, nothing is sent. `unguarded` says of a patch that it names no resource
        version: then a conflict means only that others were writing at the same time, and the patch is sent again.
        Without `needs_response`, a response of success isn't parsed and {} is returned: as in client-go, the status
        tells enough. `failed` is the error of a first attempt, which the caller has made by `post_all`.

        Raises:
            WriteConflictError, MissingObjectError, ForbiddenError, ApiError: the server refuses.
            UnavailableError: it can't be reached.
            FencedError: this process may not be the leader any more, or the deadline has passed.
        """
        body = b"" if content is None else msgspec.json.encode(content)
        request = Request(method, _target(path, query), body, content_type)
        decode = content_of if needs_response else _ignored
        begun = self.clock.monotonic()
        # Not by `_timed`, which takes longer than everything else here, and each pod is a write.
        try:
            return self._written(
                request, settle, deadline, attempts, decode, unguarded=unguarded, failed=failed
            )
        finally:
            self._metrics.finished(request.method, self._host, self.clock.monotonic() - begun)

    def post_all(
        self, contents: Sequence[tuple[str, object]], *, gathering: float = 0.0
    ) -> Sequence[ApiError | UnavailableError | FencedError | None]:
        """POST the first of these objects, each to its path, and as many others as the rate allows now.

        They are sent together, which costs less than half; for this and `gathering` see `Transport.pipeline`. There is
        one attempt, as a caller that repeats some later must know which. Return for each sent object the error; None
        for success.
        """
        first, *others = [Request("POST", path, msgspec.json.encode(content)) for path, content in contents]
        self._wait_for_turn(first)
        requests = [first]
        for request in others:
            if not self._bucket.take():
                break
            self._metrics.waited(request.method, self._host, 0.0)
            requests.append(request)
        begun = self.clock.monotonic()
        try:
            replies = self._transport.pipeline(requests, before_send=self.fence.check, gathering=gathering)
        except (UnavailableError, FencedError) as error:
            return [error] * len(requests)
        finally:
            seconds = self.clock.monotonic() - begun
            for request in requests:
                self._metrics.finished(request.method, self._host, seconds)
        return [self._outcome(request, reply) for request, reply in zip(requests, replies, strict=True)]

    def write_past_fence(self, method: str, path: str, content: object, timeout: float) -> Content:
        """Write a lease: one attempt without rate limit or fence. Raises the errors of `write`."""
        request = Request(method, path, msgspec.json.encode(content))
        with self._timed(request):
            return self._decoded(request, self._once(request, timeout).body, content_of)

    def get_once(self, path: str, timeout: float) -> Content:
        """Return the object at the path, by a single request without rate limit. Raises the errors of `get`."""
        request = Request("GET", path)
        with self._timed(request):
            return self._decoded(request, self._once(request, timeout).body, content_of)

    # --- internals ---

    def _written(
        self,
        request: Request,
        settle: Callable[[], T | None] | None,
        deadline: float,
        attempts: int,
        decode: Callable[[bytes], Content],
        *,
        unguarded: bool,
        failed: ApiError | UnavailableError | None,
    ) -> Content | T:
        backoff: Backoff | None = None
        uncertain = False
        for attempt in range(1, attempts + 1):
            # Ask before each retry, but not before the first attempt, which costs one request.
            if uncertain and settle is not None and (result := settle()) is not None:
                return result
            try:
                if failed is not None and attempt == 1:
                    raise failed
                reply = self._write_once(request, deadline, is_retry=attempt > 1)
                return self._decoded(request, reply.body, decode)
            except (ApiError, UnavailableError) as error:
                backoff = backoff or Backoff(self.chance, self.clock, initial=0.05, longest=2.0)
                failure, pause = error, pause_after(error, backoff)
                # The server gives up a patch after five changes that came between its read and its write.
                if unguarded and _met_others(error):
                    pause = backoff.next()
            uncertain = uncertain or _may_have_taken_effect(failure)
            if pause is None or attempt == attempts or self._closing.wait(pause):
                break
        # The server may refuse the retry because the previous attempt has taken effect.
        if uncertain and settle is not None and not self._closing.is_set and (result := settle()) is not None:
            return result
        raise failure

    def _write_once(self, request: Request, deadline: float, *, is_retry: bool) -> Reply:
        def check() -> None:
            self.fence.check()
            if self.clock.monotonic() >= deadline:
                raise FencedError(f"{request}: not sent: what it is based on may not hold any more")

        check()
        self._wait_for_turn(request)
        # Check again when the bytes are ready to be sent: the process may have been suspended since the first check.
        return self._once(request, before_send=check, is_retry=is_retry)

    def _repeated(self, request: Request, timeout: float | None = None) -> Reply:
        """Return the response to a read, which is retried on transient failures."""
        with self._timed(request):
            backoff = Backoff(self.chance, self.clock, initial=0.05, longest=2.0)
            for attempt in range(1, _ATTEMPTS + 1):
                self._wait_for_turn(request)
                try:
                    return self._once(request, timeout, is_retry=attempt > 1)
                except (ApiError, UnavailableError) as error:
                    failure, pause = error, pause_after(error, backoff)
                if pause is None or attempt == _ATTEMPTS or self._closing.wait(pause):
                    break
            raise failure

    def _once(
        self,
        request: Request,
        timeout: float | None = None,
        before_send: Callable[[], None] | None = None,
        *,
        is_retry: bool = False,
    ) -> Reply:
        if self._closing.is_set:
            raise UnavailableError(f"{request}: the client is closed")
        try:
            reply = self._transport.request(request, timeout, before_send)
        # A FencedError passes uncounted, since nothing was sent.
        except UnavailableError:
            self._tell_attempt(request, NO_ANSWER, is_retry=is_retry)
            raise
        if (error := self._told(request, reply, is_retry=is_retry)) is not None:
            raise error
        return reply

    def _outcome(
        self, request: Request, reply: Reply | UnavailableError
    ) -> ApiError | UnavailableError | None:
        if isinstance(reply, Reply):
            return self._told(request, reply)
        self._tell_attempt(request, NO_ANSWER)
        return reply

    def _told(self, request: Request, reply: Reply, *, is_retry: bool = False) -> ApiError | None:
        """Record an answer. Return the error if the server refuses."""
        self._tell_attempt(request, str(reply.status), is_retry=is_retry)
        self._metrics.received(request.method, self._host, len(reply.body))
        return _refusal(request, reply) if reply.status >= 300 else None

    def _wait_for_turn(self, request: Request) -> None:
        seconds = self._bucket.reserve()
        self._metrics.waited(request.method, self._host, seconds)
        if seconds and self._closing.wait(seconds):
            raise UnavailableError("the client is closed")

    def _tell_attempt(self, request: Request, code: str, *, is_retry: bool = False) -> None:
        self._metrics.sent(request.method, self._host, len(request.body))
        self._metrics.attempted(request.method, self._host, code, is_retry=is_retry)

    @contextmanager
    def _timed(self, request: Request) -> Iterator[None]:
        begun = self.clock.monotonic()
        try:
            yield
        finally:
            self._metrics.finished(request.method, self._host, self.clock.monotonic() - begun)

    @staticmethod
    def _decoded(request: Request, body: bytes, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(body)
        except UNREADABLE as error:
            raise UnavailableError(f"{request}: the answer can't be read: {error}", uncertain=True) from None


def connect(
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    master: str | None = None,
    *,
    qps: float = 50.0,
    burst: int = 100,
    user_agent: str = "kschedfw",
    clock: Clock | None = None,
    chance: random.Random | None = None,
    limits: TransportLimits = DEFAULT_TRANSPORT_LIMITS,
    metrics: RequestMetrics = NO_REQUEST_METRICS,
) -> Client:
    """Return a client for the API server in a kubeconfig, without making a request.

    Without `kubeconfig`, these are read: the files of KUBECONFIG, `~/.kube/config`, or the service account of the pod
    that this process runs in. `master` replaces the server's address. `qps` and `burst` limit requests in a second; a
    negative `qps` means no limit. The defaults are those of KubeSchedulerConfiguration's clientConnection. Every
    request is reported to `metrics`.

    Raises:
        ConnectionConfigError: the server's address isn't configured, or the configuration is invalid.
    """
    config = load_connection(kubeconfig, context, master)
    return Client(
        config,
        qps=qps,
        burst=burst,
        user_agent=user_agent,
        clock=clock,
        chance=chance,
        limits=limits,
        metrics=metrics,
    )


def micro_time(seconds: float) -> str:
    """Return a time since the epoch in the API's format with microseconds (meta/v1 MicroTime)."""
    # Several times as fast as `strftime`, and each event has a time.
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _ignored(_body: bytes) -> Content:
    return {}


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def pause_after(error: ApiError | UnavailableError, backoff: Backoff) -> float | None:
    """Return the seconds to wait before the request is repeated; None if repeating it can't help."""
    if isinstance(error, ApiError):
        # client-go repeats 429 and 5xx only if the answer has Retry-After. Here these are repeated without it, too:
        # `settle` keeps writes from being applied twice.
        if error.status != 429 and error.status < 500:
            return None
        if error.retry_after is not None:
            return min(error.retry_after, _LONGEST_RETRY_AFTER)
    return backoff.next()


def _met_others(error: ApiError | UnavailableError) -> bool:
    """Return whether a patch that names no version conflicted with other writes, and not with another object."""
    is_conflict = isinstance(error, ApiError) and error.status == 409
    return is_conflict and "UID in precondition" not in str(error)


def _may_have_taken_effect(error: ApiError | UnavailableError) -> bool:
    # The API server also answers with 5xx if etcd's answer came too late: then the write may be stored. After 429
    # nothing is.
    return error.status >= 500 if isinstance(error, ApiError) else error.uncertain


def _refusal(request: Request, reply: Reply) -> ApiError:
    try:
        status = _decode_status(reply.body)
    except UNREADABLE:
        # A proxy or load balancer in front of the API server answers with HTML.
        status = _Status(message=reply.body[:200].decode(errors="replace"))
    after = reply.headers.get("retry-after", "")
    # HTTP also allows a date here. The API server sends seconds; after anything else the pause is the client's own.
    retry_after = float(after) if after.isdecimal() and len(after) < 9 else None
    return api_error(str(request), reply.status, status.reason, status.message, retry_after)
