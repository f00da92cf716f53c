"""Pods that are being scheduled or bound, and the events during that time (kube-scheduler `inFlightEvents`)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder, listens
from kschedfw.scheduler.queue.cluster_events import POD_POPPED, EventName, label_of


@frozen(eq=False)
class Occurrence:
    """An event with the objects it is about."""

    event: ClusterEvent
    old: object | None
    new: object | None


@define(eq=False)
class Flight:
    """A pod in flight: its state when it was popped, the start of its events, and whether it was deleted since."""

    pod: Pod
    begin: int
    deleted: bool = False


class InFlight:
    """All flights, and one list of events for all of them.

    A flight's events are those from its start to the end of the list. Events before the start of the oldest
    flight are dropped, so without flights there are none. `metrics` records the number of kept events; a flight
    counts as one event, as in kube-scheduler.
    """

    def __init__(self, metrics: MetricsRecorder = NO_METRICS, name_of: EventName = label_of) -> None:
        self._name_of = name_of
        self._metrics = metrics if listens(metrics) else None
        self._flights: OrderedDict[str, Flight] = OrderedDict()  # by uid, the oldest flight first
        self._events: list[Occurrence] = []
        self._dropped = 0  # the number of events that were dropped from the front of the list

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: str) -> bool:
        return uid in self._flights

    def get(self, uid: str) -> Flight | None:
        return self._flights.get(uid)

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods as they were when they were popped, oldest flight first."""
        return [flight.pod for flight in self._flights.values()]

    @property
    def events(self) -> Sequence[Occurrence]:
        """All events that are kept."""
        return tuple(self._events)

    def begin(self, pod: Pod) -> None:
        """Begin the pod's flight, after the end of an earlier one."""
        # In the place of the earlier one it could be taken for the oldest, and events that others need be dropped.
        self.end(pod.uid)
        if self._metrics is not None:
            self._metrics.in_flight_events(POD_POPPED, 1)
        self._flights[pod.uid] = Flight(pod, self._dropped + len(self._events))

    def record(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        """Keep the event if a pod is in flight."""
        if self._flights:
            self._events.append(Occurrence(event, old, new))
            if self._metrics is not None:
                self._metrics.in_flight_events(self._name_of(event), 1)

    def events_during(self, flight: Flight) -> Sequence[Occurrence]:
        return self._events[flight.begin - self._dropped :]

    def end(self, uid: str) -> None:
        """End the pod's flight, if there is one, and drop events that only it needed."""
        if self._flights.pop(uid, None) is None:
            return
        oldest = next(iter(self._flights.values()), None)
        end = self._dropped + len(self._events) if oldest is None else oldest.begin
        if self._metrics is not None:
            self._metrics.in_flight_events(POD_POPPED, -1)
        # Mostly there are none: other pods are in flight, too, or nothing has happened.
        if end == self._dropped:
            return
        if self._metrics is not None:
            dropped = Counter(self._name_of(each.event) for each in self._events[: end - self._dropped])
            for label, count in dropped.items():
                self._metrics.in_flight_events(label, -count)
        del self._events[: end - self._dropped]
        self._dropped = end

    def end_all(self) -> None:
        for uid in tuple(self._flights):
            self.end(uid)
