"""Keeps the latest report at hand."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import attrs

from kschedfw_loadaware.report import LoadReport, MetricsError
from kschedfw_loadaware.sources import MetricsSource

UPDATE_INTERVAL = 30.0
"""Seconds after which a source is asked again, as in the original."""

_log = logging.getLogger("kschedfw_loadaware")


@attrs.frozen(eq=False)
class Collected:
    """A report, and its number: answers made from reports of equal numbers are equal."""

    report: LoadReport | None
    number: int


class Collector:
    """Reads a source now and then: when somebody asks, and the last time was at least `UPDATE_INTERVAL` ago.

    There is no thread behind it, so that with a given clock decisions can be repeated; with a source on the network the
    scheduler waits for it. Where a source can't tell, what was read before stays, however old, as in the original; the
    log says so. Thread-safe.
    """

    def __init__(self, source: MetricsSource, now: Callable[[], float]) -> None:
        self._source, self._now = source, now
        self._lock = threading.Lock()
        self._latest = Collected(None, 0)
        self._due = now()
        self.latest()

    def latest(self) -> Collected:
        now = self._now()
        if now >= self._due:
            with self._lock:
                if now >= self._due:
                    self._read(now)
                    self._due = now + UPDATE_INTERVAL
        return self._latest

    def _read(self, now: float) -> None:
        try:
            report = self._source.read(now)
        except MetricsError as error:
            _log.warning("no new metrics: %s", error)
            return
        if report != self._latest.report:
            self._latest = Collected(report, self._latest.number + 1)
