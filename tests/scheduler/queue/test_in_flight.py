"""Every flight sees what happened since it began, the last time if it began twice; and nothing is kept for nobody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kschedfw.framework.metrics import NoMetrics
from kschedfw.scheduler.queue.cluster_events import POD_POPPED
from kschedfw.scheduler.queue.in_flight import InFlight
from tests.scheduler.queue.support import NODE_ADD, pod

NAMES = st.sampled_from("abcd")
STEPS = st.lists(st.tuples(st.sampled_from(["begin", "end", "event"]), NAMES), max_size=60)


class Counted(NoMetrics):
    """Adds up the changes that it is told."""

    def __init__(self) -> None:
        self.of = {POD_POPPED: 0, NODE_ADD.label: 0}

    def in_flight_events(self, event: str, change: int) -> None:
        self.of[event] += change


@given(STEPS)
def test_flights_see_what_happened_since_they_began(steps: list[tuple[str, str]]) -> None:
    counted = Counted()
    in_flight = InFlight(counted)
    seen: dict[str, list[int]] = {}
    for number, (step, name) in enumerate(steps):
        if step == "event":
            in_flight.record(NODE_ADD, None, number)
            for events in seen.values():
                events.append(number)
        elif step == "end":
            in_flight.end(name)
            seen.pop(name, None)
        else:
            in_flight.begin(pod(name))
            seen.pop(name, None)
            seen[name] = []
        assert len(in_flight) == len(seen)
        assert [each.name for each in in_flight.pods] == list(seen)
        for each, expected in seen.items():
            flight = in_flight.get(each)
            assert flight is not None
            assert [occurrence.new for occurrence in in_flight.events_during(flight)] == expected
        # What is kept is exactly what the oldest flight sees.
        assert len(in_flight.events) == max(map(len, seen.values()), default=0)
        assert counted.of == {POD_POPPED: len(seen), NODE_ADD.label: len(in_flight.events)}
    in_flight.end_all()
    assert len(in_flight) == 0
    assert in_flight.events == ()
    assert counted.of == {POD_POPPED: 0, NODE_ADD.label: 0}
