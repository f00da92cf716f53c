"""Access to the page: only with its token, and only from its own origin.

The token comes in the address that the command prints, and becomes a cookie at the first load. Other websites that
the user's browser visits can't ask (the cookie is SameSite=Strict, there is no CORS, and requests that change something
must be JSON of the same origin), and can't resolve their own name to this server (the Host is checked).
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection
from http.cookies import CookieError, SimpleCookie
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import attrs
from kschedfw_kubernetes.web import (
    PLAIN_TEXT,
    Header,
    HostRule,
    Message,
    Receive,
    Response,
    Scope,
    Send,
    bearer_token,
)

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


@attrs.frozen
class Access:
    """The token, and the names by which the server may be addressed."""

    token: str
    hosts: HostRule
    cookie: str
    """The cookie's name; another one for each port, as cookies know no ports."""

    @classmethod
    def of(cls, token: str, allowed_hosts: Collection[str], port: int) -> Access:
        return cls(token, HostRule(allowed_hosts), f"kschedfw-explore-{port}")

    def refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that isn't served: a refusal, or at the first load the cookie."""
        headers: list[Header] = scope["headers"]
        if not self.hosts.allows(headers):
            return _refused(421, "the Host is none that this page goes by; see --allowed-host")
        if scope["method"] == "GET" and scope["path"] == "/" and self._is_in_address(scope):
            cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            # The browser goes on to an address without the token, which it would keep in its history.
            return Response(303, b"", PLAIN_TEXT, ((b"location", b"/"), (b"set-cookie", cookie.encode())))
        given = bearer_token(headers) or self._in_cookie(headers)
        if not self._is_right(given):
            return _refused(403, "open the address that kschedfw explore has printed, with its token")
        if scope["method"] not in ("GET", "HEAD") and not _is_own(headers):
            return _refused(403, "requests that change something are JSON, from this page only")
        return None

    def _is_in_address(self, scope: Scope) -> bool:
        name, _, given = scope["query_string"].decode("latin-1").partition("=")
        return bool(name == "token" and self._is_right(given))

    def _in_cookie(self, headers: list[Header]) -> str | None:
        try:
            cookies = SimpleCookie(_value(headers, b"cookie"))
        except CookieError:
            return None
        return cookies[self.cookie].value if self.cookie in cookies else None

    def _is_right(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())


Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guarded:
    """An ASGI application behind an Access; every answer gets the headers that keep a browser strict."""

    def __init__(self, app: Application, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The events of the application's lifespan: no request, so nothing to guard.
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        refusal = self._access.refusal(scope)
        if refusal is not None:
            await refusal.send(strict)
        else:
            await self._app(scope, receive, strict)


def _refused(status: int, text: str) -> Response:
    return Response(status, f"{text}\n".encode(), PLAIN_TEXT, ((b"connection", b"close"),))


def _is_own(headers: list[Header]) -> bool:
    """Tell whether a request that changes something comes from the page, or from no browser."""
    kind = _value(headers, b"content-type").partition(";")[0].strip().lower()
    # Programs send no such header. Browsers that lack it send Origin with a POST.
    site = _value(headers, b"sec-fetch-site") or "same-origin"
    origin = _value(headers, b"origin")
    is_same = not origin or urlsplit(origin).netloc == _value(headers, b"host")
    return kind == "application/json" and site == "same-origin" and is_same


def _value(headers: list[Header], name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in headers if key == name), "")
