"""The input that a simulation reads from a cluster: start time, pending pods, arrivals and departures, annotations."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from kschedfw.api.node import PRICE, Node
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.api.resource_claims import EXTENDED_RESOURCE_ANNOTATION, POD_CLAIM_ANNOTATION
from kschedfw.api.storage import DEFAULT_CLASS_ANNOTATIONS
from kschedfw.api.volume_matching import BIND_COMPLETED, BOUND_BY_CONTROLLER, CLASS_ANNOTATION, SELECTED_NODE
from kschedfw.api.words import with_article
from kschedfw.cluster import Cluster, InMemoryCluster
from kschedfw.cluster.freeing import MIRROR_ANNOTATION
from kschedfw.framework.clock import VirtualClock
from kschedfw.simulator.arrivals import (
    DURATION,
    LIFETIME,
    OPENB_CREATION,
    OPENB_DELETION,
    OPENB_SCHEDULED,
    Arrivals,
    ArrivalsError,
    Stay,
    own_arrival,
)

ANNOTATIONS: Final = frozenset(
    {
        *(SELECTED_NODE, BIND_COMPLETED, BOUND_BY_CONTROLLER, CLASS_ANNOTATION, *DEFAULT_CLASS_ANNOTATIONS),
        *(MIRROR_ANNOTATION, POD_CLAIM_ANNOTATION, EXTENDED_RESOURCE_ANNOTATION, PRICE),
        *(DURATION, LIFETIME, OPENB_CREATION, OPENB_SCHEDULED, OPENB_DELETION),
    }
)
"""Keys of the annotations that a simulation and its reports read; what plugins read comes on top."""


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


@define
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


# At equal times, pods leave before others come.
_LEAVES, _COMES = 0, 1
_SHORTEST = 1e-6
"""The shortest lifetime in seconds, so that a pod is tried before it leaves: a float of seconds since 1970 has no
smaller steps.
"""


class ComingsAndGoings:
    """The pods that arrive later, and those that leave, in the order of their times."""

    def __init__(self, cluster: Cluster, clock: VirtualClock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._due: list[tuple[float, int, int, Pod]] = []
        self._order = itertools.count()
        self._ended: set[str] = set()
        self.stays: Mapping[str, Stay] = {}
        """The stays of the pending pods, by uid; empty if all are there from the start, and for good."""

    def plan(self, arrivals: Arrivals, pending: Sequence[Pod], seed: int) -> None:
        """Delete the pending pods that arrive later, and plan their return; plan the departures of bound pods.

        Raises:
            ArrivalsError: a pod's times aren't numbers, or the cluster isn't an InMemoryCluster.
        """
        self.stays = arrivals.plan(pending, seed)
        for pod in pending:
            arrival = self.stays[pod.uid].arrival
            if arrival > 0:
                if not isinstance(self._cluster, InMemoryCluster):
                    kind = with_article(type(self._cluster).__name__)
                    raise ArrivalsError(
                        f"arrivals: pods can come and go in an InMemoryCluster only, not in {kind}"
                    )
                self._cluster.delete(pod)
                self._at(self._clock.start + arrival, _COMES, pod)
            else:
                self._note_arrived(pod)
        for pod in self._cluster.list(Pod):
            if pod.node_name and (seconds := arrivals.remaining(pod)) is not None:
                self._at(self._clock.start + seconds, _LEAVES, pod)

    def plan_ends(self) -> None:
        """Plan the departures of bound pods that are being deleted: at the end of their grace period, or at once."""
        for pod in self._cluster.list(Pod):
            end = pod.metadata.deletion_timestamp
            if pod.node_name and not pod.is_terminal and end is not None:
                self._at(max(self._clock.start, end.timestamp()), _LEAVES, pod)

    @property
    def next_time(self) -> float | None:
        """The virtual time at which the next pod comes or goes; None if there is none."""
        return self._due[0][0] if self._due else None

    def note_bound(self, pod: Pod) -> None:
        """Plan the departure of a pod that was just bound, if its stay has an end."""
        stay = self.stays.get(pod.uid)
        if stay is not None and stay.duration is not None:
            self._at(self._clock.now() + stay.duration, _LEAVES, pod)

    def let_happen(self) -> None:
        """Add and delete the pods whose time has come."""
        while self._due and self._due[0][0] <= self._clock.now():
            _, what, _, pod = heapq.heappop(self._due)
            if what == _COMES:
                assert isinstance(self._cluster, InMemoryCluster)
                # It keeps its uid, by which its stay is known.
                self._cluster.add(pod)
                self._note_arrived(pod)
            else:
                present = self._cluster.get(Pod, pod.key)
                # A pod that was preempted before isn't there, or another one has its name.
                if present is not None and present.uid == pod.uid:
                    self._ended.add(pod.uid)
                    self._cluster.delete(present)

    def has_ended(self, pod: Pod) -> bool:
        """Tell whether the pod has left, or is leaving, at the end of its stay."""
        return pod.uid in self._ended

    def _note_arrived(self, pod: Pod) -> None:
        """Plan the departure of a pod that has just arrived, if its lifetime has an end."""
        stay = self.stays[pod.uid]
        if stay.lifetime is not None:
            self._at(self._clock.start + stay.arrival + max(stay.lifetime, _SHORTEST), _LEAVES, pod)

    def _at(self, time: float, what: int, pod: Pod) -> None:
        # The number keeps pods of one time in order, and keeps pods from being compared.
        heapq.heappush(self._due, (time, what, next(self._order), pod))
