"""The virtual clock, and the pods of a cluster that are to be scheduled."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable
from datetime import datetime
from typing import Self

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster
from kschedfw.simulator.arrivals import own_arrival


class VirtualClock:
    """A clock that begins at `start`, and advances only when it is told to or a thread waits on it."""

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self._now = start

    @classmethod
    def of(cls, cluster: Cluster, pending: Iterable[Pod], start_time: datetime | None = None) -> Self:
        """A clock that begins at `start_time`, or by default when the first pending pod arrived.

        If none of them has a time, it begins when the first node or other pod was created, or else with the epoch.

        Raises:
            ValueError: the time has no time zone.
            ArrivalsError: a pod's annotation isn't a number of seconds.
        """
        if start_time is not None:
            if start_time.tzinfo is None:
                raise ValueError(
                    f"start_time: expected a time with a time zone, found {start_time.isoformat()}"
                )
            return cls(start_time.timestamp())
        arrivals = [time for pod in pending if (time := own_arrival(pod)) is not None]
        if not arrivals:
            made = (obj.metadata.creation_timestamp for obj in (*cluster.list(Node), *cluster.list(Pod)))
            arrivals = [time.timestamp() for time in made if time is not None]
        return cls(min(arrivals, default=0.0))

    @property
    def elapsed(self) -> float:
        """Seconds since the start, rounded to microseconds: a float of seconds since the epoch is no more precise."""
        return round(self._now - self.start, 6)

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:  # noqa: ARG002  # see Clock
        # In a serial simulation no other thread could end the wait, so the time passes at once.
        self.advance_to(deadline)

    def advance_to(self, time: float) -> None:
        """Advance to this time, in seconds; never goes back."""
        self._now = max(self._now, time)


@attrs.define
class PendingPods:
    """The pods of a cluster in order of arrival: those to schedule, and the numbers of others by the reason why not."""

    pending: list[Pod] = attrs.field(factory=list)
    bound: int = 0
    other_scheduler: int = 0
    terminal: int = 0
    terminating: int = 0

    @classmethod
    def of(cls, cluster: Cluster, scheduler_names: Container[str]) -> PendingPods:
        found = cls()
        for pod in cluster.list(Pod):
            if pod.is_terminal:
                found.terminal += 1
            elif pod.node_name:
                found.bound += 1
            elif pod.spec.scheduler_name not in scheduler_names:
                found.other_scheduler += 1
            elif pod.is_terminating:
                found.terminating += 1
            else:
                found.pending.append(pod)
        return found
