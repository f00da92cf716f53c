"""Blocks writes while this process may not be the leader."""

from __future__ import annotations

import math

from kschedfw import Clock
from kschedfw_kubernetes.cluster.errors import FencedError


class Fence:
    """The deadline for sending writes, on the monotonic clock; infinite without leader election. Thread-safe.

    It also stops a process that was suspended and continues after the deadline.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # A single float, which is replaced at once: readers need no lock.
        self._until = math.inf

    def open_until(self, monotonic: float) -> None:
        """Allow writes until this time on the monotonic clock, in seconds."""
        self._until = monotonic

    def close(self) -> None:
        """Block all writes."""
        self._until = -math.inf

    def check(self) -> None:
        """Raise a FencedError if writes are blocked."""
        if self._clock.monotonic() >= self._until:
            raise FencedError(
                "nothing is written: this process isn't the leader, or couldn't renew its lease"
            )
