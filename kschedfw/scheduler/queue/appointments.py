"""Times at which pods are to be tried again."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from kschedfw.api.records import define
from kschedfw.scheduler.queue.heap import KeyedHeap


@define(eq=False)
class _Appointment:
    """The times for one pod, a heap. `sequence` orders pods with the same next time."""

    uid: str
    sequence: int
    times: list[float]


def _comes_first(one: _Appointment, other: _Appointment) -> bool:
    return (one.times[0], one.sequence) < (other.times[0], other.sequence)


class Appointments:
    """Times for pods, by uid; a pod may have several. Not thread-safe.

    Times are seconds on the queue's clock.
    """

    def __init__(self) -> None:
        self._pods = KeyedHeap[_Appointment](_comes_first)
        self._sequence = 0

    def add(self, uid: str, time: float) -> None:
        """Add a time for the pod, unless the pod has it already."""
        appointment = self._pods.get(uid)
        if appointment is None:
            self._sequence += 1
            appointment = _Appointment(uid, self._sequence, [])
        if time not in appointment.times:
            heapq.heappush(appointment.times, time)
            self._pods.push(uid, appointment)

    def cancel(self, uid: str) -> None:
        """Forget all times of the pod, if it has any."""
        self._pods.remove(uid)

    def pop_due(self, now: float) -> Sequence[str]:
        """Remove the times that have come. Return the uids of their pods in the order of the times."""
        due: list[str] = []
        while self.next() <= now:
            first = self._pods.pop()
            assert first is not None
            heapq.heappop(first.times)
            due.append(first.uid)
            if first.times:
                self._pods.push(first.uid, first)
        return due

    def next(self) -> float:
        """Return the earliest time of all; infinity if there is none."""
        first = self._pods.peek()
        return math.inf if first is None else first.times[0]

    def next_by_pod(self) -> dict[str, float]:
        """Return the earliest time of each pod that has one."""
        return {each.uid: each.times[0] for each in self._pods.ordered()}
