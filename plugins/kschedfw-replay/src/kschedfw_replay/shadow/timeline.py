"""The order in which a cluster's scheduler knew of events: it makes a decision before the event reports it."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, TypeAlias

import attrs

from kschedfw import Pod
from kschedfw.cluster import EventType, WatchEvent
from kschedfw_replay.recording.order import insert_by_version, version_of
from kschedfw_replay.shadow.decision import Recorded, expected_node
from kschedfw_replay.shadow.room_changes import RoomChanges

FIRST_LATENCY: Final = 0.01
"""Seconds from a decision to its event, as long as none has been measured."""
_MEASURED: Final = 50
"""The number of the latest latencies whose median is taken."""


@attrs.frozen
class Waiting:
    """A pod that the scheduler hasn't tried yet: since when, its place among the others, and whether it was alone."""

    since: float
    turn: int
    scheduler: str
    priority: int
    was_alone: bool

    def precedes(self, other: Waiting) -> bool:
        """Tell whether the scheduler has certainly tried this pod before the other one: its queue is sorted so."""
        return (
            self.scheduler == other.scheduler and self.turn < other.turn and self.priority >= other.priority
        )


@attrs.frozen(eq=False)
class Arrival:
    """An event, when it came in seconds on the monotonic clock, and the decision that it tells of, if any.

    `room_at` is when the room for the pod of that decision had changed last (see `RoomChanges`); 0 if it isn't known.
    `version` is the resource version; 0 if it has none. `waited` tells how the pod of that decision waited, if it
    was tried for the first time; `Timeline.take` adds it.
    """

    event: WatchEvent
    at: float
    recorded: Recorded | None = None
    room_at: float = 0.0
    version: int = 0
    waited: Waiting | None = None


_Decision: TypeAlias = tuple[Arrival, Recorded]


class Timeline:
    """Events by the moments at which they counted for the cluster's scheduler.

    kube-scheduler decides on one pod after the other, and writes in the background, many at a time. So a binding comes
    some milliseconds after its decision, after changes that the decision didn't know, and in another order than the
    decisions. Here it is taken ahead, to the moment of its decision: that is when the pod came, if no other waited
    then, else a latency before the binding, which is measured with the pods that came alone. But it isn't taken before
    the last change that left room on its node: where pods wait, nodes are full, and the room was the reason of the
    decision; where nodes aren't full, a little more room on the node that was chosen seldom changes a choice. Of two
    pods that wait for the first time, the one that came first was decided first, unless its priority is lower; so
    neither goes before the other one's room. A pod whose claims are bound before itself, which can take minutes, is
    nominated as soon as it is decided: from then on it counts as bound.
    """

    def __init__(
        self, settling: float, present: Callable[[str], Pod | None], latency: float = FIRST_LATENCY
    ) -> None:
        """Look `settling` seconds ahead for decisions; `present` gives a pod by its key after the events so far.

        `latency` is in seconds, and counts as long as none has been measured. Events of one instant, as simulations
        have them, stay in the order in which they came.
        """
        self._settling, self._present = settling, present
        self._window: deque[Arrival] = deque()
        self._decisions: list[Arrival] = []
        """The events in the window that report decisions."""
        self._expected: dict[str, Pod] = {}
        """Pods that are about to be bound, by UID, as if they were bound."""
        self._waiting: dict[str, Waiting] = {}
        self._waiting_for: Counter[str] = Counter()
        """The numbers of waiting pods by scheduler name."""
        self._room = RoomChanges()
        self._turn = 0
        self._latencies: deque[float] = deque((latency,), maxlen=_MEASURED)
        self._latency = latency

    def put(self, event: WatchEvent, at: float) -> None:
        """Add an event that came after all others, in the place that it has in the API server's order."""
        version = version_of(event)
        for each in self._with_expected(event):
            self._put(each, at, version)

    def _put(self, event: WatchEvent, at: float, version: int) -> None:
        before = event.old if isinstance(event.old, Pod) else None
        recorded = Recorded.of(before, event)
        room_at = 0.0 if recorded is None else self._room.latest_for(recorded)
        arrival = Arrival(event, at, recorded, room_at, version)
        index = insert_by_version(self._window, arrival, lambda each: each.version)
        if index + 1 < len(self._window):
            # It counts as having come with the change before which it was stored, so that times in the window never
            # decrease.
            arrival = self._window[index] = attrs.evolve(arrival, at=self._window[index + 1].at)
        self._room.note(event, at)
        if arrival.recorded is not None:
            self._decisions.append(arrival)

    def _with_expected(self, event: WatchEvent) -> Iterator[WatchEvent]:
        """Yield the event with pods that are about to be bound as if they were bound."""
        after = event.object
        if not isinstance(after, Pod):
            yield event
            return
        before = event.old if isinstance(event.old, Pod) else None
        expected = self._expected.pop(after.uid, None)
        if event.type is EventType.DELETED:
            yield event if expected is None else WatchEvent(event.type, expected)
            return
        node = expected_node(before, after, "" if expected is None else expected.node_name)
        if node:
            after = self._expected[after.uid] = attrs.evolve(
                after, spec=attrs.evolve(after.spec, node_name=node)
            )
        if expected is None or expected.node_name == after.node_name:
            yield WatchEvent(event.type, after, expected or event.old)
        else:
            # The pod couldn't be bound there.
            yield WatchEvent(EventType.DELETED, expected)
            yield WatchEvent(EventType.ADDED, after)

    def take(self, settled: float) -> Arrival | None:
        """Remove the next event and return it; None if it came after `settled`: later events may belong before it."""
        if not self._window or self._window[0].at > settled:
            return None
        arrival = self._next()
        self._window.remove(arrival)
        if arrival.recorded is not None:
            self._decisions.remove(arrival)
            if (waiting := self._waiting.get(arrival.recorded.pod.uid)) is not None:
                self._measure(arrival, waiting)
                arrival = attrs.evolve(arrival, waited=waiting)
        self._note(arrival)
        return arrival

    @property
    def next_at(self) -> float | None:
        """Return the arrival time of the oldest event; None if there is none."""
        return self._window[0].at if self._window else None

    @property
    def span(self) -> float:
        """The seconds between the oldest and the latest event."""
        return self._window[-1].at - self._window[0].at if self._window else 0.0

    def ahead(self) -> Iterator[Arrival]:
        """Yield the waiting events, in the order of their arrival."""
        return iter(self._window)

    def _next(self) -> Arrival:
        head = self._window[0]
        ready = [
            (each, each.recorded)
            for each in self._decisions
            if each.recorded is not None
            and each.at <= head.at + self._settling
            # Changes of the pod that come before it have to be applied first.
            and self._present(each.recorded.pod.key) is each.recorded.pod
        ]
        due = [each for each in ready if _is_due(self._moment(*each), each[0], head.at)]
        for arrival, recorded in sorted(due, key=lambda each: self._moment(*each)):
            before = [each for each in ready if self._is_before(each[1].pod, recorded.pod)]
            # A pod isn't due before all that were certainly tried before it could have been decided.
            if all(_is_due(self._earliest(*each), each[0], head.at) for each in before):
                return self._first_tried(before) or arrival
        return head

    def _first_tried(self, decisions: Sequence[_Decision]) -> Arrival | None:
        """Return the decision that the scheduler made before all others; None if there are none."""
        first: _Decision | None = None
        for each in decisions:
            if first is None or self._is_before(each[1].pod, first[1].pod):
                first = each
        return None if first is None else first[0]

    def _moment(self, arrival: Arrival, recorded: Recorded) -> float:
        """Return the estimated time of the decision."""
        waiting, earliest = self._waiting.get(recorded.pod.uid), self._earliest(arrival, recorded)
        was_alone = waiting is not None and waiting.was_alone
        return earliest if was_alone else max(earliest, arrival.at - self._latency)

    def _earliest(self, arrival: Arrival, recorded: Recorded) -> float:
        """Return the earliest possible time of the decision: before it the pod didn't exist, or had no room."""
        waiting = self._waiting.get(recorded.pod.uid)
        # Strictly after the change that made the room.
        room_at = math.nextafter(arrival.room_at, math.inf)
        return room_at if waiting is None else max(waiting.since, room_at)

    def _is_before(self, pod: Pod, other: Pod) -> bool:
        """Tell whether the scheduler has certainly tried this pod before the other one."""
        mine, its = self._waiting.get(pod.uid), self._waiting.get(other.uid)
        return mine is not None and its is not None and mine.precedes(its)

    def _measure(self, arrival: Arrival, waiting: Waiting) -> None:
        if waiting.was_alone:
            self._latencies.append(arrival.at - waiting.since)
            self._latency = median(self._latencies)

    def _note(self, arrival: Arrival) -> None:
        """Note whether the pod of the event waits now to be tried for the first time."""
        pod = arrival.event.object
        if not isinstance(pod, Pod):
            return
        deleted = arrival.event.type is EventType.DELETED
        tried = any(condition.type == "PodScheduled" for condition in pod.status.conditions)
        if deleted or tried or pod.node_name or pod.spec.scheduling_gates:
            if (waiting := self._waiting.pop(pod.uid, None)) is not None:
                self._waiting_for[waiting.scheduler] -= 1
        elif pod.uid not in self._waiting:
            self._turn += 1
            name = pod.spec.scheduler_name
            is_alone = not self._waiting_for[name]
            self._waiting[pod.uid] = Waiting(arrival.at, self._turn, name, pod.priority, is_alone)
            self._waiting_for[name] += 1


def _is_due(moment: float, arrival: Arrival, at: float) -> bool:
    """Return whether the decision made at `moment`, reported by `arrival`, goes before an event of the time `at`."""
    return moment < at or moment == at < arrival.at
