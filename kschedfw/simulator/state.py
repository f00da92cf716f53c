"""The start time of a simulation, and the pods of a cluster that are to be scheduled."""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster
from kschedfw.framework.clock import VirtualClock
from kschedfw.simulator.arrivals import own_arrival


def starting_clock(
    cluster: Cluster, pending: Iterable[Pod], start_time: datetime | None = None
) -> VirtualClock:
    """Return a clock that begins at `start_time`, or by default when the first pending pod arrived.

    If none of them has a time, it begins when the first node or other pod was created, or else with the epoch.

    Raises:
        ValueError: the time has no time zone.
        ArrivalsError: a pod's annotation isn't a number of seconds.
    """
    if start_time is not None:
        if start_time.tzinfo is None:
            raise ValueError(f"start_time: expected a time with a time zone, found {start_time.isoformat()}")
        return VirtualClock(start_time.timestamp())
    arrivals = [time for pod in pending if (time := own_arrival(pod)) is not None]
    if not arrivals:
        made = (obj.metadata.creation_timestamp for obj in (*cluster.list(Node), *cluster.list(Pod)))
        arrivals = [time.timestamp() for time in made if time is not None]
    return VirtualClock(min(arrivals, default=0.0))


@attrs.define
class PendingPods:
    """The pods of a cluster in order of arrival: pods to schedule, and the numbers of others by the reason why not."""

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
