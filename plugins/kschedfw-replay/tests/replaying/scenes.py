"""Recordings of what our own scheduler did in a cluster in memory."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from random import Random

import attrs
from hypothesis import strategies as st
from kschedfw_replay import ChangeType, Record, RecordedChange, State
from kschedfw_replay.recording.recorder import Fields

from kschedfw import InMemoryCluster, Node, Pod, Registry, Scheduler, VirtualClock, make_node, make_pod
from kschedfw.cluster import WatchEvent

START = 1_000.0


@attrs.frozen
class Arrival:
    """A pod that arrives at a time, and is deleted so many seconds after its binding, or at a time."""

    at: float
    pod: Pod
    duration: float | None = None
    deleted_at: float | None = None


def pod(name: str, cpu: str = "1", priority: int = 0, **labels: str) -> Pod:
    return make_pod(name).requests(cpu=cpu).priority(priority).labels(labels).build()


def nodes(count: int, cpu: str = "4") -> list[Node]:
    return [make_node(f"n{index}").capacity(cpu=cpu, memory="8Gi", pods=20).build() for index in range(count)]


class RecordedCluster:
    """A cluster in memory in which things happen at times, and what its scheduler and they do, as records."""

    def __init__(self, objects: Iterable[Node | Pod], registry: Registry) -> None:
        self.clock = VirtualClock(START)
        self.cluster = InMemoryCluster(objects)
        self.scheduler = Scheduler(self.cluster, registry=registry, clock=self.clock, random=Random(0))
        fields, present = Fields(), []
        self.cluster.watch(lambda event: present.append(event.object))()
        self.records: list[Record] = [
            State(START, tuple(fields.manifest(fields.of(each)) for each in present))
        ]
        self._fields = fields
        self._due: list[tuple[float, bool, int, Arrival]] = []
        self._order = itertools.count()
        self._lives: dict[str, Arrival] = {}
        self._is_beginning = True  # what is there already is the state
        self.cluster.watch(self._see)
        self._is_beginning = False

    def run(self, arrivals: Iterable[Arrival], until: float) -> list[Record]:
        """Let pods come and go until a time, and return the records."""
        for each in arrivals:
            self._at(each.at, each, comes=True)
            if each.deleted_at is not None:
                self._at(each.deleted_at, each, comes=False)
        self.scheduler.run_until_idle()
        while (at := min([*self._next(), until])) < until:
            self.clock.advance_to(at)
            while self._due and self._due[0][0] <= at:
                _, comes, _, arrival = heapq.heappop(self._due)
                if comes:
                    self._lives[arrival.pod.key] = arrival
                    self.cluster.add(arrival.pod)
                elif self.cluster.get(Pod, arrival.pod.key) is not None:
                    self.cluster.delete(arrival.pod)
            self.scheduler.run_until_idle()
        self.clock.advance_to(until)
        # A record at the end: a recording ends with the last one.
        self.cluster.add(make_node("late").unschedulable().build())
        self.scheduler.close()
        return self.records

    def _next(self) -> list[float]:
        due = [self._due[0][0]] if self._due else []
        retry = self.scheduler.queue.next_deadline()
        return due if retry is None or retry <= self.clock.now() else [*due, retry]

    def _at(self, at: float, arrival: Arrival, *, comes: bool) -> None:
        heapq.heappush(self._due, (at, comes, next(self._order), arrival))

    def _see(self, event: WatchEvent) -> None:
        if self._is_beginning:
            return
        obj, now = event.object, self.clock.now()
        manifest = self._fields.manifest(self._fields.of(obj))
        self.records.append(RecordedChange(now, ChangeType(event.type.value), manifest))
        was_bound = isinstance(event.old, Pod) and bool(event.old.node_name)
        if isinstance(obj, Pod) and obj.node_name and not was_bound:
            arrival = self._lives[obj.key]
            if arrival.duration is not None:
                self._at(now + arrival.duration, arrival, comes=False)


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    """Pods that come and go within 100 seconds after the start, some of which preempt others."""
    found, at = [], START
    for index in range(draw(st.integers(1, 14))):
        at += draw(st.sampled_from((0.0, 0.5, 3.0)))
        found.append(
            Arrival(
                at,
                pod(f"p{index}", draw(st.sampled_from(("500m", "1", "3"))), draw(st.sampled_from((0, 0, 5)))),
                draw(st.none() | st.sampled_from((2.0, 7.5, 30.0))),
                draw(st.none() | st.just(at + 20.0)),
            )
        )
    return found
