"""Requests and answers over kept connections, each with a deadline and a maximal size.

It uses blocking sockets and its own reader of answers. Measured against httpx2, aiohttp and the standard library's
HTTP, this takes the least CPU time per write, and no hand-over between threads. Sockets have no deadline for a whole
answer, so each read waits only until that deadline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

import attrs

from kschedfw import Clock
from kschedfw_kubernetes.cluster.credentials import Credentials, Identity
from kschedfw_kubernetes.cluster.dialer import Dialer
from kschedfw_kubernetes.cluster.errors import UnavailableError
from kschedfw_kubernetes.cluster.kubeconfig import ConnectionConfig
from kschedfw_kubernetes.cluster.stopping import StopSignal
from kschedfw_kubernetes.http.answers import Answer, Receive
from kschedfw_kubernetes.http.connections import Connection, why

_MIB: Final = 1 << 20
_DIALS: Final = 4
"""The most connections that are made at a time, unless a request waits longer than `_PATIENCE`.

Making a connection takes the processor time of several requests on either side, and a request can use a connection that
becomes idle meanwhile. When 500 concurrent requests made a connection each, events came 2 s after their bindings until
all connections were there.
"""
_LONGEST_REST: Final = 10.0
"""Seconds after which an idle connection is closed that others have made superfluous."""
_PATIENCE: Final = 0.5
"""Seconds that a request waits before it may exceed `_DIALS`.

Renewing the lease must not wait for many bindings while connections are slow.
"""


@attrs.frozen
class TransportLimits:
    """Limits of the time to wait for the API server, in seconds, and of the size of its answers.

    Attributes:
        connect: time for a connection, TLS included.
        request: time for an answer, from sending the request to its last byte.
        list: time for a page of a list.
        quiet: time without a byte in a watch, after which the server counts as gone: it should have ended the watch
            ten seconds before, see `Reflector`.
        response: largest size of an answer in bytes.
        event: largest size of one change in a watch in bytes.
        idle_connections: number of idle connections that are kept. With more requests at a time, connections are
            opened and closed all the time.
    """

    connect: float = 10.0
    request: float = 30.0
    list: float = 60.0
    quiet: float = 40.0
    response: int = 256 * _MIB
    event: int = 16 * _MIB
    idle_connections: int = 256


DEFAULT_TRANSPORT_LIMITS: Final = TransportLimits()


@attrs.frozen
class Reply:
    """A complete answer. `headers` has the fields that are read, by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@attrs.frozen
class Request:
    """A request. `target` is the path with its query."""

    method: str
    target: str
    body: bytes = b""
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]}"


class Stream:
    """An answer whose body is read while it arrives, such as a watch. Selectors take it; one thread may read it."""

    def __init__(self, request: Request, connection: Connection, answer: Answer, quiet: float) -> None:
        self._request, self._connection, self._answer, self._quiet = request, connection, answer, quiet
        self._answer.receive_by(connection.receive_arrived)
        connection.rest()

    def fileno(self) -> int:
        return self._connection.sock.fileno()

    @property
    def is_overdue(self) -> bool:
        """Return whether no byte arrived for `quiet` seconds. Then `arrived` raises an error."""
        return self._connection.rested() > self._quiet

    @property
    def has_ended(self) -> bool:
        """True once the whole body was read, if it said where it ends. Then nothing more arrives, not even an end."""
        return self._answer.has_ended

    def arrived(self) -> bytes | None:
        """Return the bytes of the body that have arrived; none at its end. Return None if nothing has arrived.

        Raises:
            UnavailableError: the connection broke, or no byte arrived for `quiet` seconds.
        """
        try:
            chunk = self._answer.read_some()
        except BlockingIOError:
            if self.is_overdue:
                raise UnavailableError(f"{self._request}: timed out") from None
            return None
        except (OSError, HTTPException, ValueError) as error:
            raise UnavailableError(f"{self._request}: {why(error)}") from None
        self._connection.rest()
        return chunk

    def shut_down(self) -> None:
        """End the stream, on any thread. The one that reads it closes it."""
        self._connection.shut_down()

    def close(self) -> None:
        self._connection.close()


class Transport:
    """Connections to one API server. Thread-safe."""

    def __init__(
        self,
        config: ConnectionConfig,
        credentials: Credentials,
        clock: Clock,
        user_agent: str,
        limits: TransportLimits = DEFAULT_TRANSPORT_LIMITS,
    ) -> None:
        url = urlsplit(config.server)
        self._credentials, self._limits = credentials, limits
        self._prefix = url.path.rstrip("/")
        self._dialer, self._clock = Dialer(config, clock), clock
        host = url.netloc.rpartition("@")[2]
        self._head = f"Host: {host}\r\nUser-Agent: {user_agent}\r\nAccept: application/json\r\n"
        self._idle: list[Connection] = []
        self._streams: set[Connection] = set()
        self._lock = threading.Condition()
        """Guards idle connections, streams and dials.

        Notified when a connection becomes idle or another one may be made.
        """
        self._dialing = 0
        self._closed = False
        self._under_way: list[None] = []
        """An item for each exchange. Changed without the lock: an append is atomic, adding to a number isn't."""

    @property
    def unanswered(self) -> int:
        """The number of exchanges whose answers haven't arrived as a whole."""
        return len(self._under_way)

    def request(
        self, request: Request, timeout: float | None = None, before_send: Callable[[], None] | None = None
    ) -> Reply:
        """Send a request and read the whole answer.

        `before_send` may raise an error to prevent sending at the last moment.

        Raises:
            UnavailableError: no answer came, or one beyond a limit.
            CredentialsError: there are no credentials for the request.
        """
        deadline = self._limits.request if timeout is None else timeout
        replies, identity, failure = self._exchange((request,), deadline, before_send)
        if failure is not None:
            raise failure
        if replies[0].status == 401 and self._credentials.refuse(identity):
            replies, _, failure = self._exchange((request,), deadline, before_send)
            if failure is not None:
                raise failure
        return replies[0]

    def pipeline(
        self,
        requests: Sequence[Request],
        before_send: Callable[[], None] | None = None,
        *,
        gathering: float = 0.0,
    ) -> Sequence[Reply | UnavailableError]:
        """Send requests over one connection without waiting in between (RFC 9112, pipelining), and read the answers.

        The server answers one after another. It costs less than half of single requests: one write for all, and fewer
        waits. Before each read, answers gather for `gathering` seconds, as waking for each of them takes longer than
        reading it. Return each request's answer, or the error because of which there is none: the request may have
        taken effect all the same. For `before_send` see `request`.

        Raises:
            UnavailableError, CredentialsError: nothing was sent.
        """
        replies, identity, failure = self._exchange(requests, self._limits.request, before_send, gathering)
        if any(reply.status == 401 for reply in replies) and self._credentials.refuse(identity):
            # One by one, as this is rare.
            replies = [
                self.request(request, before_send=before_send) if reply.status == 401 else reply
                for request, reply in zip(requests, replies, strict=False)
            ]
        unanswered = requests[len(replies) :]
        closed = "the connection was closed before its turn"
        return [
            *replies,
            *(failure or UnavailableError(f"{each}: {closed}", uncertain=True) for each in unanswered),
        ]

    def stream(self, target: str) -> Stream | Reply:
        """Send a request. Return the stream of its answer, or a Reply if the server refuses.

        Raises:
            UnavailableError: no answer came.
            CredentialsError: there are no credentials for the request.
        """
        request = Request("GET", target)
        # The stream keeps the connection. An idle one will do: at the start, it is that of the list before the watch.
        identity = self._credentials.identity()
        connection = self._take(identity, self._limits.connect)
        try:
            with self._lock:
                if self._closed:
                    raise UnavailableError(f"{request}: the client is closed")
                # A stream's owner closes it without notice to the transport; drop the closed ones here.
                self._streams = {each for each in self._streams if each.sock.fileno() >= 0}
                self._streams.add(connection)
            connection.wait_at_most(self._limits.request)
            self._send(connection, identity, (request,), None)
            answer = self._answer(connection.receive_all, request)
            if answer.status == 200:
                return Stream(request, connection, answer, self._limits.quiet)
            # Not repeated here: the reflector watches again, with new credentials.
            if answer.status == 401:
                self._credentials.refuse(identity)
            reply = self._read(request, answer)
        except BaseException:
            connection.close()
            raise
        connection.close()
        return reply

    def close(self) -> None:
        """Close all connections. Streams that are being read end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            streams, self._streams = self._streams, set()
            self._lock.notify_all()
        for connection in idle:
            connection.close()
        for connection in streams:
            connection.shut_down()

    def _exchange(
        self,
        requests: Sequence[Request],
        timeout: float,
        before_send: Callable[[], None] | None,
        gathering: float = 0.0,
    ) -> tuple[Sequence[Reply], Identity, UnavailableError | None]:
        """Send the requests, and read their answers up to the first failure.

        Return the answers, the identity under which the requests were sent, and the failure.
        """
        identity = self._credentials.identity()
        self._under_way.append(None)
        try:
            return self._exchanged(requests, identity, timeout, before_send, gathering)
        finally:
            self._under_way.pop()

    def _exchanged(
        self,
        requests: Sequence[Request],
        identity: Identity,
        timeout: float,
        before_send: Callable[[], None] | None,
        gathering: float,
    ) -> tuple[Sequence[Reply], Identity, UnavailableError | None]:
        connection = self._take(identity, timeout)
        receive = self._gathered(connection, gathering) if gathering else connection.receive
        replies: list[Reply] = []
        failure = None
        is_kept = False
        try:
            connection.wait_at_most(timeout)
            self._send(connection, identity, requests, before_send)
            rest, keeps_open = b"", True
            for request in requests:
                # A peer may close the connection after any answer, such as a proxy that doesn't know of pipelining.
                if keeps_open:
                    answer = self._answer(receive, request, rest)
                    replies.append(self._read(request, answer))
                    rest, keeps_open = answer.rest, answer.head.keeps_open
            # Bytes that nobody asked for would be taken for the next answer.
            is_kept = keeps_open and not rest
        except UnavailableError as error:
            failure = error
        finally:
            # After a failure, part of an answer may still arrive. The next request must not read it.
            if is_kept:
                self._put_back(connection)
            else:
                connection.close()
        return replies, identity, failure

    def _gathered(self, connection: Connection, seconds: float) -> Receive:
        """Return a function that lets bytes gather for so long, and returns all that have arrived."""
        stopping = StopSignal(self._clock)

        def receive() -> bytes:
            stopping.wait(seconds)
            return connection.receive_all()

        return receive

    def _send(
        self,
        connection: Connection,
        identity: Identity,
        requests: Sequence[Request],
        before_send: Callable[[], None] | None,
    ) -> None:
        # In one piece, since the connection sends small writes at once.
        message = b"".join([self._message(request, identity) for request in requests])
        connection.set_timeout()
        if before_send is not None:
            # Last, so that nothing that may wait comes between this check and sending.
            before_send()
        try:
            connection.send(message)
        except (OSError, ValueError) as error:
            raise _failed(requests[0], error) from None

    def _message(self, request: Request, identity: Identity) -> bytes:
        head = f"{request.method} {self._prefix}{request.target} HTTP/1.1\r\n{self._head}"
        if identity.authorization:
            head += f"Authorization: {identity.authorization}\r\n"
        if request.body:
            head += f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n"
        elif request.method != "GET":
            head += "Content-Length: 0\r\n"
        return head.encode("ascii") + b"\r\n" + request.body

    @staticmethod
    def _answer(receive: Receive, request: Request, rest: bytes = b"") -> Answer:
        try:
            return Answer(receive, rest)
        except (OSError, HTTPException, ValueError) as error:
            raise _failed(request, error) from None

    def _read(self, request: Request, answer: Answer) -> Reply:
        limit = self._limits.response
        try:
            body = answer.read(limit)
        except (OSError, HTTPException, ValueError) as error:
            raise _failed(request, error) from None
        if len(body) > limit:
            raise UnavailableError(
                f"{request}: the answer has more than {limit} bytes", uncertain=request.method != "GET"
            )
        return Reply(answer.status, answer.head.fields, body)

    # Connections

    def _take(self, identity: Identity, timeout: float) -> Connection:
        """Return an idle connection, or a new one if none becomes idle before it may be made."""
        while (connection := self._next_idle()) is not None:
            if connection.tls is identity.tls and connection.is_open:
                return connection
            connection.close()
        try:
            return self._dialer.dial(identity, min(timeout, self._limits.connect))
        finally:
            with self._lock:
                # `_next_idle` counted this dial.
                self._dialing -= 1
                self._lock.notify()

    def _next_idle(self) -> Connection | None:
        """Wait for an idle connection and take it.

        Return None, and count a dial, if a new connection must be made instead.
        """
        until = self._clock.monotonic() + _PATIENCE
        with self._lock:
            while not self._closed:
                if self._idle:
                    # The one that was used last: the peer has probably kept it, and a short rest needs no check.
                    return self._idle.pop()
                left = until - self._clock.monotonic()
                if self._dialing < _DIALS or left <= 0:
                    self._dialing += 1
                    return None
                self._clock.wait_until(self._lock, self._clock.now() + left)
        raise UnavailableError("the client is closed")

    def _put_back(self, connection: Connection) -> None:
        surplus = connection
        with self._lock:
            if not self._closed and len(self._idle) < self._limits.idle_connections:
                connection.rest()
                self._idle.append(connection)
                self._lock.notify()
                # The one that was used last is taken first, so the first one has been superfluous for longest.
                if self._idle[0].rested() < _LONGEST_REST:
                    return
                surplus = self._idle.pop(0)
        surplus.close()


def _failed(request: Request, error: Exception) -> UnavailableError:
    return UnavailableError(f"{request}: {why(error)}", uncertain=request.method != "GET")
