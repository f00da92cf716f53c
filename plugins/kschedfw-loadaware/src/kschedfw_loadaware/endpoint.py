"""A client for HTTP addresses that answer in JSON.

It limits time and memory, since a server may be broken or hostile.
"""

from __future__ import annotations

import http.client
import io
import queue
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from kschedfw_loadaware.report import MetricsError, json_of, shown

TIMEOUT: Final = 10.0
"""Seconds that all requests for one report may take. The scheduler waits this long at most."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""The maximal length of an answer, in bytes."""

_MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_LEFT_AS_THEY_ARE: Final = "%/:?#[]@!$&'()*+,;=~"
"""Characters that stay unquoted in URLs, besides letters and digits."""
_LONGEST_URL: Final = 300
"""The number of characters after which messages cut a URL."""

_Address: TypeAlias = tuple[socket.AddressFamily, Any]
"""A socket family, and an address as sockets of this family take it."""


@attrs.frozen
class Deadline:
    """A deadline `seconds` after its creation, in real time rather than the scheduler's clock."""

    seconds: float
    _at: float = attrs.field(
        init=False, default=attrs.Factory(lambda self: time.perf_counter() + self.seconds, takes_self=True)
    )

    @property
    def left(self) -> float:
        """Return the seconds left, more than 0.

        Raises TimeoutError: the deadline has passed.
        """
        left = self._at - time.perf_counter()
        if left <= 0:
            raise TimeoutError
        return left


def masked(token: str) -> str:
    """Return what a `repr` shows in place of a secret."""
    return "'***'" if token else "''"


@attrs.frozen
class Endpoint:
    """An http:// or https:// address with the settings for requests to it.

    `token` is sent as a bearer token, only to this host. `ca_file` has the trusted certificates, in place of the
    system's. `timeout` (seconds) limits a whole call, from the look-up of the host to the last byte, with redirects.
    `max_bytes` limits an answer. Proxies in environment variables aren't used.

    Raises:
        MetricsError: the address is invalid, or the token can't be sent.
    """

    address: str
    token: str = attrs.field(default="", repr=masked)
    insecure_skip_verify: bool = False
    ca_file: str = ""
    timeout: float = TIMEOUT
    max_bytes: int = MAX_BYTES

    def __attrs_post_init__(self) -> None:
        if problem := address_problem(self.address):
            raise MetricsError(f"{shown(without_password(self.address))}: {problem}")
        if not (self.token.isascii() and self.token.isprintable()):
            raise MetricsError(f"{self.address}: the token must be printable ASCII")

    def deadline(self) -> Deadline:
        """Return a deadline that several requests can share."""
        return Deadline(self.timeout)

    def get(self, path: str, deadline: Deadline | None = None) -> object:
        """Request a path and return the parsed JSON.

        Redirects on the same host are followed.

        Raises MetricsError: no answer arrived by the deadline, or the answer hasn't status 200, is too long or is no
        JSON. The message names the URL.
        """
        deadline = self.deadline() if deadline is None else deadline
        url = self.address.rstrip("/") + path
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                answer = self._ask(url, deadline)
                if isinstance(answer, bytes):
                    return json_of(answer)
                url = _followed(url, answer)
            except TimeoutError:
                raise MetricsError(f"{_cut(url)}: no answer within {deadline.seconds:g} s") from None
            except (OSError, ValueError, http.client.HTTPException, MetricsError) as error:
                raise MetricsError(f"{_cut(url)}: {_reason(error)}") from error
        raise MetricsError(f"{_cut(url)}: redirected more than {_MAX_REDIRECTS} times")

    def _ask(self, url: str, deadline: Deadline) -> bytes | str:
        """Send a request. Return the content, or the location of a redirect."""
        parts = urllib.parse.urlsplit(url)
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        with self._connected(parts, deadline) as sock:
            connection = http.client.HTTPConnection(parts.netloc.rpartition("@")[2])
            # _Timed is no socket, but has every method of one that http.client calls here.
            connection.sock = cast("socket.socket", _Timed(sock, deadline))
            target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            if answer.status in _REDIRECTS and (location := answer.headers["Location"]):
                return str(location)
            if answer.status != 200:
                raise MetricsError(f"HTTP {answer.status} {shown(answer.reason)}")
            if encoding := answer.headers["Content-Encoding"]:
                raise MetricsError(f"the answer is encoded, which nobody asked for: {shown(encoding)}")
            return self._content(answer)

    def _content(self, answer: http.client.HTTPResponse) -> bytes:
        too_long = MetricsError(f"the answer is longer than {self.max_bytes:,} bytes")
        if answer.length is not None and answer.length > self.max_bytes:
            raise too_long
        # One byte more than allowed, to see that there is more.
        content = answer.read(self.max_bytes + 1)
        if len(content) > self.max_bytes:
            raise too_long
        # http.client raises no error for a truncated answer if the read is limited.
        if answer.length:
            raise http.client.IncompleteRead(content, answer.length)
        return content

    def _connected(self, parts: urllib.parse.SplitResult, deadline: Deadline) -> socket.socket:
        host = parts.hostname or ""
        if parts.scheme == "http":
            return _connect(host, parts.port or 80, deadline)
        context = self._tls()
        sock = _connect(host, parts.port or 443, deadline)
        try:
            sock.settimeout(deadline.left)
            return context.wrap_socket(sock, server_hostname=host)
        finally:
            # If wrap_socket succeeded, the TLS socket has taken over the descriptor and this changes nothing. If it
            # failed, the connection must be closed.
            sock.close()

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:
            raise MetricsError(f"{self.ca_file}: {error.strerror or error}") from error
        if self.insecure_skip_verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def address_problem(address: str) -> str:
    """Return why requests can't be sent to the address, or an empty text if they can."""
    try:
        parts = urllib.parse.urlsplit(address)
        # Reading the port raises ValueError if it is no number up to 65535.
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and a host"
    if parts.username is not None or parts.password is not None:
        return "must be without user and password"
    if parts.query or parts.fragment:
        return "must be without query and fragment"
    return ""


def without_password(address: str) -> str:
    """Return the address with user and password masked, for messages about invalid addresses."""
    scheme, separator, rest = address.rpartition("://")
    return f"{scheme}{separator}***@{rest.rpartition('@')[2]}" if "@" in rest else address


def _connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first address of the host that accepts a connection."""
    failure: OSError | None = None
    for family, address in _addresses(host, port, deadline):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(deadline.left)
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure or OSError("the host has no address")


def _addresses(host: str, port: int, deadline: Deadline) -> Iterable[_Address]:
    """Return the addresses of a host name.

    The system's resolver has no timeout, so it runs in a thread of its own. The thread is abandoned at the deadline.
    """
    found: queue.SimpleQueue[Sequence[_Address] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put([(family, address) for family, _, _, _, address in known])
        except Exception as error:
            found.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        addresses = found.get(timeout=deadline.left)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(addresses, Exception):
        raise addresses
    return addresses


class _Timed:
    """The methods of a socket that http.client calls, limited by a deadline.

    A socket's own timeout wouldn't suffice: it starts anew with each byte that arrives.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._socket, self._deadline = sock, deadline

    def sendall(self, content: bytes) -> None:
        self._socket.settimeout(self._deadline.left)
        self._socket.sendall(content)

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002  # http.client only reads
        return io.BufferedReader(_Reader(self._socket, self._deadline))

    def close(self) -> None:
        """Do nothing.

        http.client calls this before the answer was read; the caller that connected closes the socket.
        """


class _Reader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._socket, self._deadline = sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # less than any buffer will do
        self._socket.settimeout(self._deadline.left)
        return self._socket.recv_into(buffer)


def _followed(url: str, location: str) -> str:
    """Return the URL that a redirect leads to.

    Raises MetricsError: its scheme, host or port differ, so the token must not be sent there.
    """
    target = urllib.parse.quote(urllib.parse.urljoin(url, location), safe=_LEFT_AS_THEY_ARE)
    if _origin(target) != _origin(url):
        raise MetricsError(
            f"redirects to {shown(target)}; only redirects to the same scheme, host and port are followed"
        )
    return target


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _cut(url: str) -> str:
    return url if len(url) <= _LONGEST_URL else f"{url[: _LONGEST_URL - 1]}…"


def _reason(error: Exception) -> str:
    """Return the error as one line. Texts that the server has sent are escaped."""
    match error:
        case http.client.IncompleteRead():
            return "the answer ends early"
        case http.client.HTTPException():
            return f"not HTTP: {type(error).__name__} {shown(str(error))}"
    return str(error)
