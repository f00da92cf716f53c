"""Limits requests per second (client-go `flowcontrol`, a token bucket)."""

from __future__ import annotations

import math
import threading

from kschedfw import Clock


class TokenBucket:
    """A limit of `burst` requests at once and `qps` in a second; no limit if `qps` isn't positive. Thread-safe."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._qps, self._burst, self._clock = qps, max(1, burst), clock
        self._lock = threading.Lock()
        self._last_turn = -math.inf

    def reserve(self) -> float:
        """Reserve a token. Return the seconds to wait until it is available."""
        if self._qps <= 0:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            # The time of the last reserved token, which may be in the future: then each further caller waits longer.
            self._last_turn = self._next_turn(now)
            return max(0.0, self._last_turn - now)

    def take(self) -> bool:
        """Reserve a token if one is available now. Return whether it was."""
        if self._qps <= 0:
            return True
        with self._lock:
            now = self._clock.monotonic()
            turn = self._next_turn(now)
            if turn > now:
                return False
            self._last_turn = turn
            return True

    def _next_turn(self, now: float) -> float:
        # Unused tokens pile up to `burst`.
        return max(self._last_turn, now - self._burst / self._qps) + 1 / self._qps
