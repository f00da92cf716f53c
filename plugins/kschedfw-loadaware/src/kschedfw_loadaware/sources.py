"""The protocol of metrics sources, and the sources that need no network."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from kschedfw.api.reading import UnreadableError, content_of
from kschedfw_loadaware.report import LoadReport, MetricsError, NodeLoad, json_of, report_from_json

_LARGEST_FILE: Final = 256 << 20


@runtime_checkable
class MetricsSource(Protocol):
    """A source of measured load."""

    def read(self, now: float) -> LoadReport:
        """Return the latest report. `now` is the scheduler's time in seconds.

        Raises:
            MetricsError: there is no new report. The collector then keeps the previous one.
        """
        ...


class StaticSource:
    """A source with a given load, measured up to the time `end`. It stays the same until `report` is replaced."""

    def __init__(self, nodes: Mapping[str, NodeLoad], *, start: float = 0.0, end: float = 0.0) -> None:
        self.report = LoadReport(start, end, dict(nodes))

    def read(self, now: float) -> LoadReport:  # noqa: ARG002  # of the protocol
        return self.report


class FileSource:
    """Replays reports from a JSON file in load-watcher's format: one report, or a list in the order of their windows.

    The first report is available from the start. Each further one becomes available after the same interval as in the
    recording. So a recording can be replayed at any time, also in a simulation, where time begins at 0.
    """

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises MetricsError: it can't be read or has another format. The message names the file and the field.
        """
        try:
            content = json_of(content_of(path, _LARGEST_FILE))
            entries = enumerate(content) if isinstance(content, list) else [(None, content)]
            self._reports = [
                report_from_json(entry, "" if index is None else f"[{index}]") for index, entry in entries
            ]
        except (OSError, UnreadableError, MetricsError) as error:
            raise MetricsError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        if not self._reports:
            raise MetricsError(f"{path}: must have at least one report")
        self._ends = [report.end for report in self._reports]
        if self._ends != sorted(self._ends):
            raise MetricsError(f"{path}: the reports must be in the order of window.end")
        self._shift: float | None = None

    def read(self, now: float) -> LoadReport:
        if self._shift is None:
            self._shift = now - self._ends[0]
        latest = max(bisect.bisect_right(self._ends, now - self._shift) - 1, 0)
        return self._reports[latest].later(self._shift)
