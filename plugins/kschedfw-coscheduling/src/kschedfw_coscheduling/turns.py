"""Whose turn it is: the pods of a gang one after the other, in the place of the one that came first."""

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
    """When a gang came, and when it failed if it hasn't been placed since. As long as one of its pods is known."""

    gang: str
    came: _Arrival
    failed: _Arrival | None = None


@attrs.frozen(eq=False)
class _Entry:
    """The turn of a gang's pod since it entered the queue, which the `sequence` of that stands for."""

    sequence: int
    place: _GangPlace
    arrival: _Arrival


class Turns:
    """Orders pods by priority, then by when the pod, or the first one seen of its gang, came.

    A gang that has failed takes its turn as if it had come then, until it is placed: others get theirs first. The queue
    relies on answers that don't change, so a pod takes its gang's new turn when it enters the queue the next time.
    """

    def __init__(self) -> None:
        self._of_gang: WeakValueDictionary[str, _GangPlace] = WeakValueDictionary()
        self._of_pod: WeakKeyDictionary[QueuedPodInfo, _Entry] = WeakKeyDictionary()
        # After all that came at the same time, and in the order of their failures.
        self._failures = itertools.count(sys.maxsize)

    def of(self, info: QueuedPodInfo) -> Turn:
        """What to sort by; the smallest comes first."""
        own, gang = _Arrival.of(info), gang_of(info.pod)
        arrival = own if gang is None else self._entry(gang, info, own).arrival
        return -info.pod.priority, arrival.time, arrival.sequence, gang or "", own.time, own.sequence

    def failures(self) -> Failures:
        """The gangs that have failed and haven't been placed since, and when."""
        return {gang: place.failed for gang, place in self._of_gang.items() if place.failed is not None}

    def set_failures(self, failures: Failures) -> None:
        """From now on, these are the gangs that have failed."""
        for gang, place in self._of_gang.items():
            place.failed = failures.get(gang)

    def mark_failure(self, gang: str, now: float) -> None:
        """The gang's try came to nothing."""
        if (place := self._of_gang.get(gang)) is not None:
            place.failed = _Arrival(now, next(self._failures))

    def clear_failure(self, gang: str) -> None:
        """The gang is placed."""
        if (place := self._of_gang.get(gang)) is not None:
            place.failed = None

    def _entry(self, gang: str, info: QueuedPodInfo, own: _Arrival) -> _Entry:
        entry = self._of_pod.get(info)
        if entry is None or entry.sequence != info.sequence or entry.place.gang != gang:
            place = self._of_gang.get(gang)
            if place is None:
                place = self._of_gang[gang] = _GangPlace(gang, own)
            entry = self._of_pod[info] = _Entry(info.sequence, place, place.failed or place.came)
        return entry
