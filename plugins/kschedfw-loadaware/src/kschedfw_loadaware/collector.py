"""A collector that keeps the latest report of a source."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import attrs

from kschedfw_loadaware.report import LoadReport, MetricsError
from kschedfw_loadaware.sources import MetricsSource

UPDATE_INTERVAL = 30.0
"""The least number of seconds between two reads of a source, as in scheduler-plugins."""

_log = logging.getLogger("kschedfw_loadaware")


@attrs.frozen(eq=False)
class Collected:
    """A report with its number. Equal numbers mean the same report; `report` is None before the first one."""

    report: LoadReport | None
    number: int


class Collector:
    """Reads a source when a caller asks and the last read is at least `UPDATE_INTERVAL` seconds old.

    The source is read in the caller's thread. So decisions can be repeated with a given clock, but the scheduler waits
    for a source on the network. If a read fails, the last report stays in use regardless of its age, as in the
    original, and the failure is logged. Thread-safe.
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
                # Check again: another thread may have read the source while this one waited for the lock.
                if now >= self._due:
                    self._read(now)
                    # After a failure, too: a broken source must not delay every pod.
                    self._due = now + UPDATE_INTERVAL
        # Without the lock: `_read` replaces report and number together, as one object.
        return self._latest

    def _read(self, now: float) -> None:
        try:
            report = self._source.read(now)
        except MetricsError as error:
            _log.warning("no new metrics: %s", error)
            return
        if report != self._latest.report:
            self._latest = Collected(report, self._latest.number + 1)
