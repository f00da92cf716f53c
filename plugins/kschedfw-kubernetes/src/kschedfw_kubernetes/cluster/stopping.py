"""Waits that a stop signal or a deadline ends early."""

from __future__ import annotations

import random
import threading
from typing import Final

from kschedfw import Clock

_JITTER: Final = 1.0


class StopSignal:
    """A signal to threads to stop. It wakes waiting threads. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Not an Event: clocks wait on conditions, so that a virtual clock can end the wait.
        self._condition = threading.Condition()
        self._stopped = False

    @property
    def is_set(self) -> bool:
        return self._stopped

    def set(self) -> None:
        with self._condition:
            self._stopped = True
            self._condition.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until the signal is set or the timeout passes, in seconds. Return whether the signal is set."""
        deadline = self._clock.monotonic() + seconds
        with self._condition:
            while not self._stopped and (left := deadline - self._clock.monotonic()) > 0:
                self._clock.wait_until(self._condition, self._clock.now() + left)
            return self._stopped


class Backoff:
    """Pauses between attempts: each is twice the previous one, times a random factor from 1 to 2 (client-go).

    The factor keeps many clients from retrying at the same time. After `forget_after` seconds of `clock` without a
    call, the pause is `initial` again.
    """

    def __init__(
        self,
        chance: random.Random,
        clock: Clock,
        # The defaults are those of client-go's reflectors.
        initial: float = 0.8,
        longest: float = 30.0,
        forget_after: float = 120.0,
    ) -> None:
        self._chance, self._clock = chance, clock
        self._initial, self._longest, self._forget_after = initial, longest, forget_after
        self._next = initial
        self._called_at = clock.monotonic()

    def next(self) -> float:
        """Return the seconds to wait before the next attempt."""
        now = self._clock.monotonic()
        if now - self._called_at > self._forget_after:
            self._next = self._initial
        self._called_at = now
        seconds = self._next
        self._next = min(2 * seconds, self._longest)
        return seconds * (1 + _JITTER * self._chance.random())
