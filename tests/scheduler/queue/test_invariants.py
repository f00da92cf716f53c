"""Whatever happens in whatever order: no pod is lost, none is in two places, none is tried too early."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kschedfw import make_pod
from kschedfw.api.pod import Pod
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.metrics import NoMetrics
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.status import Status
from kschedfw.scheduler.queue import Place
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from tests.framework.support import plugin
from tests.scheduler.queue.support import NODE_ADD, NODE_LABEL, Queue, subscriber

pytestmark = pytest.mark.slow

OWN_LABELS = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_LABEL)
NAMES = ("a", "b", "c", "d", "e")
GATES = ("none", "left", "right")
GOOD, BAD = "good node", "bad node"


@attrs.frozen
class Seen:
    """An event that reached a pod: its kind, and its object or the uid of the pod that it is about."""

    event: ClusterEvent
    about: str = ""


def helps(plugin_name: str, seen: Seen, uid: str) -> bool:
    """The model of the plugins below."""
    match plugin_name:
        case "Picky" | "Pending":
            return seen.event == NODE_ADD and seen.about == GOOD
        case "Broken":
            return seen.event == NODE_ADD
        case "Own":
            return seen.event == OWN_LABELS and seen.about == uid
        case "Silent":
            return True
        case "Gate":
            return seen.event in (NODE_LABEL, OWN_LABELS)
    return False


REJECTORS = st.sets(st.sampled_from(["Picky", "Broken", "Own", "Silent", "Never"]), max_size=3)


def picky(_pod: Pod, _old: object, new: object) -> QueueingHint:
    return QueueingHint.QUEUE if new == GOOD else QueueingHint.SKIP


def broken(*_: object) -> QueueingHint:
    raise RuntimeError("a hint must not raise")


def own(pod: Pod, _old: object, new: object) -> QueueingHint:
    return QueueingHint.QUEUE if isinstance(new, Pod) and new.uid == pod.uid else QueueingHint.SKIP


class Gauges(NoMetrics):
    def __init__(self) -> None:
        self.pending: dict[str, int] = dict.fromkeys(
            (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED), 0
        )
        self.rejected: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def pending_pods(self, queue: str, count: int) -> None:
        self.pending[queue] = count

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self.rejected[plugin] += change

    def in_flight_events(self, event: str, change: int) -> None:
        self.kept[event] += change


class QueueMachine(RuleBasedStateMachine):
    """A queue, and what must be true of its pods after everything that was done to it."""

    @initialize(
        pop_from_backoff=st.booleans(),
        initial=st.sampled_from([0.5, 1.0, 3.0]),
        timeout=st.sampled_from([7.5, 300.0]),
    )
    def start(self, pop_from_backoff: bool, initial: float, timeout: float) -> None:
        def pre_enqueue(pod: Pod) -> Status | None:
            return self.gate(pod)

        self.closed_gates: set[str] = set()
        self.gauges = Gauges()
        self.initial = initial
        self.timeout = timeout
        self.queue = Queue(
            subscriber("Picky", NODE_ADD, hint=picky),
            subscriber("Pending", NODE_ADD, hint=picky),
            subscriber("Broken", NODE_ADD, hint=broken),
            subscriber("Own", OWN_LABELS, hint=own),
            subscriber("Never"),
            plugin("Silent", filter=lambda: None),
            plugin(
                "Gate",
                pre_enqueue=pre_enqueue,
                events_to_register=lambda: [NODE_LABEL, OWN_LABELS],
            ),
            clock=FakeClock(1000.25),
            pop_from_backoff=pop_from_backoff,
            initial_backoff=initial,
            unschedulable_timeout=timeout,
            metrics=self.gauges,
        )
        self.live: dict[str, Pod] = {}
        self.flying: dict[str, QueuedPodInfo] = {}
        self.seen: dict[str, list[Seen]] = {}
        self.flushed_in_flight: set[str] = set()
        self.rejectors: dict[str, set[str]] = {}
        self.pending: dict[str, set[str]] = {}
        self.not_before: dict[str, float] = {}
        self.failed: set[str] = set()
        self.failures: dict[str, tuple[int, int]] = {}
        self.deleted_in_flight: dict[str, Pod] = {}
        self.generation = 0

    def gate(self, pod: Pod) -> Status | None:
        return Status.unschedulable("closed") if pod.labels["gate"] in self.closed_gates else None

    # The model

    def uid(self, name: str) -> str | None:
        return next((uid for uid, pod in self.live.items() if pod.name == name), None)

    def make(self, name: str, uid: str | None, priority: int, gate: str, version: int) -> Pod:
        if uid is None:
            self.generation += 1
            uid = f"{name}-{self.generation}"
        return make_pod(name).uid(uid).priority(priority).labels(gate=gate, version=str(version)).build()

    def forget(self, uid: str) -> None:
        for state in (self.live, self.rejectors, self.pending, self.not_before, self.failures):
            state.pop(uid, None)
        self.failed.discard(uid)

    def see_in_flight(self, seen: Seen) -> None:
        for events in self.seen.values():
            events.append(seen)

    def woken_by(self, uid: str, seen: Sequence[Seen]) -> bool:
        """Whether events help the pod, after they were told; checks that it skips backoff if one lets it."""
        pending, refused = self.pending.get(uid, set()), self.rejectors.get(uid, set())
        if any(helps(name, each, uid) for each in seen for name in pending):
            self.not_before.pop(uid, None)
            assert self.queue.place(uid) in (Place.ACTIVE, Place.GATED)
        return any(helps(name, each, uid) for each in seen for name in pending | refused)

    def places_before(self) -> dict[str, Place]:
        return {uid: place for uid in self.live if (place := self.queue.place(uid)) is not None}

    def check_update(self, uid: str, old: Pod, new: Pod, before: Place | None) -> None:
        """What an update of a known pod must have done."""
        seen = (
            Seen(OWN_LABELS, uid)
            if old.labels != new.labels
            else Seen(ClusterEvent(EventResource.POD, ActionType.UPDATE), uid)
        )
        if uid in self.flying:
            self.see_in_flight(seen)
        elif before is Place.UNSCHEDULABLE:
            assert (self.queue.place(uid) is not Place.UNSCHEDULABLE) is self.woken_by(uid, [seen])
        elif before is not Place.GATED:
            assert self.queue.place(uid) is before

    # What is done to the queue

    @rule(
        name=st.sampled_from(NAMES),
        priority=st.integers(0, 2),
        gate=st.sampled_from(GATES),
        version=st.integers(0, 3),
        way=st.sampled_from(["add", "add_if_not_present", "update", "late update"]),
    )
    def bring(self, name: str, priority: int, gate: str, version: int, way: str) -> None:
        """A pod comes, or is seen again in another state."""
        uid = self.uid(name)
        pod = self.make(name, uid, priority, gate, version)
        old = self.live.get(pod.uid)
        before = self.queue.place(pod.uid)
        if way == "add_if_not_present":
            self.queue.add_if_not_present(pod)
            if old is not None:
                return
        elif way == "add" or old is None:
            self.queue.add(pod)
        else:
            self.queue.update(old if way == "update" else None, pod)
        self.live[pod.uid] = pod
        if old is None:
            assert self.queue.place(pod.uid) is (Place.GATED if gate in self.closed_gates else Place.ACTIVE)
        else:
            base = old
            if way != "update" and pod.uid in self.flying:
                base = self.flying[pod.uid].pod
            self.check_update(pod.uid, base, pod, before)

    @rule(name=st.sampled_from(NAMES))
    def replace(self, name: str) -> None:
        """The pod was deleted and made again under its name, and only the outcome was seen."""
        uid = self.uid(name)
        if uid is None:
            return
        old, new = self.live[uid], self.make(name, None, 0, "none", 0)
        self.queue.update(old, new)
        self.forget(uid)
        self.live[new.uid] = new

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        uid = self.uid(name)
        if uid is not None:
            self.queue.delete(self.live[uid])
            self.queue.delete(self.live[uid])
            if uid in self.flying:
                self.deleted_in_flight[uid] = self.live[uid]
            self.forget(uid)

    @precondition(lambda self: self.deleted_in_flight)
    @rule(data=st.data())
    def undelete(self, data: st.DataObject) -> None:
        """The deletion came out of order: the pod is still there."""
        uid = data.draw(st.sampled_from(sorted(self.deleted_in_flight)))
        pod = self.deleted_in_flight.pop(uid)
        if self.uid(pod.name) is None:
            self.queue.add(pod)
            self.live[uid] = pod
            self.failures[uid] = (
                self.flying[uid].consecutive_errors_count,
                self.flying[uid].unschedulable_count,
            )
            if pod is not self.flying[uid].pod:
                self.check_update(uid, self.flying[uid].pod, pod, Place.IN_FLIGHT)

    @rule()
    def pop(self) -> None:
        self.flush()
        before = self.places_before()
        active = self.queue.pods_in(Place.ACTIVE)
        info = self.queue.try_pop()
        if info is None:
            assert Place.ACTIVE not in before.values()
            return
        uid = info.pod.uid
        assert info.pod is self.live[uid]
        if active:
            assert info.pod is active[0]
        else:
            assert before[uid] is Place.BACKOFF
            assert uid not in self.failed
        for state in (self.rejectors, self.pending, self.not_before):
            state.pop(uid, None)
        self.failed.discard(uid)
        self.flying[uid] = info
        self.seen[uid] = []

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), refused=REJECTORS, pending=st.booleans())
    def give_back(self, data: st.DataObject, refused: set[str], pending: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        info, seen = self.flying.pop(uid), self.seen.pop(uid)
        self.deleted_in_flight.pop(uid, None)
        if uid in self.live:
            info.update(self.live[uid])
            # The queue hands on the very object that it was given last.
            self.live[uid] = info.pod
        self.rejectors[uid], self.pending[uid] = set(refused), {"Pending"} if pending else set()
        place = self.queue.refuse(info, *refused, pending=sorted(self.pending[uid]))
        flushed = uid in self.flushed_in_flight
        self.flushed_in_flight.discard(uid)
        if uid not in self.live:
            assert place is None
            self.forget(uid)
            return
        failed = not refused and not pending
        errors, refusals = self.failures.get(uid, (0, 0))
        errors, refusals = (errors + 1, refusals) if failed else (0, refusals + 1)
        self.failures[uid] = errors, refusals
        failures = errors or refusals
        self.not_before[uid] = self.queue.clock.now() + min(10.0, self.initial * 2 ** (failures - 1))
        if failed:
            self.failed.add(uid)
            assert place in (Place.BACKOFF, Place.GATED)
        elif self.woken_by(uid, seen):
            assert place is not Place.UNSCHEDULABLE
        elif not flushed:
            assert place is Place.UNSCHEDULABLE

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        self.queue.done(uid)
        del self.flying[uid], self.seen[uid]
        self.deleted_in_flight.pop(uid, None)
        self.flushed_in_flight.discard(uid)
        self.forget(uid)

    @rule(event=st.sampled_from([NODE_ADD, NODE_LABEL]), about=st.sampled_from([GOOD, BAD]))
    def happen(self, event: ClusterEvent, about: str) -> None:
        before = self.places_before()
        self.queue.tell(event, about)
        seen = Seen(event, about)
        self.see_in_flight(seen)
        for uid, place in before.items():
            if place is Place.UNSCHEDULABLE:
                assert (self.queue.place(uid) is not Place.UNSCHEDULABLE) is self.woken_by(uid, [seen])
            elif place is Place.GATED:
                if self.queue.place(uid) is Place.ACTIVE:
                    # Whoever refused it before it was gated may have let it skip backoff.
                    self.woken_by(uid, [seen])
            elif place is not Place.IN_FLIGHT:
                assert self.queue.place(uid) is place

    @rule(gate=st.sampled_from(GATES[1:]))
    def close_gate(self, gate: str) -> None:
        self.closed_gates.add(gate)

    @rule(gate=st.sampled_from(GATES[1:]))
    def open_gate(self, gate: str) -> None:
        self.closed_gates.discard(gate)
        self.happen(NODE_LABEL, GOOD)

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def activate(self, names: set[str]) -> None:
        pods = [pod for pod in self.live.values() if pod.name in names]
        before = self.places_before()
        self.queue.activate(pods)
        for pod in pods:
            if before[pod.uid] is Place.IN_FLIGHT:
                self.flushed_in_flight.add(pod.uid)
                continue
            assert self.queue.place(pod.uid) in (Place.ACTIVE, Place.GATED)
            if self.queue.place(pod.uid) is Place.ACTIVE:
                self.not_before.pop(pod.uid, None)

    @rule(seconds=st.sampled_from([0.125, 0.75, 1.0, 2.0, 10.0, 301.0]))
    def pass_time(self, seconds: float) -> None:
        self.queue.pass_time(seconds)

    @rule()
    def flush(self) -> None:
        events = len(self.queue.in_flight_events())
        self.queue.flush_backoff_completed()
        self.queue.flush_unschedulable_leftover()
        if len(self.queue.in_flight_events()) > events:
            self.flushed_in_flight |= self.flying.keys()
        now = self.queue.clock.now()
        for pod in self.queue.pods_in(Place.UNSCHEDULABLE):
            info = self.queue.get(pod.uid)
            assert info is not None
            assert now <= info.timestamp + self.timeout
        deadline = self.queue.next_deadline()
        assert deadline is None or deadline > now

    # What is always true

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        everywhere = [
            pod.uid for place in Place if place is not Place.IN_FLIGHT for pod in self.queue.pods_in(place)
        ]
        flying = [pod.uid for pod in self.queue.in_flight_pods()]
        assert len(set(everywhere + flying)) == len(everywhere) + len(flying)
        assert set(flying) == set(self.flying)
        assert set(everywhere) == set(self.live) - set(flying)
        for place in Place:
            assert all(self.queue.place(pod.uid) is place for pod in self.queue.pods_in(place))

    @invariant()
    def the_queue_has_the_newest_state_of_its_pods(self) -> None:
        pods, summary = self.queue.pending_pods()
        assert all(pod is self.live[pod.uid] for pod in pods)
        numbers = [int(part.split(":")[1]) for part in summary.split("; ")]
        assert sum(numbers) == len(pods)

    @invariant()
    def active_pods_are_ordered(self) -> None:
        infos = [self.queue.get(pod.uid) for pod in self.queue.pods_in(Place.ACTIVE)]
        keys = [(-info.pod.priority, info.timestamp, info.sequence) for info in infos if info is not None]
        assert keys == sorted(keys)

    @invariant()
    def no_active_pod_backs_off(self) -> None:
        now = self.queue.clock.now()
        for pod in self.queue.pods_in(Place.ACTIVE):
            assert now > self.not_before.get(pod.uid, -math.inf)

    @invariant()
    def gated_pods_have_a_closed_gate(self) -> None:
        assert all(self.gate(pod) is not None for pod in self.queue.pods_in(Place.GATED))

    @invariant()
    def nothing_is_kept_at_rest(self) -> None:
        if not self.flying:
            assert self.queue.in_flight_events() == []

    @invariant()
    def gauges_are_right(self) -> None:
        gauges, queue = self.gauges, self.queue
        assert gauges.pending == {place: len(queue.pods_in(Place(place))) for place in gauges.pending}
        queued = [queue.get(pod.uid) for place in gauges.pending for pod in queue.pods_in(Place(place))]
        assert gauges.rejected == Counter(
            plugin for info in queued if info for plugin in info.rejector_plugins
        )
        kept = Counter(event.label for event in queue.in_flight_events())
        assert gauges.kept == kept + Counter(PodPopped=len(queue.in_flight_pods()))

    def teardown(self) -> None:
        """With all gates open, every pod is tried again within the timeout and the longest backoff."""
        if not hasattr(self, "queue"):
            return
        for uid in list(self.flying):
            self.queue.refuse(self.flying[uid], "Never")
        self.closed_gates.clear()
        self.queue.tell(NODE_LABEL, GOOD)
        waiting, end = set(self.live), self.queue.clock.now() + self.timeout + 12
        while True:
            while (info := self.queue.try_pop()) is not None:
                waiting.discard(info.pod.uid)
                self.queue.done(info.pod.uid)
            deadline = self.queue.next_deadline()
            if deadline is None or deadline > end:
                break
            self.queue.pass_time(deadline - self.queue.clock.now())
        assert waiting == set()
        assert self.queue.pending_pods()[0] == []
        assert self.queue.in_flight_events() == []


TestInvariants = QueueMachine.TestCase
TestInvariants.settings = settings(max_examples=examples(200), stateful_step_count=50)
