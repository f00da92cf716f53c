"""The HTTP endpoints of a running scheduler, as an ASGI 3 application (kube-scheduler's on port 10259).

| path | answer | needs permission |
| --- | --- | --- |
| `/healthz`, `/livez`, `/readyz` | `ok`, or which checks fail; `?verbose`, `?exclude=` | no |
| `/readyz/CHECK` … | `ok`, or why the check fails | yes |
| `/metrics`, `/metrics/resources`, `/metrics/slis` | Prometheus' text format | yes |
| `/configz` | the effective configuration, as JSON | yes |
| `/statusz`, `/flagz` | version, uptime, leader; the flags: as text, JSON or YAML | yes |
| `/debug/pprof/…` | profiles, with `--profiling` | yes |
| `/debug/cache` | how cache and cluster differ, then cache and queue as text | yes |
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from kschedfw.api import EMPTY
from kschedfw.scheduler import Structured
from kschedfw_kubernetes.serve.access import Access, User
from kschedfw_kubernetes.serve.client_certificates import ClientCertificates
from kschedfw_kubernetes.serve.health import HealthEndpoint
from kschedfw_kubernetes.web.asgi import (
    NO_SNIFFING,
    PLAIN_TEXT,
    Asked,
    Content,
    Header,
    Page,
    Receive,
    Response,
    Scope,
    Send,
    bearer_token,
    path_of,
    status_response,
)

_log = logging.getLogger(__name__)

PEER: Final = "peer_certificate"
"""The key of the client's certificate (DER) in a request's state. It is None or missing if the client showed none."""
_PRIVATE: Final[Header] = (b"cache-control", b"no-cache, private")
_METHODS: Final = ("GET", "HEAD")
_PARALLEL: Final = 8
"""The most requests with permission that are handled at a time, since each takes a thread and asks the API server."""


class Endpoints:
    """The application. Health is public; other contents need the API server's permission to `get` the path.

    `contents` and `pages` are computed on threads, for each request. Health is answered on the event loop, so its
    checks must be fast. The paths of `always_allow` need no permission (kube-scheduler
    `--authorization-always-allow-paths`); a `*` at the end means everything below. `clients` identifies callers by
    their certificates.
    """

    def __init__(
        self,
        health: Sequence[HealthEndpoint],
        contents: Mapping[str, Content],
        access: Access,
        clients: ClientCertificates | None = None,
        *,
        pages: Mapping[str, Page] = EMPTY,
        always_allow: Sequence[str] = ("/healthz", "/readyz", "/livez"),
    ) -> None:
        self._health = {f"/{endpoint.name}": endpoint for endpoint in health}
        self._pages: Mapping[str, Page] = {
            **{path: _whoever_asks(make) for path, make in contents.items()},
            **pages,
        }
        self._access = access
        self._clients = clients or ClientCertificates()
        self._always_allow = tuple(always_allow)
        self._working = asyncio.Semaphore(_PARALLEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's
        if scope["type"] != "http":
            raise NotImplementedError(f"the endpoints don't speak {scope['type']!r}")
        response = await self._respond(scope)
        await Response(
            response.status, response.body, response.content_type, (*response.headers, _PRIVATE)
        ).send(send)

    async def _respond(self, scope: Scope) -> Response:
        path, method = path_of(scope), str(scope["method"])
        # Before the path is looked up: who lacks the permission doesn't learn which paths exist.
        if not self._needs_no_permission(path):
            async with self._working:
                return await asyncio.to_thread(self._permitted, scope, path, method)
        if path in self._pages:
            async with self._working:
                return await asyncio.to_thread(self._content, scope, path, method)
        return self._content(scope, path, method)

    def _permitted(self, scope: Scope, path: str, method: str) -> Response:
        user = self._caller(scope)
        if user is None:
            return status_response(401, "Unauthorized", "Unauthorized")
        verb = method.lower()
        try:
            verdict = self._access.verdict(user, verb, path)
        except Exception as error:  # The client may be of any kind, and so may be its errors.
            _log.error(Structured("Unable to authorize the request", path=path, user=user.name, err=error))
            return _error(500, f"Internal Server Error: {json.dumps(path)}: the API server can't be asked")
        if not verdict.allowed:
            return _forbidden(user, verb, path, verdict.reason)
        return self._content(scope, path, method)

    def _caller(self, scope: Scope) -> User | None:
        """Return the user that a proxy, a certificate or a token names; None if none does."""
        headers, certificate = scope["headers"], scope.get("state", {}).get(PEER)
        if certificate and (user := self._clients.user(certificate, headers)) is not None:
            return user
        token = bearer_token(headers)
        return None if certificate and token is None else self._access.user(token)

    def _content(self, scope: Scope, path: str, method: str) -> Response:
        if method not in _METHODS:
            return _error(405, "405 method not allowed", (b"allow", b"GET, HEAD"))
        asked = Asked.of(scope)
        if (endpoint := self._health.get(path)) is not None:
            query = asked.query
            return endpoint.respond(verbose="verbose" in query, excluded=query.get("exclude", ()))
        parent, _, name = path.rpartition("/")
        if (endpoint := self._health.get(parent)) is not None:
            response = endpoint.respond_for_one(name)
        else:
            response = self._made(path, asked)
        return _error(404, "404 page not found") if response is None else response

    def _made(self, path: str, asked: Asked) -> Response | None:
        make = self._pages.get(path)
        if make is None:
            return None
        try:
            return make(asked)
        except Exception:  # This is a bug, or the cluster can't be reached.
            _log.exception(Structured("An endpoint failed", path=path))
            return _error(500, f"Internal Server Error: {json.dumps(path)}")

    def _needs_no_permission(self, path: str) -> bool:
        return any(
            path.startswith(allowed[:-1]) if allowed.endswith("*") else path == allowed
            for allowed in self._always_allow
        )


def _whoever_asks(make: Content) -> Page:
    return lambda _asked: make()


def _forbidden(user: User, verb: str, path: str, reason: str) -> Response:
    what = f"forbidden: User {json.dumps(user.name)} cannot {verb} path {json.dumps(path)}"
    return status_response(403, "Forbidden", f"{what}: {reason}" if reason else what, details={})


def _error(code: int, message: str, *headers: Header) -> Response:
    return Response(code, f"{message}\n".encode(), PLAIN_TEXT, (NO_SNIFFING, *headers))
