"""The HTTP connection to one extender. Needs the extra `extender`."""

from __future__ import annotations

import ssl
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from kschedfw import Clock, FieldError, format_duration
from kschedfw.api import how_to_install
from kschedfw.config import ExtenderConfig, ExtenderConfigError, ExtenderTLSConfig, without_password
from kschedfw.scheduler import MissingExtraError
from kschedfw_kubernetes.http_extender.errors import ExtenderError
from kschedfw_kubernetes.http_extender.go_json import has_too_many_values

if TYPE_CHECKING:
    import httpx2


MAX_ANSWER_BYTES: Final = 64 << 20
"""The most bytes of an answer, compressed and uncompressed. 64 MiB are some thousands of whole nodes."""

_MAX_REDIRECTS = 10  # The limit of Go's client.
# Seconds. Servers keep idle connections longer, so that none is closed just when it is used.
_KEEP_ALIVE = 2.0


class _UnwantedError(Exception):
    """The answer can't be accepted."""


class Transport:
    """A connection (pooled, thread-safe) to one extender.

    As in kube-scheduler, proxies are taken from the environment, redirects are followed, and the timeout is for the
    whole call: connecting, the answer's headers, and its last byte. An answer may have up to `max_bytes`.

    Raises:
        MissingExtraError: the extra `extender` isn't installed.
        ExtenderConfigError: certificates or keys can't be read.
    """

    def __init__(self, config: ExtenderConfig, clock: Clock, *, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        try:
            import httpcore2
            import httpx2

            from kschedfw_kubernetes.http_extender.connections import Deadline, PooledTransport
        except ModuleNotFoundError as error:
            needs = (
                f"HTTP extenders need the extra extender: {how_to_install('kschedfw-kubernetes', 'extender')}"
            )
            raise MissingExtraError(needs) from error
        self._prefix, self._credentials = _without_credentials(config.url_prefix)
        self._name = without_password(config.url_prefix)
        self._timeout = config.timeout
        self._clock = clock
        self._max_bytes = max_bytes
        self._server_name = config.tls_config.server_name if config.tls_config else ""
        self._deadline = Deadline
        self._timeouts = httpcore2.TimeoutException
        # Errors of others, which the libraries pass on. UnicodeError: the host name is invalid.
        self._failures = (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            httpx2.StreamError,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.ProxyError,
            httpcore2.UnsupportedProtocol,
            OSError,
            UnicodeError,
            zlib.error,
            _UnwantedError,
        )
        self._client = httpx2.Client(
            transport=PooledTransport(ssl_context(config), _KEEP_ALIVE),
            headers={
                "Content-Type": "application/json",
                "User-Agent": "kschedfw",
                "Accept-Encoding": "gzip",  # Go requests only gzip.
            },
            # No cookies: Go's client keeps none unless it is given a jar.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    def post(self, verb: str, body: bytes) -> bytes:
        """Send a request. Return the answer's body.

        Raises:
            ExtenderError: no answer within the timeout, a larger one than allowed, or another status than 200.
        """
        url = f"{self._prefix.rstrip('/')}/{verb}"
        extensions = {"sni_hostname": self._server_name} if self._server_name else {}
        try:
            with self._deadline(self._clock, self._timeout) as deadline:
                request = self._client.build_request(
                    "POST", url, content=body, timeout=deadline.left, extensions=extensions
                )
                response = self._follow(request)
                try:
                    if response.status_code != 200:
                        raise _UnwantedError(f"the answer has status {response.status_code}")
                    return self._content(response)
                finally:
                    response.close()
        except self._timeouts as error:
            raise self.error(verb, f"no answer within {format_duration(self._timeout)}") from error
        except self._failures as error:
            raise self.error(verb, _cause(error)) from error

    def _follow(self, request: httpx2.Request) -> httpx2.Response:
        """Return the unread response at the end of the redirects. The bodies of redirects aren't read."""
        credentials = self._credentials
        for _ in range(_MAX_REDIRECTS + 1):
            response = self._client.send(request, stream=True, auth=credentials)
            if response.next_request is None:
                return response
            response.close()
            # A redirect to the same host has the credentials in a header already. Another host doesn't get them.
            request, credentials = response.next_request, None
        raise _UnwantedError(f"more than {_MAX_REDIRECTS} redirects")

    def _content(self, response: httpx2.Response) -> bytes:
        encoding = response.headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "gzip"):
            raise _UnwantedError(f"the answer has content-encoding {encoding!r}, and gzip was asked for")
        pieces = response.iter_raw()
        content = b"".join(self._limited(self._unpacked(pieces) if encoding == "gzip" else pieces))
        if has_too_many_values(content, self._max_bytes):
            raise _UnwantedError("the answer has too many values")
        return content

    def _unpacked(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the content of a gzip file in these pieces, up to one byte beyond the limit."""
        file = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        room = self._max_bytes + 1
        for piece in self._limited(pieces):
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

    @property
    def is_closed(self) -> bool:
        return self._client.is_closed

    def close(self) -> None:
        self._client.close()


def _without_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the URL without user and password, and both as a pair.

    They must not be in the URL, which the library logs.
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    name, _, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=host)), (unquote(name), unquote(password))


def _cause(error: Exception) -> str:
    if isinstance(error, UnicodeError) or "idna" in str(error):
        # The error may be wrapped in a connection error.
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
