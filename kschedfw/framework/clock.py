"""The scheduler's only source of time."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Time in seconds since the epoch, and waiting that a test can fast-forward."""

    def now(self) -> float: ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment, for durations. Unlike `now`, this is never adjusted."""
        ...

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        """Wait on a held condition until it is notified or this clock reaches the deadline; may return early."""
        ...


class SystemClock:
    """The clock of the machine: real time."""

    # perf_counter is monotonic, too, and finer than time.monotonic where that ticks in milliseconds. The attribute is
    # the function itself, without a method around it, since it is called about ten times for each pod.
    monotonic = staticmethod(time.perf_counter)

    def now(self) -> float:
        return time.time()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        # `Condition.wait` raises OverflowError for longer waits.
        condition.wait(min(max(0.0, deadline - self.now()), threading.TIMEOUT_MAX))


class VirtualClock:
    """A clock that begins at `start`, in seconds since the epoch, and advances only when it is told to or a thread
    waits on it.
    """

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self._now = start

    @property
    def elapsed(self) -> float:
        """Seconds since the start, rounded to microseconds: a float of seconds since the epoch is no more precise."""
        # Seconds since the epoch in a float leave about 0.2 µs: without rounding, sums differ in their last
        # digits.
        return round(self._now - self.start, 6)

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:  # noqa: ARG002  # see Clock
        # No other thread could end the wait, so the time passes at once.
        self.advance_to(deadline)

    def advance_to(self, time: float) -> None:
        """Advance to a time in seconds since the epoch. Do nothing if the clock is past it."""
        self._now = max(self._now, time)


def format_duration(seconds: float) -> str:
    """Return a duration as Go prints it (`1m30s`, `500ms`), since kube-scheduler's messages show it that way."""
    nanoseconds = round(seconds * 1_000_000_000)
    if nanoseconds == 0:
        return "0s"
    sign, nanoseconds = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if nanoseconds < size * 1000:
            return f"{sign}{_decimal(nanoseconds, size)}{unit}"
    minutes, nanoseconds = divmod(nanoseconds, 60 * 1_000_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{text}{_decimal(nanoseconds, 1_000_000_000)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0").rstrip(".") if rest else str(whole)
