"""Requests to the API server for Prometheus: `rest_client_*` with client-go v1.36's names, labels and buckets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from prometheus_client import Counter, Gauge, Histogram, Metric
from prometheus_client.registry import Collector

from kschedfw.framework.clock import Clock
from kschedfw.kubernetes.request_metrics import PluginCall, RequestMetrics

SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
BYTES: Final = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
ROTATION_SECONDS: Final = (
    *(600, 1800),  # certificates that are replaced too often
    *(3600, 14400, 86400, 604800, 2592000),  # as they should be: hours to a month
    *(7776000, 15552000, 31104000, 124416000),  # months to four years
)


class RestClientMetrics(RequestMetrics, Collector):
    """Records the requests of all clients that it is given to; register it where it is to be exposed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._request_seconds = _histogram(
            "request_duration_seconds", "How long requests take, retries included.", SECONDS
        )
        self._request_bytes = _histogram("request_size_bytes", "Bytes of requests' bodies.", BYTES)
        self._response_bytes = _histogram("response_size_bytes", "Bytes of answers' bodies.", BYTES)
        self._rate_seconds = _histogram(
            "rate_limiter_duration_seconds", "How long requests wait for their turn under the rate.", SECONDS
        )
        self._attempts = _counter(
            "requests_total", "Attempts, by the answer's status.", "code", "method", "host"
        )
        self._retries = _counter(
            "request_retries_total",
            "Attempts after the first, by the answer's status.",
            "code",
            "verb",
            "host",
        )
        self._plugin_calls = _counter(
            "exec_plugin_call_total", "Calls of exec plugins, by how they ended.", "code", "call_status"
        )
        self._plugin_ttl = Gauge(
            "rest_client_exec_plugin_ttl_seconds",
            "Seconds until the client certificate of an exec plugin expires; +Inf without one.",
            registry=None,
        )
        self._plugin_ttl.set_function(self._seconds_left)
        self._rotation_seconds = Histogram(
            "rest_client_exec_plugin_certificate_rotation_age",
            "Seconds that an exec plugin's client certificate was used before it was replaced.",
            buckets=ROTATION_SECONDS,
            registry=None,
        )
        self._certificate: x509.Certificate | None = None

    def collect(self) -> Iterable[Metric]:
        for metric in (
            self._request_seconds,
            self._request_bytes,
            self._response_bytes,
            self._rate_seconds,
            self._attempts,
            self._retries,
            self._plugin_calls,
            self._plugin_ttl,
            self._rotation_seconds,
        ):
            yield from metric.collect()

    def attempted(self, method: str, host: str, code: str, *, is_retry: bool) -> None:
        self._attempts.labels(code, method, host).inc()
        if is_retry:
            self._retries.labels(code, method, host).inc()

    def sent(self, method: str, host: str, size: int) -> None:
        self._request_bytes.labels(method, host).observe(size)

    def received(self, method: str, host: str, size: int) -> None:
        self._response_bytes.labels(method, host).observe(size)

    def finished(self, method: str, host: str, seconds: float) -> None:
        self._request_seconds.labels(method, host).observe(seconds)

    def waited(self, method: str, host: str, seconds: float) -> None:
        self._rate_seconds.labels(method, host).observe(seconds)

    def plugin_called(self, result: PluginCall, code: int) -> None:
        self._plugin_calls.labels(str(code), result).inc()

    def plugin_certificate(self, certificate: bytes) -> None:
        former, self._certificate = self._certificate, x509.load_pem_x509_certificate(certificate)
        if former is not None and former != self._certificate:
            self._rotation_seconds.observe(self._clock.now() - _seconds(former.not_valid_before_utc))

    def _seconds_left(self) -> float:
        if self._certificate is None:
            return math.inf
        return _seconds(self._certificate.not_valid_after_utc) - self._clock.now()


def _histogram(name: str, text: str, buckets: Sequence[float]) -> Histogram:
    return Histogram(f"rest_client_{name}", text, ("verb", "host"), buckets=buckets, registry=None)


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(f"rest_client_{name}", text, labels, registry=None)


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
