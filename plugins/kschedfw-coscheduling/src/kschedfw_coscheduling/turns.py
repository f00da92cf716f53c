"""Whose turn it is: the pods of a gang one after the other, in the place of the one that came first."""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakValueDictionary

import attrs

from kschedfw import QueuedPodInfo
from kschedfw_coscheduling.pod_group import gang_of

Turn = tuple[int, float, int, str, float, int]


@attrs.frozen(eq=False)
class _Arrival:
    time: float
    sequence: int

    @classmethod
    def of(cls, info: QueuedPodInfo) -> _Arrival:
        first = info.initial_attempt_timestamp
        return cls(info.timestamp if first is None else first, info.sequence)


class Turns:
    """Orders pods by priority, then by when the pod, or the first one seen of its gang, came.

    A gang keeps its place as long as one of its pods is known to the scheduler: the queue relies on answers that don't
    change.
    """

    def __init__(self) -> None:
        self._of_gang: WeakValueDictionary[str, _Arrival] = WeakValueDictionary()
        self._of_pod: WeakKeyDictionary[QueuedPodInfo, _Arrival] = WeakKeyDictionary()

    def of(self, info: QueuedPodInfo) -> Turn:
        """What to sort by; the smallest comes first."""
        own, gang = _Arrival.of(info), gang_of(info.pod)
        arrival = own if gang is None else self._arrival(gang, info, own)
        return -info.pod.priority, arrival.time, arrival.sequence, gang or "", own.time, own.sequence

    def _arrival(self, gang: str, info: QueuedPodInfo, own: _Arrival) -> _Arrival:
        arrival = self._of_gang.get(gang)
        if arrival is None:
            arrival = self._of_gang[gang] = own
        self._of_pod[info] = arrival
        return arrival
