"""Detection of further attempts that can't differ from the last ones, where time alone passes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from kschedfw.framework.clock import Clock
from kschedfw.framework.nodes.pod_info import QueuedPodInfo


class Stillness:
    """Remembers which pods were tried, or had their gates asked, since anything changed. Not thread-safe.

    An attempt that was itself still, so that neither it nor anybody else changed anything from its begin to its end,
    would have the same result again.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._begun: dict[str, int] = {}
        self._tried: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        return uid in self._tried

    def __len__(self) -> int:
        """Return the number of pods that were tried since the last change."""
        return len(self._tried)

    def end(self) -> None:
        """Note a change, of whatever decisions may depend on."""
        self._changes += 1
        self._tried.clear()

    def begin_attempt(self, uid: str) -> None:
        self._begun[uid] = self._changes

    def end_attempt(self, uid: str) -> None:
        """Note that the pod's attempt has ended with a refusal by plugins."""
        if self._begun.pop(uid, None) == self._changes:
            self._tried.add(uid)

    def forget(self, uid: str) -> None:
        """Forget an attempt that ended in another way."""
        self._begun.pop(uid, None)


class ObservedClock:
    """A clock that calls `tell` at each look: what has read the time may decide otherwise at another time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.tell: Callable[[], object] = lambda: None

    def now(self) -> float:
        self.tell()
        return self._clock.now()

    def monotonic(self) -> float:
        self.tell()
        return self._clock.monotonic()

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        self.tell()
        self._clock.wait_until(condition, deadline)


def flushes_before(since: float, timeout: float, now: float) -> tuple[int, float]:
    """Return how often a pod that waits since a time would have been flushed before `now`, and when it was last.

    A flush comes at the first float after the timeout, and the next one counts from there. Each has the same distance
    from the one before as long as floats are evenly spaced, up to the next power of two, so those are counted at once.
    """
    count = 0
    while (due := math.nextafter(since + timeout, math.inf)) < now:
        count += 1
        step, exponent = due - since, math.frexp(due)[1]
        # Two equal steps between evenly spaced floats: rounding to even, where a sum is in the middle, may differ once.
        if math.frexp(since)[1] == exponent and math.nextafter(due + timeout, math.inf) - due == step:
            # Before 1970, floats become denser with time.
            power = math.ldexp(1.0, exponent) if due > 0 else -math.ldexp(0.5, exponent)
            # None of these reaches the end, so that the loop's own comparison decides on the last one.
            further = max(0, int((min(now, power) - due) / step) - 1)
            count += further
            due += further * step
        since = due
    return count, since


def end_of_stage(due: float, timeout: float) -> float:
    """Return a time after a flush that is due. Up to it, no two flushes at different times fall together by rounding.

    They may where floats become twice as far apart. From then on, the order of their attempts is that of the timeout
    before: it has to be read from their times while these still differ.
    """
    if due < 0:
        # Before 1970 floats become denser with time.
        return 0.0
    power = math.ldexp(1.0, math.frexp(due)[1])
    # A pod flushed since the last power of two, and one flushed just before it, fall together at their next flush.
    crossing = power / 2 + timeout
    return min(crossing, power) if due < crossing else power


def rest(info: QueuedPodInfo, timeout: float, now: float) -> bool:
    """Write into an unschedulable or gated pod what its flushes before `now` would have. Return whether it was tried.

    A flush asks the gates of a gated pod, and leads to an attempt of any other one.
    """
    since = info.timestamp if info.flush_timestamp is None else max(info.timestamp, info.flush_timestamp)
    count, last = flushes_before(since, timeout, now)
    if not count:
        return False
    if info.gated:
        info.flush_timestamp = last
        return False
    info.timestamp, info.flush_timestamp, info.backoff_expiration = last, None, None
    info.attempts += count
    info.unschedulable_count += count
    return True
