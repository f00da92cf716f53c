"""Remembers what a metrics system would show."""

from __future__ import annotations

from collections import Counter

from kschedfw.framework.metrics import CachedObject, NoMetrics, Operation


class Gauges(NoMetrics):
    """The last value of every gauge that the scheduler tells."""

    def __init__(self) -> None:
        self.pending: dict[str, int] = {}
        self.cached: dict[CachedObject, int] = {}
        self.working: Counter[Operation] = Counter()

    def pending_pods(self, queue: str, count: int) -> None:
        self.pending[str(queue)] = count

    def cache_size(self, kind: CachedObject, count: int) -> None:
        self.cached[kind] = count

    def workers(self, operation: Operation, change: int) -> None:
        self.working[operation] += change
