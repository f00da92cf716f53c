"""A thread that reads many watches, of which most are quiet."""

from __future__ import annotations

import selectors
import threading
from typing import Final, Protocol

from kschedfw import Clock
from kschedfw_kubernetes.cluster.stopping import StopSignal
from kschedfw_kubernetes.cluster.transport import Stream

_TICK: Final = 1.0
"""Seconds between two looks for streams in which nothing has come for too long."""
_LINGER: Final = 0.03
"""Seconds that pass before the next read after one of a `lingers` watch.

On a busy cluster several changes come in this time, and are read, delivered and scheduled together: waking three
threads for each took longer than all that is done with it. With 0.01 s, the two changes of a pod took 399 µs of
processor time instead of 323. A change that comes after a rest is read at once.
"""


class Watch(Protocol):
    """A stream, and what is done with it.

    Attributes:
        lingers: whether so much comes that it is read at intervals.
    """

    lingers: bool

    @property
    def stream(self) -> Stream: ...

    def read(self) -> bool:
        """Handle what has arrived. Return False at the stream's end. Raise nothing."""
        ...

    def end(self) -> None:
        """Close the stream, which isn't read any more. Return soon."""
        ...


class Watches:
    """Reads watches on a thread, which lives as long as there are any. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        # Streams are added while the thread waits: epoll and kqueue notice that, `select` does after a tick.
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        """Guards the attributes below."""
        self._watches: set[Watch] = set()
        self._thread: threading.Thread | None = None
        self._clock, self._stopping = clock, StopSignal(clock)

    def add(self, watch: Watch) -> None:
        """Read the watch from now on."""
        with self._lock:
            self._watches.add(watch)
            self._selector.register(watch.stream, selectors.EVENT_READ, watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watches", daemon=True)
                self._thread.start()

    @property
    def is_this_thread(self) -> bool:
        """Return whether the caller runs on the thread that reads."""
        return self._thread is threading.current_thread()

    def _run(self) -> None:
        looked = self._clock.monotonic()
        while self._goes_on():
            ready: list[Watch] = [key.data for key, _ in self._selector.select(_TICK)]
            for watch in ready:
                self._read(watch)
            if not ready or self._clock.monotonic() - looked > _TICK:
                looked = self._clock.monotonic()
                for watch in tuple(self._watches):
                    if watch.stream.is_overdue:
                        self._read(watch)
            if any(watch.lingers for watch in ready):
                self._stopping.wait(_LINGER)

    def _goes_on(self) -> bool:
        with self._lock:
            if not self._watches:
                self._thread = None
            return bool(self._watches)

    def _read(self, watch: Watch) -> None:
        if not watch.read():
            with self._lock:
                self._watches.discard(watch)
                # Before it is closed: another connection may get its number then.
                self._selector.unregister(watch.stream)
            watch.end()
