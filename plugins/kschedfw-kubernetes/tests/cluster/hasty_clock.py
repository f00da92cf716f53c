"""A clock for waits between attempts."""

from __future__ import annotations

import threading

from kschedfw.framework.clock import SystemClock


class HastyClock(SystemClock):
    """Time that passes fifty times as fast, for waits between attempts."""

    def now(self) -> float:
        return 50 * super().now()

    def monotonic(self) -> float:
        return 50 * super().monotonic()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        condition.wait(max(0.0, (deadline - self.now()) / 50))
