"""A clock for measurements that skips waiting times."""

from __future__ import annotations

import threading
from collections.abc import Callable

Timer = Callable[[], float]
"""Returns seconds since an arbitrary moment. Never goes back; for example `time.perf_counter`."""


class SkippingClock:
    """The timer's time plus all skipped time. Waits, such as backoffs, are skipped."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._start = timer()
        self._skipped = 0.0

    def now(self) -> float:
        return self._timer() - self._start + self._skipped

    def monotonic(self) -> float:
        return self._timer()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:  # noqa: ARG002  # see Clock
        # The benchmark has one thread, so no other thread could end the wait early.
        self.skip_to(deadline)

    def skip_to(self, time: float) -> None:
        """Advance the clock to `time`; do nothing if it is in the past."""
        self._skipped += max(0.0, time - self.now())
