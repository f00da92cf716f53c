"""The progress of the request that the page's server works on, and its cancellation."""

from __future__ import annotations

import threading

import msgspec

from kschedfw import KschedfwError


class CancelledError(KschedfwError):
    """The user has cancelled the request."""

    def __init__(self) -> None:
        super().__init__("this was cancelled; nothing has changed")


class Job(msgspec.Struct, frozen=True):
    """The work in progress and how much of it is done; a `total` of 0 means that the total is unknown."""

    what: str
    done: int = 0
    total: int = 0


class Work:
    """The request in progress. One thread works on it; others ask for its progress, or cancel it."""

    def __init__(self) -> None:
        # Replaced as a whole, so that other threads need no lock to read it.
        self._now: Job | None = None
        self._cancelled = threading.Event()

    @property
    def now(self) -> Job | None:
        """Return the progress of the request; None if there is no request."""
        return self._now

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def begin(self, what: str) -> None:
        # A cancellation that came after the last request had ended isn't about this one.
        self._cancelled.clear()
        self._now = Job(what)

    def end(self) -> None:
        self._now = None

    def step(self, what: str, done: int, total: int) -> None:
        """Report the progress of the request.

        Raises:
            CancelledError: it isn't wanted any more.
        """
        if self._cancelled.is_set():
            raise CancelledError
        self._now = Job(what, done, total)

    def cancel(self) -> None:
        self._cancelled.set()
