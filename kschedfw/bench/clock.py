"""Time for measurements: real while something is done, and no time while nothing is."""

from __future__ import annotations

import threading
from collections.abc import Callable

Timer = Callable[[], float]
"""Seconds since an unknown moment, never set back, such as `time.perf_counter`."""


class SkippingClock:
    """The timer's time, plus what was skipped: a backoff passes in it without anyone having to wait."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._start = timer()
        self._skipped = 0.0

    def now(self) -> float:
        return self._timer() - self._start + self._skipped

    def monotonic(self) -> float:
        return self._timer()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:  # noqa: ARG002  # see Clock
        # There is one thread, so nobody else could end the wait.
        self.skip_to(deadline)

    def skip_to(self, time: float) -> None:
        """Go on to that time; never back."""
        self._skipped += max(0.0, time - self.now())
