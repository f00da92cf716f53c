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
        self.rejected: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def pending_pods(self, queue: str, count: int) -> None:
        self.pending[str(queue)] = count

    def cache_size(self, kind: CachedObject, count: int) -> None:
        self.cached[kind] = count

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self.rejected[plugin] += change

    def in_flight_events(self, event: str, change: int) -> None:
        self.kept[event] += change

    def workers(self, operation: Operation, change: int) -> None:
        self.working[operation] += change
