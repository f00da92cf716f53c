"""The order of the queue: the pods of a gang follow one another, at the place of the pod that came first."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from typing import TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

import attrs

from kschedfw import QueuedPodInfo
from kschedfw_coscheduling.pod_group import gang_of

Turn = tuple[int, float, int, str, float, int]


@attrs.frozen
class _Arrival:
    time: float
    sequence: int

    @classmethod
    def of(cls, info: QueuedPodInfo) -> _Arrival:
        first = info.initial_attempt_timestamp
        return cls(info.timestamp if first is None else first, info.sequence)


Failures: TypeAlias = Mapping[str, _Arrival]


@attrs.define(eq=False)
class _GangPlace:
    """A gang's arrival time, and the time of its last failure; None if it hasn't failed since it was last placed.

    Kept as long as the queue knows one of the gang's pods.
    """

    gang: str
    came: _Arrival
    failed: _Arrival | None = None


@attrs.frozen(eq=False)
class _Entry:
    """The turn of a gang's pod, fixed when the pod entered the queue; `sequence` identifies this entry."""

    sequence: int
    place: _GangPlace
    arrival: _Arrival


class Turns:
    """Orders pods by priority, then by the time when the pod, or the first known pod of its gang, came.

    A failed gang is ordered by the time of its failure until it is placed, so that other pods go first. The queue
    requires an order that doesn't change while pods are in it. So a pod takes its gang's new turn when it next enters
    the queue.
    """

    def __init__(self) -> None:
        self._of_gang: WeakValueDictionary[str, _GangPlace] = WeakValueDictionary()
        self._of_pod: WeakKeyDictionary[QueuedPodInfo, _Entry] = WeakKeyDictionary()
        # Start at the largest sequence: a failed gang comes after every pod that came at the same time. Counting up
        # keeps failed gangs in the order of their failures.
        self._failures = itertools.count(sys.maxsize)

    def of(self, info: QueuedPodInfo) -> Turn:
        """Return the pod's sort key; the smallest key comes first."""
        own, gang = _Arrival.of(info), gang_of(info.pod)
        arrival = own if gang is None else self._entry(gang, info, own).arrival
        return -info.pod.priority, arrival.time, arrival.sequence, gang or "", own.time, own.sequence

    def failures(self) -> Failures:
        """Return when each gang failed, without gangs that were placed since."""
        return {gang: place.failed for gang, place in self._of_gang.items() if place.failed is not None}

    def set_failures(self, failures: Failures) -> None:
        """Replace the failures of all gangs with these."""
        for gang, place in self._of_gang.items():
            place.failed = failures.get(gang)

    def mark_failure(self, gang: str, now: float) -> None:
        """Note that the gang's try failed at the time `now`, in the clock's seconds."""
        if (place := self._of_gang.get(gang)) is not None:
            place.failed = _Arrival(now, next(self._failures))

    def clear_failure(self, gang: str) -> None:
        """Forget the gang's failure, since it was placed."""
        if (place := self._of_gang.get(gang)) is not None:
            place.failed = None

    def _entry(self, gang: str, info: QueuedPodInfo, own: _Arrival) -> _Entry:
        entry = self._of_pod.get(info)
        # Another sequence means that the pod has entered the queue again, where it may take another place.
        if entry is None or entry.sequence != info.sequence or entry.place.gang != gang:
            place = self._of_gang.get(gang)
            if place is None:
                place = self._of_gang[gang] = _GangPlace(gang, own)
            entry = self._of_pod[info] = _Entry(info.sequence, place, place.failed or place.came)
        return entry
