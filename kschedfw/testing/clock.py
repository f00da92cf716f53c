"""A clock that a test advances."""

from __future__ import annotations

import threading


class FakeClock:
    """A clock that stands still until `advance` is called, which wakes threads that wait on it. Thread-safe."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._waiting: list[threading.Condition] = []

    def now(self) -> float:
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        return self.now()

    def advance(self, seconds: float) -> None:
        """Advance the time, and wake all waiting threads."""
        with self._lock:
            self._now += seconds
            waiting = tuple(self._waiting)
        # Outside of the lock, which a thread that holds its condition may want. A thread that is about to
        # wait holds the condition, so it can't miss this.
        for condition in waiting:
            with condition:
                condition.notify_all()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        """Wait until the condition is notified or time is advanced; the caller checks whether that was enough."""
        with self._lock:
            if self._now >= deadline:
                return
            self._waiting.append(condition)
        try:
            condition.wait()
        finally:
            with self._lock:
                self._waiting.remove(condition)
