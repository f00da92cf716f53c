"""The signals that stop a command that goes on until it gets one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType

import attrs


@attrs.define
class StopSignal:
    """The first signal that asks a command to stop."""

    has_come: bool = False
    # The one queue whose `put` may interrupt its `get`, as signal handlers do. An event's `set` would wait for the lock
    # of the `wait` that it interrupts.
    _queue: SimpleQueue[None] = attrs.field(factory=SimpleQueue, init=False)

    def come(self) -> None:
        self.has_come = True
        self._queue.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait until the signal comes, or so many seconds have passed. Return whether it has come."""
        if not self.has_come:
            with suppress(Empty):
                self._queue.get(timeout=max(seconds, 0.0))
        return self.has_come


@contextmanager
def stop_signal() -> Iterator[StopSignal]:
    """Catch the first SIGINT or SIGTERM within the block. A second signal, of either kind, has its usual effect."""
    stop = StopSignal()

    def catch(_number: int, _frame: FrameType | None) -> None:
        # Both: otherwise SIGTERM after Ctrl-C would be caught, too.
        restore()
        stop.come()

    before = {number: signal.signal(number, catch) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        yield stop
    finally:
        restore()
