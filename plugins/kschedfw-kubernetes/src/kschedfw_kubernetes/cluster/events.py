"""A recorder of events.k8s.io/v1 events, which are sent in the background (client-go `tools/events`).

Repeated events become a series. The second occurrence is written at once; later ones as a count when the series has
ended, or every half hour. As in client-go, events are equal if they are about the same state of an object, even if
their notes differ; the series keeps the first note.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import socket
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import attrs

from kschedfw import Clock
from kschedfw.api import Named
from kschedfw.api.reading import printable
from kschedfw.cluster import AlreadyExistsError, ClusterError, NotFoundError
from kschedfw_kubernetes.cluster.client import MERGE_PATCH, Client, micro_time, pause_after
from kschedfw_kubernetes.cluster.decoding import Content
from kschedfw_kubernetes.cluster.errors import ApiError, FencedError, UnavailableError
from kschedfw_kubernetes.cluster.event_content import Happening, Key, collection_of, path_of
from kschedfw_kubernetes.cluster.stopping import Backoff

_LOG = logging.getLogger(__name__)

_QUEUED: Final = 10_000
_REMEMBERED: Final = 4096
_SENDERS: Final = 4
"""The most concurrent senders, each with a connection and a batch whose answers it awaits."""
_SPARE: Final = 2
"""The idle senders that are kept. One must be there for what is recorded while others wait for a slow answer."""
_REST: Final = 10.0
"""Seconds after which other idle senders end. When they ended at once, 2,000 pods took 117 of them."""
_BATCH: Final = 64
"""The most events that a sender takes at once. It sends them over one connection, without waiting in between."""
_LINGER: Final = 0.1
"""Seconds that a new event waits for others.

With 0.02 s, and answers read one at a time, an event took 148 µs of processor time, against 108. Of these, 36 µs are
what is done for it; the rest goes into waking its sender.
"""
_GATHERING: Final = 0.05
"""Seconds between two reads of the answers to a batch."""
_TRIES: Final = 12
"""The most attempts to send an event while the server can't accept it, as in client-go."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 10.0
"""The longest pause between attempts in seconds, unless the server requests another one.

The last attempt is a minute after the first.
"""
# client-go's `finishTime` and `refreshTime`.
_SERIES_ENDS: Final = 360.0
"""Seconds without the event after which its series has ended."""
_SERIES_TOLD: Final = 1800.0
"""Seconds after which the count of a running series is written again."""
_SWEEP_SECONDS: Final = 30.0


@attrs.define(eq=False)
class _Told:
    """An event and its number of occurrences. Guarded by the recorder's lock."""

    happening: Happening
    last: float
    content: Content | None = None
    """Made when it is first sent, and the same in each attempt: its name tells the server that it has it already."""
    count: int = 1
    told_count: int = 0
    told_at: float = 0.0
    tries: int = 0
    """The number of failed attempts since the last successful one."""
    is_queued: bool = False
    """True if it is in the backlog, or is being sent."""
    is_over: bool = False
    """True if its series has ended: the whole count is told, also of occurrences while it was being sent."""


class EventRecorder:
    """A recorder of events, from `start` to `close`. It never blocks and never raises. Thread-safe.

    An event is dropped if the server can't keep up or refuses it. The number of dropped events is logged.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._changed = threading.Condition()
        """Guards all attributes below. Notified when there is something to send."""
        self._told: OrderedDict[Key, _Told] = OrderedDict()
        self._backlog: list[tuple[float, int, _Told]] = []
        """A heap of events by the time from which on they may be sent.

        An event that the server asks to send later waits here, not in a sender. When senders waited, two thirds of the
        events were unsent with 5 % of writes throttled for a second.
        """
        self._numbers = itertools.count()
        self._sending = 0
        self._lost = 0
        self._deadline = math.inf
        """The time at which senders must end, set by `close`. They end earlier if nothing is left to send."""
        self._swept = clock.monotonic()
        self._host = printable(socket.gethostname(), 60)
        self._started = False
        self._threads: list[threading.Thread] = []
        """The senders, which are started as needed."""
        self._idle = 0

    def start(self) -> None:
        with self._changed:
            self._started = True
            self._make_sender()

    def record(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Queue an event for sending."""
        try:
            self._record(regarding, type, reason, message, related)
        except Exception:  # No error in recording an event may fail a scheduling decision.
            _LOG.exception("can't record the event %s of %s", reason, regarding.key)

    def close(self, timeout: float) -> None:
        """Send the remaining events for at most `timeout` seconds, then close the client."""
        with self._changed:
            self._deadline = self._clock.monotonic() + timeout
            for told in self._told.values():
                if self._is_due(told):
                    self._send_later(told)
            self._changed.notify_all()
        # Senders start others, and a sender that fails goes on with what it puts back, so there may be new ones.
        left = timeout
        while left > 0 and (threads := tuple(self._threads)):
            for thread in threads:
                thread.join(max(0.0, left))
                left = self._deadline - self._clock.monotonic() if not thread.is_alive() else 0.0
        with self._changed:
            unsent = len(self._backlog) + self._sending + self._lost
        self._client.close()
        if unsent:
            _LOG.warning("%d events were not sent", unsent)

    # --- recording ---

    def _record(self, regarding: Named, type: str, reason: str, message: str, related: Named | None) -> None:
        now = self._clock.monotonic()
        happening = Happening(regarding, related, type, reason, message, self._clock.now())
        key = happening.key
        with self._changed:
            told = self._told.get(key)
            if told is None or now - told.last > _SERIES_ENDS:
                told = self._told[key] = _Told(happening, now)
            else:
                told.count += 1
                told.last = now
            # The sweep drops from the front, so the events that are silent for longest go first.
            self._told.move_to_end(key)
            if self._is_due(told):
                self._send_later(told)
            if len(self._told) > _REMEMBERED:
                self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Queue the counts of series that have ended, or whose count is half an hour old. Forget the ended series."""
        self._swept = now
        # Drop a quarter at once. Otherwise each further event would cause a sweep.
        surplus = len(self._told) - _REMEMBERED * 3 // 4 if len(self._told) > _REMEMBERED else 0
        ended = []
        for position, (key, told) in enumerate(self._told.items()):
            is_over = position < surplus or now - told.last > _SERIES_ENDS
            if is_over:
                told.is_over = True
                ended.append(key)
            is_due = is_over or now - told.told_at > _SERIES_TOLD
            if is_due and told.told_count < told.count:
                self._send_later(told)
        for key in ended:
            del self._told[key]

    def _is_due(self, told: _Told) -> bool:
        """Return whether the event must be sent now: its first two occurrences, or any when series or recorder end."""
        is_ending = told.is_over or self._deadline < math.inf
        return told.told_count < (told.count if is_ending else min(told.count, 2))

    def _send_later(self, told: _Told) -> None:
        """Put an event into the backlog, unless it is queued. The lock must be held."""
        if told.is_queued:
            return
        if len(self._backlog) >= _QUEUED:
            if not self._lost:
                _LOG.warning("events come faster than the API server takes them; some are dropped")
            self._lost += 1
        else:
            # Counts are sent one by one, so they don't wait for others.
            self._put(told, self._clock.monotonic() + (0.0 if told.told_count else _LINGER))

    def _put(self, told: _Told, time: float) -> None:
        told.is_queued = True
        # The number keeps the order of events with the same time, and keeps the heap from comparing events.
        entry = (time, next(self._numbers), told)
        heapq.heappush(self._backlog, entry)
        # A sender wakes by itself when the first one is due, and takes the others along.
        if self._backlog[0] is entry:
            self._changed.notify()

    def _make_sender(self) -> None:
        thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._threads.append(thread)
        thread.start()

    # --- sending ---

    def _run(self) -> None:
        while batch := self._next():
            self._deliver(batch)
        with self._changed:
            self._threads.remove(threading.current_thread())

    def _next(self) -> Sequence[_Told]:
        """Wait for events that may be sent, and take them.

        Return none if there will be none before the deadline, or enough other senders wait for them.
        """
        with self._changed:
            rested = self._clock.monotonic() + _REST
            while True:
                now = self._clock.monotonic()
                if now >= self._swept + _SWEEP_SECONDS:
                    self._sweep(now)
                due = self._backlog[0][0] if self._backlog else math.inf
                if now >= self._deadline or due > self._deadline:
                    return ()
                if due <= now:
                    return self._take()
                is_spare = self._idle >= _SPARE
                if is_spare and now >= rested:
                    return ()
                wake = min(due, self._swept + _SWEEP_SECONDS, self._deadline)
                if is_spare:
                    wake = min(wake, rested)
                self._idle += 1
                self._clock.wait_until(self._changed, self._clock.now() + wake - now)
                self._idle -= 1

    def _take(self) -> Sequence[_Told]:
        """Take the first event and as many new ones as are sent together, and have others wait for the rest."""
        backlog = self._backlog
        batch = [heapq.heappop(backlog)[2]]
        # An event that failed before is sent alone: perhaps it failed as the peer doesn't know of pipelining. New ones
        # needn't wait any longer for others.
        if not batch[0].tries:
            while len(batch) < _BATCH and backlog and not backlog[0][2].tries:
                batch.append(heapq.heappop(backlog)[2])
        self._sending += len(batch)
        if not self._idle and len(self._threads) < _SENDERS:
            self._make_sender()
        elif backlog:
            # An idle sender waits for the first event that it knows of, which may be in the batch.
            self._changed.notify()
        return batch

    def _deliver(self, batch: Sequence[_Told]) -> None:
        """Send events once. Put those back into the backlog that failed or whose count has to be sent again."""
        with self._changed:
            counts = [told.count for told in batch]
            contents = [self._with_series(told, told.count) for told in batch]
        # Without the lock. Occurrences that are recorded meanwhile only raise the count: `is_queued` is still true.
        pauses = self._send(batch, contents)
        with self._changed:
            now = self._clock.monotonic()
            self._sending -= len(batch)
            for told, count, pause in zip(batch, counts, pauses, strict=True):
                told.is_queued = False
                if pause is not None:
                    told.tries += bool(pause)
                    self._put(told, now + pause)
                    continue
                told.tries, told.told_count, told.told_at = 0, count, now
                if self._is_due(told):
                    self._send_later(told)

    def _send(self, batch: Sequence[_Told], contents: Sequence[Content]) -> Sequence[float | None]:
        """Send events once.

        Return for each the seconds until the next attempt; None if another one isn't needed or can't help.
        """
        new = [number for number, told in enumerate(batch) if not told.told_count]
        errors: dict[int, Exception | None] = {}
        try:
            for number, told in enumerate(batch):
                if told.told_count:
                    errors[number] = self._count_again(contents[number])
            if new:
                posts = [(collection_of(contents[number]), contents[number]) for number in new]
                errors.update(zip(new, self._client.post_all(posts, gathering=_GATHERING), strict=False))
        except Exception as error:
            errors = {**dict.fromkeys(range(len(batch)), error), **errors}
        # Those that the rate doesn't allow now haven't been tried: they are due at once.
        return [
            self._pause(told, errors[number]) if number in errors else 0.0
            for number, told in enumerate(batch)
        ]

    def _count_again(self, content: Content) -> Exception | None:
        """Send the count of a series. Create its event again if the server has deleted it because of its age."""
        try:
            series = {"series": content["series"]}
            # One attempt: the backlog repeats it, so that a throttled event doesn't occupy a sender.
            self._client.write(
                "PATCH", path_of(content), series, content_type=MERGE_PATCH, attempts=1, needs_response=False
            )
        except NotFoundError:
            return self._client.post_all([(collection_of(content), content)])[0]
        except (ApiError, UnavailableError, FencedError) as error:
            return error
        return None

    def _pause(self, told: _Told, error: Exception | None) -> float | None:
        """Return the seconds until the next attempt after this error; None without one, and if none can help."""
        if error is None or isinstance(error, AlreadyExistsError | FencedError):
            # The event exists already if the answer to an earlier attempt was lost. After a FencedError, the new leader
            # records its own events.
            return None
        if isinstance(error, ApiError | UnavailableError):
            backoff = Backoff(
                self._client.chance, self._clock, min(_FIRST_PAUSE * 2**told.tries, _LONGEST_PAUSE)
            )
            pause = pause_after(error, backoff)
            if pause is not None and told.tries + 1 < _TRIES:
                return pause
        self._drop(error)
        return None

    def _drop(self, error: Exception) -> None:
        known = isinstance(error, ClusterError)
        _LOG.warning("an event is dropped: %s", error, exc_info=None if known else error)

    def _with_series(self, told: _Told, count: int) -> Content:
        content = told.content
        if content is None:
            content = told.content = told.happening.content(self._host, self._client.chance)
        if count == 1:
            return content
        seen = self._clock.now() - (self._clock.monotonic() - told.last)
        return {**content, "series": {"count": count, "lastObservedTime": micro_time(seen)}}
