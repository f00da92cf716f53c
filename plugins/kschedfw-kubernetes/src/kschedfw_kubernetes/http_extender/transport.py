"""The HTTP connection to one extender."""

from __future__ import annotations

import ssl
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import attrs

from kschedfw import Clock, FieldError, format_duration
from kschedfw.config import ExtenderConfig, ExtenderConfigError, ExtenderTLSConfig, without_password
from kschedfw_kubernetes.http.answers import Answer
from kschedfw_kubernetes.http.connections import Connection, Peer, Proxy, basic, dial
from kschedfw_kubernetes.http_extender.errors import ExtenderError
from kschedfw_kubernetes.http_extender.go_json import has_too_many_values

MAX_ANSWER_BYTES: Final = 64 << 20
"""The most bytes of an answer, compressed and uncompressed. 64 MiB are some thousands of whole nodes."""

_MAX_REDIRECTS = 10  # The limit of Go's client.
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_KEEP_ALIVE: Final = 2.0
"""Seconds. Servers keep idle connections longer, so that none is closed just when it is used."""
_MOST_KEPT: Final = 20
"""The most idle connections to one host."""
_PORTS: Final = {"http": 80, "https": 443}
_SAFE: Final = "/%:=&?~#+!$,;'@()*[]"
"""The characters of a path and a query that are sent as they are, beside letters, digits and `_.-`."""


class _UnwantedError(Exception):
    """The answer can't be accepted."""


@attrs.frozen
class _Request:
    """A request to one URL. `authorization` is the header's value, if there are user and password."""

    method: str
    url: SplitResult
    body: bytes
    authorization: str = attrs.field(default="", repr=False)

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port. Raises ValueError for a URL that no request can be sent to."""
        scheme, host = self.url.scheme, self.url.hostname
        if scheme not in _PORTS or not host:
            raise _UnwantedError("its URL has to begin with http:// or https:// and a host")
        return scheme, host, self.url.port or _PORTS[scheme]

    def message(self, proxy: Proxy | None) -> bytes:
        """Return the request's text. To a proxy without a tunnel, it names the whole URL."""
        scheme, host, port = self.origin
        authority = f"[{host}]" if ":" in host else host.encode("idna").decode()
        if port != _PORTS[scheme]:
            authority += f":{port}"
        target = quote(self.url.path or "/", safe=_SAFE)
        if self.url.query:
            target += f"?{quote(self.url.query, safe=_SAFE)}"
        lines = [
            f"{self.method} {target if proxy is None else f'{scheme}://{authority}{target}'} HTTP/1.1",
            f"Host: {authority}",
            "User-Agent: kschedfw",
            "Accept: */*",
            "Accept-Encoding: gzip",  # Go requests only gzip.
        ]
        if self.authorization:
            lines.append(f"Authorization: {self.authorization}")
        if proxy is not None and proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        if self.method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*lines, "\r\n"]).encode("ascii") + self.body

    def redirected(self, status: int, location: str) -> _Request:
        """Return the request that a redirect asks for. Another host doesn't get the credentials."""
        target = urlsplit(urljoin(self.url.geturl(), location))
        repeats = status in (307, 308)
        request = attrs.evolve(
            self,
            method=self.method if repeats else "GET",
            url=target,
            body=self.body if repeats else b"",
        )
        return request if request.origin == self.origin else attrs.evolve(request, authorization="")


class Transport:
    """A connection (pooled, thread-safe) to one extender.

    As in kube-scheduler, proxies are taken from the environment, redirects are followed, no cookies are kept, and the
    timeout is for the whole call: connecting, the answer's headers, and its last byte. An answer may have up to
    `max_bytes`.

    Raises:
        ExtenderConfigError: certificates or keys can't be read.
    """

    def __init__(self, config: ExtenderConfig, clock: Clock, *, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        self._prefix, self._authorization = _without_credentials(config.url_prefix)
        self._name = without_password(config.url_prefix)
        self._timeout = config.timeout
        self._clock = clock
        self._max_bytes = max_bytes
        self._server_name = config.tls_config.server_name if config.tls_config else ""
        self._tls = ssl_context(config)
        self._idle: dict[tuple[str, str, int], list[Connection]] = {}
        self._lock = threading.Lock()
        self.is_closed = False

    def post(self, verb: str, body: bytes) -> bytes:
        """Send a request. Return the answer's body.

        Raises:
            ExtenderError: no answer within the timeout, a larger one than allowed, or another status than 200.
        """
        until = self._clock.monotonic() + self._timeout
        try:
            url = urlsplit(f"{self._prefix.rstrip('/')}/{verb}")
            request = _Request("POST", url, body, self._authorization)
            for _ in range(_MAX_REDIRECTS + 1):
                with self._sent(request, until) as answer:
                    location = answer.head.fields.get("location")
                    if answer.status not in _REDIRECTS or location is None:
                        return self._content(answer)
                # The bodies of redirects aren't read.
                request = request.redirected(answer.status, location)
            raise _UnwantedError(f"more than {_MAX_REDIRECTS} redirects")
        except TimeoutError as error:
            raise self.error(verb, f"no answer within {format_duration(self._timeout)}") from error
        # ValueError: an invalid URL; of it UnicodeError, an invalid name of a host.
        except (OSError, HTTPException, ValueError, zlib.error, _UnwantedError) as error:
            raise self.error(verb, _cause(error)) from error

    @contextmanager
    def _sent(self, request: _Request, until: float) -> Iterator[Answer]:
        """Send the request, and give its answer. The connection is kept if the whole answer is read in the block."""
        scheme, host, port = request.origin
        proxy = _proxy(scheme, host)
        connection = self._take(request.origin)
        left = until - self._clock.monotonic()
        if connection is None:
            is_secure = scheme == "https"
            peer = Peer(host, port, self._tls if is_secure else None, self._server_name, proxy)
            # Without TLS a proxy takes the request itself, and needs no tunnel.
            near = peer if is_secure or proxy is None else Peer(proxy.host, proxy.port)
            connection = dial(near, left, self._clock)
        is_kept = False
        try:
            connection.wait_at_most(until - self._clock.monotonic())
            connection.send(request.message(proxy if scheme == "http" else None))
            answer = Answer(connection.receive)
            yield answer
            # Bytes that nobody asked for would be taken for the next answer, and so would the body of a redirect, which
            # isn't read.
            is_kept = answer.has_ended and not answer.rest and answer.head.keeps_open
        finally:
            if not (is_kept and self._put_back(request.origin, connection)):
                connection.close()

    def _take(self, origin: tuple[str, str, int]) -> Connection | None:
        """Return a kept connection that the peer has kept as well; None if there is none."""
        while True:
            with self._lock:
                kept = self._idle.get(origin)
                connection = kept.pop() if kept else None
            if connection is None or (connection.rested() < _KEEP_ALIVE and connection.is_silent):
                return connection
            connection.close()

    def _put_back(self, origin: tuple[str, str, int], connection: Connection) -> bool:
        """Keep a connection for the next call. Return False if enough are kept."""
        connection.rest()
        with self._lock:
            kept = self._idle.setdefault(origin, [])
            if self.is_closed or len(kept) >= _MOST_KEPT:
                return False
            kept.append(connection)
            return True

    def _content(self, answer: Answer) -> bytes:
        if answer.status != 200:
            raise _UnwantedError(f"the answer has status {answer.status}")
        encoding = answer.head.fields.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "gzip"):
            raise _UnwantedError(f"the answer has content-encoding {encoding!r}, and gzip was asked for")
        pieces = self._limited(answer.pieces())
        content = b"".join(self._limited(self._unpacked(pieces)) if encoding == "gzip" else pieces)
        if has_too_many_values(content, self._max_bytes):
            raise _UnwantedError("the answer has too many values")
        return content

    def _unpacked(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the content of a gzip file in these pieces, up to one byte beyond the limit."""
        file = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        room = self._max_bytes + 1
        for piece in pieces:
            unpacked = file.decompress(piece, room)
            yield unpacked
            room -= len(unpacked)
            if not room or file.eof:
                return
        raise _UnwantedError("the answer is half a gzip file")

    def _limited(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > self._max_bytes:
                raise _UnwantedError(f"the answer is larger than {self._max_bytes} bytes")
            yield piece

    def error(self, verb: str, cause: str) -> ExtenderError:
        return ExtenderError(self._name, verb, f"{self._name.rstrip('/')}/{verb}", cause)

    def close(self) -> None:
        """Close the kept connections."""
        with self._lock:
            self.is_closed = True
            kept = [connection for connections in self._idle.values() for connection in connections]
            self._idle.clear()
        for connection in kept:
            connection.close()


def _proxy(scheme: str, host: str) -> Proxy | None:
    """Return the environment's proxy for a host. As in Go, there is none for this machine."""
    if _is_here(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    return Proxy.parse(address) if address else None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _without_credentials(url: str) -> tuple[str, str]:
    """Return the URL without user and password, and the header's value for both."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, ""
    name, _, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=host)), basic(name, password)


def _cause(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return f"a host name that can't be looked up, of the extender or where it redirects to: {error}"
    return str(error) or type(error).__name__


def ssl_context(config: ExtenderConfig) -> ssl.SSLContext:
    """Return the SSL context for the extender (kube-scheduler `makeTransport`, client-go `TLSConfigFor`).

    Raises:
        ExtenderConfigError: a certificate or key can't be read.
    """
    tls = config.tls_config or ExtenderTLSConfig()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # kube-scheduler sets Insecure if enableHTTPS is true and no CA is given.
    if tls.insecure or (config.enable_https and not tls.has_ca):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.has_ca:
        _load_ca(context, tls)
    else:
        context.load_default_certs()
    if tls.has_certificate:
        _load_certificate(context, tls)
    return context


def _load_ca(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    try:
        if tls.ca_data:
            context.load_verify_locations(cadata=tls.ca_data.decode("ascii"))
        else:
            context.load_verify_locations(cafile=tls.ca_file)
    except (OSError, ValueError) as error:  # SSLError is an OSError.
        raise _unusable("caData" if tls.ca_data else "caFile", tls.ca_file, error) from error


def _load_certificate(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    with _as_file(tls.cert_file, tls.cert_data) as cert, _as_file(tls.key_file, tls.key_data) as key:
        try:
            # Without the callback OpenSSL would prompt for the password of an encrypted key.
            context.load_cert_chain(cert, key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise _unusable("certData" if tls.cert_data else "certFile", tls.cert_file, error) from error


def _unusable(field: str, file: str, error: Exception) -> ExtenderConfigError:
    return ExtenderConfigError([FieldError.invalid(f"tlsConfig.{field}", file, f"can't be used: {error}")])


@contextmanager
def _as_file(file: str, data: bytes) -> Iterator[str]:
    """Yield the path of the file, or that of a private file with the data: OpenSSL reads keys only from files."""
    if not data:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="kschedfw-") as directory:
        path = Path(directory) / "pem"
        path.touch(mode=0o600)
        path.write_bytes(data)
        yield str(path)
