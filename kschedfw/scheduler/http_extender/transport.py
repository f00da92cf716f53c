"""Sends one body to one extender and brings back the other. The only module that needs the extra `extender`."""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy

from kschedfw.config.extenders import ExtenderConfig
from kschedfw.framework.clock import Clock, format_duration
from kschedfw.scheduler.errors import MissingExtraError
from kschedfw.scheduler.http_extender.errors import ExtenderError
from kschedfw.scheduler.http_extender.tls import ssl_context

NEEDS_EXTRA = "HTTP extenders need the extra extender: pip install 'kschedfw[extender]'"

_MAX_REDIRECTS = 10  # as in Go
_KEEP_ALIVE = 2.0  # s; less than servers keep idle connections, so that none is closed just as it is used


class _TimedOutError(Exception):
    """The call took too long."""


class _Timeouts(dict[str, float]):
    """What is left of a call's time, whenever connecting, writing or reading begins.

    The timeouts of HTTP libraries are for each of these, Go's is for the whole call.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self._clock = clock
        self._seconds = seconds
        self._deadline = clock.now() + seconds

    @property
    def left(self) -> float:
        """Seconds left; never more than the whole, should the clock be set back."""
        left = min(self._deadline - self._clock.now(), self._seconds)
        if left <= 0:
            raise _TimedOutError
        return left

    def get(self, _key: str, _default: object = None) -> float:
        return self.left


class Transport:
    """A connection (pooled, thread-safe) to one extender.

    As in kube-scheduler, proxies are taken from the environment and redirects are followed.

    Raises:
        MissingExtraError: the extra `extender` isn't installed.
        ExtenderConfigError: certificates or keys can't be read.
    """

    def __init__(self, config: ExtenderConfig, clock: Clock) -> None:
        try:
            import httpx2
        except ModuleNotFoundError as error:
            raise MissingExtraError(NEEDS_EXTRA) from error
        self._prefix = config.url_prefix
        self._timeout = config.timeout
        self._clock = clock
        self._server_name = config.tls_config.server_name if config.tls_config else ""
        self._failures = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
        self._timeouts = (httpx2.TimeoutException, _TimedOutError)
        self._client = httpx2.Client(
            verify=ssl_context(config),
            headers={"Content-Type": "application/json", "User-Agent": "kschedfw"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=True,
            max_redirects=_MAX_REDIRECTS,
            limits=httpx2.Limits(keepalive_expiry=_KEEP_ALIVE),
        )

    def post(self, verb: str, body: bytes) -> bytes:
        """The answer's body.

        Raises:
            ExtenderError: no answer within the timeout, or another status than 200.
        """
        url = f"{self._prefix.rstrip('/')}/{verb}"
        timeouts = _Timeouts(self._clock, self._timeout)
        extensions: dict[str, object] = {"timeout": timeouts}
        if self._server_name:
            extensions["sni_hostname"] = self._server_name
        try:
            with self._client.stream("POST", url, content=body, extensions=extensions) as response:
                if response.status_code != 200:
                    raise self.error(verb, f"the answer has status {response.status_code}")
                chunks = []
                for chunk in response.iter_bytes():
                    chunks.append(chunk)
                    _ = timeouts.left  # one that trickles in is late, too
                return b"".join(chunks)
        except self._timeouts as error:
            raise self.error(verb, f"no answer within {format_duration(self._timeout)}") from error
        except self._failures as error:
            raise self.error(verb, str(error) or type(error).__name__) from error

    def error(self, verb: str, cause: str) -> ExtenderError:
        return ExtenderError(self._prefix, verb, f"{self._prefix.rstrip('/')}/{verb}", cause)

    @property
    def is_closed(self) -> bool:
        return self._client.is_closed

    def close(self) -> None:
        self._client.close()
