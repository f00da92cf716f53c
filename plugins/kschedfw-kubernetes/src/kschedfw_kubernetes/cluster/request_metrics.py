"""The interface for metrics of an API client (client-go `tools/metrics`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

NO_ANSWER: Final = "<error>"
"""The code of a request without an answer, as in client-go."""


class PluginCall(StrEnum):
    """The result of a call of an exec plugin (client-go `rest_client_exec_plugin_call_total`)."""

    NO_ERROR = "no_error"
    EXECUTION_ERROR = "plugin_execution_error"
    NOT_FOUND = "plugin_not_found_error"
    INTERNAL_ERROR = "client_internal_error"


class RequestMetrics:
    """A recorder that ignores all calls. Derive from it to record some of them.

    Its methods are called from any thread, once per request or attempt. They must be fast, and must neither block nor
    raise. `host` includes the port if the server's address has one. Durations are in seconds.
    """

    def attempted(self, method: str, host: str, code: str, *, is_retry: bool) -> None:
        """Record that an attempt was answered with the status `code`, or not at all (`NO_ANSWER`).

        Watches count when they begin.
        """

    def sent(self, method: str, host: str, size: int) -> None:
        """Record an attempt with a body of `size` bytes. Watches don't count."""

    def received(self, method: str, host: str, size: int) -> None:
        """Record an answer with a body of `size` bytes. Watches don't count."""

    def finished(self, method: str, host: str, seconds: float) -> None:
        """Record the final answer to a request. `seconds` include retries and waiting for the rate limit."""

    def waited(self, method: str, host: str, seconds: float) -> None:
        """Record how long a request has waited for the client's rate limit.

        Called for each request, also if `seconds` is 0.
        """

    def plugin_called(self, result: PluginCall, code: int) -> None:
        """Record that an exec plugin ended with the exit code; 1 if it couldn't be started."""

    def plugin_certificate(self, certificate: bytes, former: bytes) -> None:
        """Record that an exec plugin replaced the `former` certificate (PEM) by a new one.

        `former` is empty the first time.
        """


NO_REQUEST_METRICS: Final = RequestMetrics()
