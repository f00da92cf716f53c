"""Schedulers that work concurrently in virtual time."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

import attrs

from kschedfw import VirtualClock
from kschedfw_lab.cell.architecture import NodeShares, NodeT

NodeT_contra = TypeVar("NodeT_contra", contravariant=True)


@attrs.frozen
class ThinkTime:
    """The seconds of a decision: `per_job`, plus `per_task` for each task of the job.

    The model and the values 0.1 s and 5 ms, which approximate Google's measurements, are from Schwarzkopf et al.,
    "Omega", EuroSys 2013, section 4.
    """

    per_job: float = 0.1
    per_task: float = 0.005

    def of(self, tasks: int) -> float:
        """Return the seconds for a job of `tasks` tasks."""
        return self.per_job + self.per_task * tasks


class Member(Protocol[NodeT_contra]):
    """A scheduler that takes part in `Turns`."""

    @property
    def has_work(self) -> bool:
        """Return whether a decision is due."""
        ...

    def begin(self, nodes: frozenset[NodeT_contra]) -> float:
        """Decide about the next work on the current state of these nodes.

        Return how many seconds the decision takes.
        """
        ...

    def end(self) -> None:
        """Commit the decision. Conflicting parts become work again."""
        ...


class Turns(Generic[NodeT]):
    """Gives nodes to each member, begins its decisions, and ends them when their time has passed.

    Members decide concurrently. Only decisions take virtual time. Events at the same time happen in the order in which
    they were planned.
    """

    def __init__(
        self, members: Sequence[Member[NodeT]], shares: NodeShares[NodeT], clock: VirtualClock | None = None
    ) -> None:
        self.clock = VirtualClock() if clock is None else clock
        self._members = members
        self._shares = shares
        self._thinking: set[int] = set()
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, time: float, event: Callable[[], None]) -> None:
        """Plan an event, such as the arrival of a job, for this time in seconds."""
        heapq.heappush(self._planned, (time, next(self._order), event))

    def run(self, until: float = math.inf) -> None:
        """Run until nothing is planned and no member has work, or until this time."""
        self._begin_where_possible()
        while self._planned and self._planned[0][0] <= until:
            time, _, event = heapq.heappop(self._planned)
            self.clock.advance_to(time)
            event()
            # All events of this time come first, so that a decision that begins now sees them.
            while self._planned and self._planned[0][0] == time:
                heapq.heappop(self._planned)[2]()
            self._begin_where_possible()
        if until < math.inf:
            self.clock.advance_to(until)

    def _begin_where_possible(self) -> None:
        for index, member in enumerate(self._members):
            if index in self._thinking or not member.has_work:
                continue
            nodes = self._shares.take(index)
            if not nodes:
                continue
            self._thinking.add(index)
            seconds = member.begin(nodes)
            self.at(self.clock.now() + seconds, partial(self._end, index))

    def _end(self, index: int) -> None:
        self._members[index].end()
        self._shares.give_back(index)
        self._thinking.discard(index)
