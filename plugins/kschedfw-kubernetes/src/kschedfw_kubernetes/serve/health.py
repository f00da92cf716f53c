"""Health checks, and their answers over HTTP (Kubernetes `k8s.io/apiserver/pkg/server/healthz`)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

import attrs

from kschedfw.scheduler import Structured
from kschedfw_kubernetes.web.asgi import NO_SNIFFING, PLAIN_TEXT, Response

_log = logging.getLogger(__name__)


Observe: TypeAlias = Callable[[str, str, bool], None]
"""Called with a check's name, the endpoint's name, and whether the check passed."""


def _no_note() -> str | None:
    return None


def _unobserved(_check: str, _endpoint: str, _passed: bool) -> None:
    pass


@attrs.frozen
class Check:
    """A health check. `problem` returns the problem, or None.

    `note` returns further information about a check that passes, for authorised users.
    """

    name: str
    problem: Callable[[], str | None]
    note: Callable[[], str | None] = _no_note


PING: Final = Check("ping", lambda: None)
"""A check that always passes."""


class HealthEndpoint:
    """The checks behind one path, such as `readyz`.

    The answer about all checks needs no permission: it says which failed, but not why. The reason is logged, and
    given by `respond_for_one`, which is for authorised users.
    """

    def __init__(self, name: str, checks: Sequence[Check] = (), observe: Observe = _unobserved) -> None:
        """Make an endpoint. `observe` is called with the outcome of each check."""
        self.name = name
        self._observe = observe
        self.checks: Sequence[Check] = tuple(checks) or (PING,)

    def respond(self, *, verbose: bool = False, excluded: Collection[str] = ()) -> Response:
        """Return 200 and `ok` if all checks pass but the excluded ones, else 500 and the names of the failed ones."""
        lines, reasons = [], {}
        for check in self.checks:
            if check.name in excluded:
                lines.append(f"[+]{check.name} excluded: ok")
                continue
            problem = check.problem()
            self._observe(check.name, self.name, problem is None)
            if problem is None:
                lines.append(f"[+]{check.name} ok")
            else:
                lines.append(f"[-]{check.name} failed: reason withheld")
                reasons[check.name] = problem
        if unknown := sorted(set(excluded) - {check.name for check in self.checks}):
            names = ",".join(map(json.dumps, unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if reasons:
            _log.info(Structured("Health check failed", endpoint=self.name, **reasons))
            return _text(500, "\n".join([*lines, f"{self.name} check failed\n"]))
        return _text(200, "\n".join([*lines, f"{self.name} check passed\n"]) if verbose else "ok")

    def respond_for_one(self, name: str) -> Response | None:
        """Return 200 and `ok` if the check passes, else 500 and the reason; None if there is no such check."""
        check = next((check for check in self.checks if check.name == name), None)
        if check is None:
            return None
        if (problem := check.problem()) is not None:
            return _text(500, f"internal server error: {problem}\n")
        note = check.note()
        return _text(200, "ok" if note is None else f"ok\n{note}\n")


def _text(status: int, text: str) -> Response:
    return Response(status, text.encode(), PLAIN_TEXT, (NO_SNIFFING,))
