"""Virtual time, and which pods of a cluster are up for scheduling."""

from __future__ import annotations

import threading
from collections.abc import Container

import attrs

from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster


class VirtualClock:
    """A clock that moves only when it is told to, or someone waits on it; starts at 0."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:  # noqa: ARG002  # see Clock
        # In a serial simulation nobody else could end the wait, so the time just passes.
        self.advance_to(deadline)

    def advance_to(self, time: float) -> None:
        """Move on to that time, in seconds; never back."""
        self._now = max(self._now, time)


@attrs.define
class PendingPods:
    """The pods of a cluster, sorted by whether and why they are (not) up for scheduling, in order of arrival."""

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
