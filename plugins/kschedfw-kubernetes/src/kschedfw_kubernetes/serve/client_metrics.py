"""Requests to the API server for Prometheus: `rest_client_*` with client-go v1.36's names, labels and buckets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client import Gauge, Metric
from prometheus_client.registry import Collector

from kschedfw import Clock
from kschedfw_kubernetes.cluster.request_metrics import PluginCall, RequestMetrics
from kschedfw_kubernetes.series import Counter, Histogram

if TYPE_CHECKING:
    from cryptography import x509

SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
BYTES: Final = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
ROTATION_SECONDS: Final = (
    *(600, 1800),  # Certificates that are replaced too often.
    *(3600, 14400, 86400, 604800, 2592000),  # The usual lifetimes: hours to a month.
    *(7776000, 15552000, 31104000, 124416000),  # Months to four years.
)


class RestClientMetrics(RequestMetrics, Collector):
    """Records the requests of all clients that it is passed to. Register it with the registry that exposes it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._metrics: list[Collector] = []
        self._request_seconds = self._histogram(
            "request_duration_seconds", "How long requests take, retries included.", SECONDS
        )
        self._request_bytes = self._histogram("request_size_bytes", "Bytes of requests' bodies.", BYTES)
        self._response_bytes = self._histogram("response_size_bytes", "Bytes of answers' bodies.", BYTES)
        self._rate_seconds = self._histogram(
            "rate_limiter_duration_seconds", "How long requests wait for their turn under the rate.", SECONDS
        )
        self._attempts = self._counter(
            "requests_total", "Attempts, by the answer's status.", "code", "method", "host"
        )
        self._retries = self._counter(
            "request_retries_total",
            "Attempts after the first, by the answer's status.",
            "code",
            "verb",
            "host",
        )
        self._plugin_calls = self._counter(
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
        self._metrics += (self._plugin_ttl, self._rotation_seconds)
        self._certificates: dict[bytes, x509.Certificate] = {}
        """The exec plugins' certificates in use, by their PEM. Each client has its own."""

    def collect(self) -> Iterable[Metric]:
        for metric in self._metrics:
            yield from metric.collect()

    def attempted(self, method: str, host: str, code: str, *, is_retry: bool) -> None:
        self._attempts(code, method, host).inc()
        if is_retry:
            self._retries(code, method, host).inc()

    def sent(self, method: str, host: str, size: int) -> None:
        self._request_bytes(method, host).observe(size)

    def received(self, method: str, host: str, size: int) -> None:
        self._response_bytes(method, host).observe(size)

    def finished(self, method: str, host: str, seconds: float) -> None:
        self._request_seconds(method, host).observe(seconds)

    def waited(self, method: str, host: str, seconds: float) -> None:
        self._rate_seconds(method, host).observe(seconds)

    def plugin_called(self, result: PluginCall, code: int) -> None:
        self._plugin_calls(str(code), result).inc()

    def plugin_certificate(self, certificate: bytes, former: bytes) -> None:
        from cryptography import x509  # few clients have an exec plugin

        self._certificates[certificate] = x509.load_pem_x509_certificate(certificate)
        if former != certificate and (replaced := self._certificates.pop(former, None)) is not None:
            age = self._clock.now() - replaced.not_valid_before_utc.timestamp()
            self._rotation_seconds().observe(age)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        metric = Histogram(f"rest_client_{name}", text, ("verb", "host"), buckets=buckets, registry=None)
        self._metrics.append(metric)
        return metric

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        metric = Counter(f"rest_client_{name}", text, labels, registry=None)
        self._metrics.append(metric)
        return metric

    def _seconds_left(self) -> float:
        """Return the seconds until the first of the certificates expires."""
        # A copy, since a thread may replace a certificate during a scrape.
        ends = [each.not_valid_after_utc.timestamp() for each in list(self._certificates.values())]
        return min(ends, default=math.inf) - self._clock.now()
