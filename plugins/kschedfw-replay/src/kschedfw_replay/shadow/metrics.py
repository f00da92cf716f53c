"""A shadow's metrics for Prometheus, served over HTTP. Needs the extra `metrics`; nothing else imports this module."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kschedfw_kubernetes import CONTENT_TYPE
from kschedfw_kubernetes.web import PLAIN_TEXT, Receive, Response, Scope, Send, Server, configured, listen
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kschedfw_replay.shadow.decision import Agreement, Comparison

_SECONDS: Final = tuple(0.001 * 2**step for step in range(14))
"""The upper bounds of the latencies' buckets, from 1 ms to 8 s."""


class ShadowMetrics:
    """Counts comparisons in a registry of its own. `add` and `tell_backlog` are for one thread, reading is for any."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._decisions = Counter(
            "kschedfw_shadow_decisions",
            "Decisions of the cluster's scheduler, by how the shadow's decision compares, and why it differs.",
            ("agreement", "cause"),
            registry=self._registry,
        )
        self._failures = Counter(
            "kschedfw_shadow_plugin_failures",
            "Decisions of the shadow in which a plugin failed.",
            ("plugin",),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "kschedfw_shadow_decision_duration_seconds",
            "How long the shadow takes to decide, with the explanation.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._backlog = Gauge(
            "kschedfw_shadow_backlog_seconds",
            "For how long the oldest decision waits that the shadow hasn't made; NaN until it follows the cluster.",
            registry=self._registry,
        )
        self._backlog.set(math.nan)
        for agreement in Agreement:
            # Each series exists from the start, with 0: Prometheus computes increases from a first value.
            self._decisions.labels(str(agreement), "")

    def add(self, comparison: Comparison) -> None:
        self._decisions.labels(str(comparison.agreement), str(comparison.cause or "")).inc()
        self._seconds.observe(comparison.seconds)
        if comparison.agreement is Agreement.FAILED:
            self._failures.labels(comparison.plugin).inc()

    def tell_backlog(self, seconds: float) -> None:
        self._backlog.set(seconds)

    def exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self._registry)


@contextmanager
def serving(metrics: ShadowMetrics, address: str, port: int) -> Iterator[int]:
    """Serve `/metrics` and `/healthz` over HTTP for the time of the block, from a thread; the value is the port.

    Raises:
        ListenError: the address is taken, or isn't one of this machine's.
    """
    listening = listen(address, port)
    ready = threading.Event()
    server = Server(configured(_App(metrics)), ready.set)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listening]}, name="shadow-metrics", daemon=True
    )
    with listening:
        thread.start()
        ready.wait()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


class _App:
    """The application, on ASGI 3."""

    def __init__(self, metrics: ShadowMetrics) -> None:
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        await self._response(str(scope["method"]), str(scope["path"])).send(send)

    def _response(self, method: str, path: str) -> Response:
        if path not in ("/metrics", "/healthz"):
            return Response(404, b"not found; there are /metrics and /healthz\n", PLAIN_TEXT)
        if method not in ("GET", "HEAD"):
            return Response(405, b"only GET\n", PLAIN_TEXT, ((b"allow", b"GET, HEAD"),))
        if path == "/healthz":
            return Response(200, b"ok", PLAIN_TEXT)
        return Response(200, self._metrics.exposition(), CONTENT_TYPE)
