"""The order of events: a decision counts when it was made, not when it was told."""

from __future__ import annotations

import math
from collections import Counter, deque
from random import Random

import attrs
from holding import held
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_replay.shadow.decision import Recorded
from kschedfw_replay.shadow.room_changes import RoomChanges
from kschedfw_replay.shadow.timeline import Arrival, Timeline

from kschedfw import Pod, make_node, make_pod, make_volume
from kschedfw.api import (
    AllocationResult,
    Named,
    ObjectMeta,
    PodCondition,
    PodResourceClaim,
    ResourceClaim,
    ResourceSlice,
)
from kschedfw.cluster import EventType, WatchEvent

SETTLING = 0.5


class Told:
    """Events as they come, and as they are taken."""

    def __init__(self) -> None:
        self.present: dict[str, Named] = {}
        self.known: dict[str, Named] = {}
        self.timeline = Timeline(SETTLING, self._pod)
        self.decided: list[str] = []
        """The decisions that were told of, by the pod's name with its node or its refusal."""

    def _pod(self, key: str) -> Pod | None:
        found = self.present.get(key)
        return found if isinstance(found, Pod) else None

    def come(self, obj: Named, at: float) -> None:
        """The object as it is now was told at this time."""
        old = self.known.get(obj.key)
        self.known[obj.key] = obj
        self.timeline.put(WatchEvent(EventType.ADDED if old is None else EventType.MODIFIED, obj, old), at)

    def gone(self, obj: Named, at: float) -> None:
        """The object's deletion was told at this time."""
        self.timeline.put(WatchEvent(EventType.DELETED, obj), at)

    def taken(self, until: float = 100.0) -> list[str]:
        """The names of the objects of the events, in their order; those that are bound with their node."""
        found = []
        while (arrival := self.timeline.take(until)) is not None:
            self._apply(arrival)
            if (told := arrival.recorded) is not None:
                self.decided.append(
                    f"{told.pod.name}>{told.node}" if told.node else f"{told.pod.name}: {told.message}"
                )
            obj = arrival.event.object
            node = f">{obj.node_name}" if isinstance(obj, Pod) and obj.node_name else ""
            found.append(f"{obj.name}{node}")
        return found

    def _apply(self, arrival: Arrival) -> None:
        self.present[arrival.event.object.key] = arrival.event.object


def pod(name: str, priority: int = 0) -> Pod:
    return make_pod(name).priority(priority).build()


def nominated(what: Pod, node: str) -> Pod:
    return attrs.evolve(what, status=attrs.evolve(what.status, nominated_node_name=node))


def with_refusal(what: Pod, message: str) -> Pod:
    condition = PodCondition("PodScheduled", "False", "Unschedulable", message)
    return attrs.evolve(what, status=attrs.evolve(what.status, conditions=(condition,)))


def with_device(what: Pod) -> Pod:
    claims = (PodResourceClaim("d", resource_claim_name="d"),)
    return attrs.evolve(what, spec=attrs.evolve(what.spec, resource_claims=claims))


def bound(what: Pod, node: str = "n") -> Pod:
    return attrs.evolve(what, spec=attrs.evolve(what.spec, node_name=node))


def test_a_binding_goes_before_what_came_while_it_was_written() -> None:
    told = Told()
    told.come(pod("a"), at=1.0)
    told.come(make_node("new").build(), at=1.004)
    told.come(bound(pod("a")), at=1.008)
    assert told.taken() == ["a", "a>n", "new"]


def test_a_binding_goes_before_a_cordon_of_its_node() -> None:
    told = Told()
    told.come(make_node("n").build(), at=0.5)
    told.come(pod("a"), at=1.0)
    told.come(make_node("n").unschedulable().build(), at=1.004)
    told.come(bound(pod("a"), "n"), at=1.008)
    assert told.taken() == ["n", "a", "a>n", "n"]


class TestExpectedBinding:
    """kube-scheduler nominates a pod that it has decided, and binds claims before the pod."""

    def test_a_nominated_pod_counts_as_bound(self) -> None:
        told = Told()
        told.come(pod("a"), at=1.0)
        told.come(nominated(pod("a"), "n"), at=1.008)
        told.come(make_node("new").build(), at=1.1)
        told.come(bound(nominated(pod("a"), "n")), at=21.0)
        assert told.taken() == ["a", "a>n", "new", "a>n"]
        assert told.decided == ["a>n"]

    def test_one_that_was_refused_before(self) -> None:
        told = Told()
        told.come(refused := with_refusal(pod("a"), "no volume"), at=1.0)
        told.come(nominated(refused, "n"), at=2.0)
        assert told.taken() == ["a", "a>n"]
        assert told.decided == ["a>n"]

    def test_preemption_nominates_with_a_refusal(self) -> None:
        told = Told()
        told.come(pod("a"), at=1.0)
        told.come(nominated(with_refusal(pod("a"), "Insufficient cpu"), "n"), at=1.1)
        assert told.taken() == ["a", "a"]
        assert told.decided == ["a: Insufficient cpu"]

    def test_a_pod_that_could_not_be_bound_waits_again(self) -> None:
        told = Told()
        told.come(pod("a"), at=1.0)
        told.come(nominated(pod("a"), "n"), at=1.1)
        told.come(pod("a"), at=2.0)
        told.come(bound(pod("a"), "other"), at=3.0)
        assert told.taken() == ["a", "a>n", "a>n", "a", "a>other"]
        assert told.decided == ["a>n", "a>other"]

    def test_it_is_gone_from_its_node_when_it_is_deleted(self) -> None:
        told = Told()
        told.come(pod("a"), at=1.0)
        told.come(nominated(pod("a"), "n"), at=1.1)
        told.gone(pod("a"), at=2.0)
        assert told.taken() == ["a", "a>n", "a>n"]


def test_of_two_pods_the_one_that_came_first_was_decided_first() -> None:
    told = Told()
    for name in ("waits", "a", "b"):
        told.come(pod(name), at=1.0)
    for name in ("b", "a"):
        told.come(bound(pod(name)), at=1.02)
    assert told.taken() == ["waits", "a", "b", "a>n", "b>n"]


def test_unless_its_priority_is_lower() -> None:
    told = Told()
    for each in (pod("waits"), pod("a"), pod("b", priority=10)):
        told.come(each, at=1.0)
    told.come(bound(pod("b", priority=10)), at=1.02)
    told.come(bound(pod("a")), at=1.03)
    assert told.taken()[-2:] == ["b>n", "a>n"]


class TestRoom:
    """Who waits for room is decided once there is some."""

    refused = with_refusal(with_device(make_pod("a").claim("v").build()), "no room")

    def taken(self, refused: Pod, *freed: WatchEvent) -> list[str]:
        """The order of what happens when the refused pod is bound a moment after these changes."""
        told = Told()
        told.come(make_node("n").build(), at=1.0)
        told.come(refused, at=1.1)
        for event in freed:
            told.timeline.put(event, 2.0)
        told.come(bound(refused), at=2.002)
        return told.taken()[2:]

    def test_a_pod_on_the_node_is_gone(self) -> None:
        victim = bound(pod("victim"))
        assert self.taken(self.refused, WatchEvent(EventType.DELETED, victim)) == ["victim>n", "a>n"]

    def test_a_pod_elsewhere_is_gone(self) -> None:
        other = bound(pod("other"), "m")
        assert self.taken(self.refused, WatchEvent(EventType.DELETED, other)) == ["a>n", "other>m"]

    def test_a_nominated_pod_no_longer_wants_the_node(self) -> None:
        wanted = nominated(pod("b"), "n")
        assert self.taken(self.refused, WatchEvent(EventType.MODIFIED, pod("b"), wanted)) == ["b", "a>n"]

    def test_there_is_a_free_volume(self) -> None:
        volume = make_volume("v").build()
        assert self.taken(self.refused, WatchEvent(EventType.ADDED, volume)) == ["v", "a>n"]

    def test_there_are_more_devices(self) -> None:
        more = ResourceSlice(ObjectMeta(name="s"))
        assert self.taken(self.refused, WatchEvent(EventType.ADDED, more)) == ["s", "a>n"]

    def test_a_device_is_free_again(self) -> None:
        claim = ResourceClaim(ObjectMeta(name="c"))
        taken = attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=AllocationResult()))
        assert self.taken(self.refused, WatchEvent(EventType.MODIFIED, claim, taken)) == ["c", "a>n"]
        assert self.taken(self.refused, WatchEvent(EventType.ADDED, claim)) == ["a>n", "c"]

    def test_volumes_are_nothing_to_a_pod_without_claims(self) -> None:
        refused = with_refusal(pod("a"), "no room")
        assert self.taken(refused, WatchEvent(EventType.ADDED, make_volume("v").build())) == ["a>n", "v"]

    def test_nothing_is_kept_of_nodes_that_are_gone(self) -> None:
        changes, node, left = RoomChanges(), make_node("n").build(), bound(pod("b"))
        changes.note(WatchEvent(EventType.ADDED, node), 1.0)
        before = held(changes)
        changes.note(WatchEvent(EventType.DELETED, left), 2.0)
        assert changes.latest_for(Recorded(pod("a"), "n")) == 2.0
        changes.note(WatchEvent(EventType.DELETED, node), 3.0)
        changes.note(WatchEvent(EventType.DELETED, left), 4.0)
        assert changes.latest_for(Recorded(pod("a"), "n")) == 0.0
        assert held(changes) < before

    @given(st.integers(0, 1 << 32))
    def test_no_node_has_more_pods_than_it_takes(self, seed: int) -> None:
        """One scheduler fills nodes that take one pod each, first come, first served, and tells of it later."""
        random = Random(seed)
        free, waiting = [f"n{number}" for number in range(random.randrange(1, 4))], deque[str]()
        events: list[tuple[float, WatchEvent]] = [
            (0.0, WatchEvent(EventType.ADDED, make_node(name).build())) for name in free
        ]
        now, ends = 1.0, list[tuple[float, str, Pod]]()
        for number in range(random.randrange(30)):
            now += random.choice((0.001, 0.01, 0.1))
            if ends and random.random() < 0.5:
                told, node, gone = ends.pop(0)
                now = max(now, told + 0.001)
                events.append((now, WatchEvent(EventType.DELETED, gone)))
                free.append(node)
            else:
                events.append((now, WatchEvent(EventType.ADDED, pod(f"p{number}"))))
                waiting.append(f"p{number}")
            while free and waiting:
                name, node = waiting.popleft(), free.pop()
                told, decided = now + random.uniform(0.0001, SETTLING - 0.2), bound(pod(name), node)
                events.append((told, WatchEvent(EventType.MODIFIED, decided, pod(name))))
                ends.append((told, node, decided))
        assert _most_at_once(events) <= 1


def _most_at_once(events: list[tuple[float, WatchEvent]]) -> int:
    """How many pods a node has at most, in the order in which the events are taken."""
    told, there, most = Told(), Counter[str](), 0
    for at, event in sorted(events, key=lambda each: each[0]):
        obj = event.object
        if event.type is EventType.DELETED:
            told.gone(obj, at)
        else:
            told.come(obj, at)
    while (arrival := told.timeline.take(math.inf)) is not None:
        told.present[arrival.event.object.key] = obj = arrival.event.object
        if isinstance(obj, Pod) and obj.node_name:
            there[obj.node_name] += -1 if arrival.event.type is EventType.DELETED else 1
            most = max(most, there[obj.node_name])
    return most


def test_who_came_first_holds_up_the_others_until_it_has_room() -> None:
    told = Told()
    told.come(make_node("n").build(), at=0.5)
    for name in ("waits", "a", "b"):
        told.come(pod(name), at=1.0)
    told.gone(bound(pod("victim")), at=1.1)
    told.come(bound(pod("a"), "n"), at=1.102)
    told.come(bound(pod("b"), "m"), at=1.104)
    assert told.taken()[-3:] == ["victim>n", "a>n", "b>m"]


def test_events_of_one_instant_stay_in_their_order() -> None:
    """As in a recording of a simulation, where nothing takes time."""
    told = Told()
    told.come(pod("a"), at=1.0)
    told.come(make_node("new").build(), at=1.0)
    told.come(bound(pod("a"), "new"), at=1.0)
    assert told.taken() == ["a", "new", "a>new"]


def test_what_may_be_overtaken_waits() -> None:
    told = Told()
    told.come(make_node("new").build(), at=1.0)
    assert told.taken(until=1.0 - SETTLING) == []
    assert told.timeline.next_at == 1.0
    assert told.taken(until=1.0) == ["new"]
    assert told.timeline.next_at is None


@given(st.integers(0, 1 << 32))
def test_every_event_is_taken_once_and_those_of_a_pod_in_their_order(seed: int) -> None:
    random, told = Random(seed), Told()
    at, came = 0.0, []
    for _ in range(random.randrange(30)):
        at += random.choice((0.0, 0.003, 0.2))
        name = random.choice("abcd")
        known = told.known.get(f"default/{name}")
        made = bound(pod(name), random.choice("nm")) if known is not None else pod(name)
        told.come(made, at)
        came.append(f"{name}>{made.node_name}" if made.node_name else name)
    taken = told.taken()
    assert sorted(taken) == sorted(came)
    for name in "abcd":
        assert [each for each in taken if each[0] == name] == [each for each in came if each[0] == name]
