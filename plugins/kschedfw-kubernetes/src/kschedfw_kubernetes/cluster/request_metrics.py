"""Interface for metrics of an API client (client-go `tools/metrics`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

NO_ANSWER: Final = "<error>"
"""The code of a request that nobody answered, as in client-go."""


class PluginCall(StrEnum):
    """The ways in which a call of an exec plugin ends (client-go `rest_client_exec_plugin_call_total`)."""

    NO_ERROR = "no_error"
    EXECUTION_ERROR = "plugin_execution_error"
    NOT_FOUND = "plugin_not_found_error"
    INTERNAL_ERROR = "client_internal_error"


class RequestMetrics:
    """A recorder that ignores its calls. Derive from it to record some.

    Called from any thread, once per request or attempt: must be fast, and must neither block nor raise. `host` has the
    port, if the server's address has one; durations are in seconds.
    """

    def attempted(self, method: str, host: str, code: str, *, is_retry: bool) -> None:
        """An attempt was answered with the status `code`, or got `NO_ANSWER`; watches count when they begin."""

    def sent(self, method: str, host: str, size: int) -> None:
        """An attempt was made with a body of `size` bytes; watches don't count."""

    def received(self, method: str, host: str, size: int) -> None:
        """An answer had a body of `size` bytes; watches don't count."""

    def finished(self, method: str, host: str, seconds: float) -> None:
        """A request has its final answer. `seconds` include its retries and its wait for the rate limit."""

    def waited(self, method: str, host: str, seconds: float) -> None:
        """A request has waited for the client's rate limit. Called for each request, also if `seconds` is 0."""

    def plugin_called(self, result: PluginCall, code: int) -> None:
        """An exec plugin was called and ended with the exit code; 1 if it couldn't be started."""

    def plugin_certificate(self, certificate: bytes, former: bytes) -> None:
        """An exec plugin gave this certificate (PEM) in place of the former one, which is empty the first time."""


NO_REQUEST_METRICS: Final = RequestMetrics()
