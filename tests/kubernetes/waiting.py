"""Waiting for what happens on other threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kschedfw.framework.clock import SystemClock


def eventually(is_so: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until it is so; fails where that takes too long."""
    end = time.perf_counter() + seconds
    while not is_so():
        assert time.perf_counter() < end, "it never came about"
        time.sleep(0.005)


class HastyClock(SystemClock):
    """Time that passes fifty times as fast, for waits between attempts."""

    def now(self) -> float:
        return 50 * super().now()

    def monotonic(self) -> float:
        return 50 * super().monotonic()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        condition.wait(max(0.0, (deadline - self.now()) / 50))
