"""The real ends of a recording's pods, found in a pass over the recording before it is replayed."""

from __future__ import annotations

import math
from array import array
from typing import Final

import attrs

from kschedfw import Pod
from kschedfw_replay.replaying.history import Happening
from kschedfw_replay.replaying.measures import PREEMPTED, Account, Measures, disruption
from kschedfw_replay.replaying.room import Typical

NEVER_BOUND: Final = -1


@attrs.frozen
class Fate:
    """The real course of one pod.

    Attributes:
        node: the node that the pod was first bound to; None if it was never bound.
        duration: the seconds from the pod's binding to its end; from its arrival, if it was never bound. Infinite if
            the pod was still there when the recording ended.
        was_preempted: whether the pod was chosen as a victim. That counts as its end; its time to terminate doesn't.
    """

    node: str | None
    duration: float
    was_preempted: bool

    @property
    def run_time(self) -> float:
        """Seconds from the pod's binding by another policy to its end: as many as it really ran.

        Infinite where that isn't known. Then the replay ends the pod at the time of its real deletion if it was never
        bound, and at the end of the recording if it was still there.
        """
        return math.inf if self.node is None else self.duration


class Fates:
    """The fates of all pods, numbered from 0 in the order in which they appear: 13 bytes for each."""

    def __init__(self) -> None:
        self._durations = array("d")
        self._nodes = array("i")
        self._preempted = bytearray()
        self._names: dict[str, int] = {}
        self._by_number: list[str] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> Fate:
        node = self._nodes[number]
        name = None if node == NEVER_BOUND else self._by_number[node]
        return Fate(name, self._durations[number], bool(self._preempted[number]))

    def begin(self) -> int:
        """Add a pod that has appeared. Return its number."""
        self._durations.append(math.inf)
        self._nodes.append(NEVER_BOUND)
        self._preempted.append(False)
        return len(self._nodes) - 1

    def bind(self, number: int, node_name: str) -> None:
        node = self._names.setdefault(node_name, len(self._names))
        if node == len(self._by_number):
            self._by_number.append(node_name)
        self._nodes[number] = node

    def end(self, number: int, duration: float, *, was_preempted: bool = False) -> None:
        """Set the end of a pod that has none yet."""
        if math.isinf(self._durations[number]):
            self._durations[number] = duration
            self._preempted[number] = was_preempted


@attrs.define
class _Life:
    number: int
    arrived_at: float
    bound_at: float | None = None


class Survey:
    """Follows a history, and collects the fates of its pods, their requests, and the measures of the real course."""

    def __init__(self) -> None:
        self.fates = Fates()
        self.typical = Typical()
        self._account: Account | None = None
        self._lives: dict[str, _Life] = {}

    def take(self, happening: Happening) -> None:
        at, old, new = happening.at, happening.old, happening.new
        if self._account is None:
            self._account = Account(at)
        self._account.take(at, old, new)
        if isinstance(happening.object, Pod):
            assert old is None or isinstance(old, Pod)
            assert new is None or isinstance(new, Pod)
            self._pod(at, old, new)

    @property
    def has_begun(self) -> bool:
        """Tell whether the history has had any event."""
        return self._account is not None

    def measures(self, ends: float) -> Measures:
        """Return the measures from the first event until `ends`."""
        assert self._account is not None
        return self._account.measures(ends)

    def _pod(self, at: float, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            assert old is not None
            life = self._lives.pop(old.key)
            self.fates.end(life.number, at - (life.arrived_at if life.bound_at is None else life.bound_at))
            return
        if old is None:
            self._lives[new.key] = _Life(self.fates.begin(), at)
            if not new.node_name:
                self.typical.take(new)
        life = self._lives[new.key]
        if new.node_name and life.bound_at is None:
            life.bound_at = at
            self.fates.bind(life.number, new.node_name)
        if life.bound_at is not None and disruption(new) == PREEMPTED:
            self.fates.end(life.number, at - life.bound_at, was_preempted=True)
