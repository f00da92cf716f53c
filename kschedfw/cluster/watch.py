"""Delivery of watch events: in order, to one handler at a time, and with no lock held."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable

from kschedfw.cluster.protocol import Handler, WatchEvent

logger = logging.getLogger(__name__)


class Subscription:
    """One handler, and what it hasn't seen yet.

    Whoever writes puts the event into the queue while holding the cluster's lock, which fixes the order, and
    delivers after releasing it. A handler may therefore read, write and unsubscribe; what it causes is delivered
    to it after it has returned. If another thread is delivering, the event is left to that thread.
    """

    def __init__(self, handler: Handler, backlog: Iterable[WatchEvent]) -> None:
        self._handler = handler
        self._lock = threading.Lock()
        self._queue: deque[WatchEvent] = deque(backlog)
        self._delivering = False
        self._closed = False
        self.received = len(self._queue)
        """How many events there were so far; `handled` is how many of them the handler has returned from."""
        self.handled = 0

    def put(self, event: WatchEvent) -> None:
        """Queue the event. The caller sees to the order and calls `deliver` later."""
        self.received += 1
        self._queue.append(event)

    def deliver(self) -> None:
        """Hand over what is queued, unless that is going on already.

        A handler's exception is logged and counts as handled: it is no reason to fail the write that caused the
        event, or to withhold the next event.
        """
        with self._lock:
            if self._delivering:
                return
            self._delivering = True
        try:
            while (event := self._next()) is not None:
                try:
                    self._handler(event)
                except Exception:
                    logger.exception(
                        "watch handler %r failed on %s %s", self._handler, event.type, event.object.key
                    )
                self.handled += 1
        except BaseException:
            # Ctrl-C inside a handler: without this nobody would ever deliver again.
            with self._lock:
                self._delivering = False
            raise

    def _next(self) -> WatchEvent | None:
        # "Nothing left" and "nobody delivers" have to become true together, or an event that is put in between
        # would stay until the next write.
        with self._lock:
            if self._queue and not self._closed:
                return self._queue.popleft()
            self._delivering = False
            return None

    def close(self) -> None:
        """No further call begins; one that is running in another thread may still end."""
        with self._lock:
            self._closed = True
            self._queue.clear()

    @property
    def is_closed(self) -> bool:
        return self._closed


class Journal:
    """What writes every change down at once, in the thread that makes it and with the cluster's lock held."""

    def __init__(self, write: Handler) -> None:
        self._write = write

    def put(self, event: WatchEvent) -> None:
        self._write(event)

    def deliver(self) -> None:
        """It has happened."""

    def close(self) -> None:
        """The cluster forgets it."""
