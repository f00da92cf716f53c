"""The clock for measurements, in which waiting takes no time."""

from __future__ import annotations

import threading
from collections.abc import Callable

Timer = Callable[[], float]
"""Seconds since an arbitrary moment, never set back, such as `time.perf_counter`."""


class SkippingClock:
    """The timer's time, plus the time that was skipped instead of waiting, such as backoffs."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._start = timer()
        self._skipped = 0.0

    def now(self) -> float:
        return self._timer() - self._start + self._skipped

    def monotonic(self) -> float:
        return self._timer()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:  # noqa: ARG002  # see Clock
        # There is one thread, so no other could end the wait.
        self.skip_to(deadline)

    def skip_to(self, time: float) -> None:
        """Advance to this time; never goes back."""
        self._skipped += max(0.0, time - self.now())
