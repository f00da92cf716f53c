"""How pods move through the scheduling queue."""

from __future__ import annotations

import attrs
import pytest

from kschedfw import make_pod
from kschedfw.api.pod import Pod
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder, NoMetrics
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.plugins.priority_sort import PrioritySort
from kschedfw.scheduler.queue import Place, PodAlreadyQueuedError, SchedulingQueue
from kschedfw.testing import FakeClock
from tests.framework.support import make_framework, plugin
from tests.scheduler.queue.support import NODE_ADD, NODE_LABEL, PROFILE, Gate, Queue, pod, subscriber

POD_LABEL = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)


class Recorder(NoMetrics):
    """Keeps the queue's metrics."""

    def __init__(self) -> None:
        self.incoming: list[tuple[str, str]] = []
        self.pending: dict[str, int] = {}

    def pod_incoming(self, queue: str, event: str) -> None:
        self.incoming.append((queue, event))

    def pending_pods(self, queue: str, count: int) -> None:
        self.pending[queue] = count


class TestOrder:
    def test_higher_priority_first_and_first_come_first_served_among_equals(self) -> None:
        queue = Queue()
        for name, priority in [("low", 1), ("a", 5), ("b", 5), ("high", 9), ("c", 5)]:
            queue.add(pod(name, priority=priority))
        assert queue.names(Place.ACTIVE) == ["high", "a", "b", "c", "low"]
        assert queue.pop_names() == ["high", "a", "b", "c", "low"]

    def test_a_pod_that_comes_back_stands_behind_its_equals(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD), max_backoff=0)
        queue.add_refused(pod("again"), "A")
        queue.add(pod("new"))
        queue.tell(NODE_ADD)
        assert queue.names(Place.ACTIVE) == ["again", "new"]
        queue.refuse(queue.try_pop(), "A")
        queue.tell(NODE_ADD)
        assert queue.names(Place.ACTIVE) == ["new", "again"]

    def test_a_changed_priority_changes_the_order(self) -> None:
        queue = Queue()
        low = pod("low", priority=1)
        queue.add(low)
        queue.add(pod("middle", priority=5))
        queue.update(low, pod("low", priority=9))
        assert queue.pop_names() == ["low", "middle"]

    def test_pods_that_a_plugin_fails_to_compare_come_in_the_order_of_their_arrival(self) -> None:
        def broken(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
            if first.pod.priority == second.pod.priority:
                raise LookupError("no such thing")
            return first.pod.priority > second.pod.priority

        sorting = make_framework(plugin("Broken", queue_sort=broken), clock=FakeClock(1000))
        queue = SchedulingQueue({PROFILE: sorting}, clock=FakeClock(1000))
        queue.add(pod("low"))
        for name in "dbcaef":
            queue.add(pod(name, priority=9))
        assert [info.pod.name for _ in range(7) if (info := queue.try_pop())] == [*"dbcaef", "low"]

    def test_a_queue_needs_a_profile(self) -> None:
        with pytest.raises(ProfileError, match="profiles: expected at least one, found none"):
            SchedulingQueue({})


class TestAttempts:
    def test_a_popped_pod_is_in_flight_until_it_is_done(self) -> None:
        queue = Queue()
        queue.add(pod("a"))
        info = queue.try_pop()
        assert info is not None
        assert info.attempts == 1
        assert queue.place("a") is Place.IN_FLIGHT
        assert queue.in_flight_pods() == [info.pod]
        assert queue.try_pop() is None
        queue.done("a")
        queue.done("a")
        assert queue.place("a") is None
        assert queue.get("a") is None

    def test_history_is_kept(self) -> None:
        queue = Queue()
        queue.add(pod("a"))
        queue.pass_time(3)
        info = queue.try_pop()
        assert info is not None
        assert (info.timestamp, info.initial_attempt_timestamp) == (1000, 1000)
        queue.refuse(info)
        assert (info.timestamp, info.consecutive_errors_count, info.unschedulable_count) == (1003, 1, 0)
        queue.pass_time(2)
        assert queue.try_pop() is info
        queue.refuse(info, "A")
        assert (info.attempts, info.consecutive_errors_count, info.unschedulable_count) == (2, 0, 1)
        assert info.initial_attempt_timestamp == 1000

    def test_a_new_attempt_forgets_who_refused_the_last(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD))
        queue.add_refused(pod("a"), "A", pending=["B"])
        queue.tell(NODE_ADD)
        info = queue.try_pop()
        assert info is not None
        assert info.rejector_plugins == set()

    def test_a_pod_that_is_in_the_queue_cannot_come_back(self) -> None:
        queue = Queue()
        queue.add(pod("a"))
        with pytest.raises(PodAlreadyQueuedError, match="default/a is already present in the active queue"):
            queue.add_unschedulable_if_not_present(QueuedPodInfo(PodInfo.of(pod("a"))))

    def test_a_pod_that_nobody_popped_is_tried_after_backoff(self) -> None:
        queue = Queue(subscriber("A"))
        assert queue.refuse(QueuedPodInfo(PodInfo.of(pod("a"))), "A") is Place.BACKOFF


class TestBackoff:
    def test_an_error_is_retried_after_backoff_whatever_happens(self) -> None:
        queue = Queue()
        assert queue.add_refused(pod("a")) is Place.BACKOFF
        queue.pass_time(1)
        assert queue.try_pop() is None
        queue.pass_time(1)
        assert queue.pop_names() == ["a"]

    def test_with_no_other_pod_active_a_refused_one_is_popped_early(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD))
        for name, priority in [("low", 0), ("high", 1)]:
            queue.add_refused(pod(name, priority=priority), "A")
        queue.add(pod("new"))
        queue.tell(NODE_ADD)
        assert queue.names(Place.BACKOFF) == ["high", "low"]
        for name in ("new", "high", "low"):
            following, popped = queue.next_pod(), queue.try_pop()
            assert following is not None
            assert popped is not None
            assert following.name == popped.pod.name == name
        assert queue.next_pod() is None

    def test_unless_that_is_switched_off(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD), pop_from_backoff=False)
        queue.add_refused(pod("a"), "A")
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.BACKOFF
        queue.pass_time(1)
        assert queue.try_pop() is None
        queue.pass_time(0.001)
        assert queue.pop_names() == ["a"]

    def test_backoff_that_ended_while_the_pod_was_unschedulable_is_over(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD))
        queue.add_refused(pod("a"), "A")
        queue.pass_time(2)
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.ACTIVE

    def test_flushing_makes_pods_active(self) -> None:
        queue = Queue()
        queue.add_refused(pod("a"))
        queue.flush_backoff_completed()
        assert queue.place("a") is Place.BACKOFF
        queue.pass_time(2)
        queue.flush_backoff_completed()
        assert queue.place("a") is Place.ACTIVE

    def test_an_updated_pod_goes_on_backing_off(self) -> None:
        queue = Queue()
        old, new = pod("a"), pod("a", priority=1)
        queue.add_refused(old)
        queue.update(old, new)
        assert queue.pods_in(Place.BACKOFF) == [new]


class TestEvents:
    def test_a_refused_pod_waits_for_an_event_that_its_plugin_subscribed_to(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD), subscriber("B", NODE_LABEL))
        assert queue.add_refused(pod("a"), "A") is Place.UNSCHEDULABLE
        queue.tell(NODE_LABEL)
        assert queue.place("a") is Place.UNSCHEDULABLE
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.BACKOFF

    def test_a_plugin_that_subscribed_to_nothing_is_helped_by_any_event(self) -> None:
        queue = Queue(plugin("Silent", filter=lambda: None))
        queue.add_refused(pod("a"), "Silent")
        queue.tell(NODE_LABEL)
        assert queue.place("a") is Place.BACKOFF

    def test_a_plugin_that_says_that_nothing_helps_is_helped_by_none(self) -> None:
        queue = Queue(subscriber("Never"))
        queue.add_refused(pod("a"), "Never")
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.UNSCHEDULABLE

    def test_pending_plugins_skip_backoff(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD), subscriber("P", NODE_ADD))
        queue.add_refused(pod("a"), "A", pending=["P"])
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.ACTIVE

    def test_but_not_if_only_another_plugin_is_helped(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD), subscriber("P", NODE_LABEL))
        queue.add_refused(pod("a"), "A", pending=["P"])
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.BACKOFF

    def test_a_pre_check_passes_pods_over(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD))
        for name in ("a", "b"):
            queue.add_refused(pod(name), "A")
        queue.move_all_to_active_or_backoff(NODE_ADD, None, None, lambda each: each.name == "b")
        assert queue.names(Place.UNSCHEDULABLE) == ["a"]
        assert queue.names(Place.BACKOFF) == ["b"]

    def test_bound_pods_that_come_and_change_are_events(self) -> None:
        added = ClusterEvent(EventResource.POD, ActionType.ADD)
        queue = Queue(subscriber("Add", added), subscriber("Label", POD_LABEL))
        queue.add_refused(pod("a"), "Add")
        queue.add_refused(pod("b"), "Label")
        bound = pod("c").bound_to("n")
        queue.assigned_pod_added(bound)
        assert queue.place("a") is Place.BACKOFF
        assert queue.place("b") is Place.UNSCHEDULABLE
        changed = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
        queue.assigned_pod_updated(bound, bound, changed)
        assert queue.place("b") is Place.BACKOFF

    def test_a_hint_that_calls_the_queue_back_does_no_harm(self) -> None:
        pods = [pod("a"), pod("b")]

        def hint(_pod: Pod, _old: object, _new: object) -> QueueingHint:
            queue.activate(pods)
            return QueueingHint.QUEUE

        queue = Queue(subscriber("A", NODE_ADD, hint=hint))
        for each in pods:
            queue.add_refused(each, "A")
        queue.tell(NODE_ADD)
        assert queue.names(Place.ACTIVE) == ["a", "b"]

    @pytest.mark.parametrize("answer", QueueingHint)
    def test_a_pod_that_a_hint_adds_while_it_comes_back_is_queued_once(self, answer: QueueingHint) -> None:
        old, new = pod("a"), pod("a", priority=7)

        def hint(_pod: Pod, _old: object, _new: object) -> QueueingHint:
            queue.update(old, new)
            return answer

        queue = Queue(subscriber("A", NODE_ADD, hint=hint))
        queue.add(old)
        info = queue.try_pop()
        queue.tell(NODE_ADD)
        assert queue.refuse(info, "A") is Place.ACTIVE
        popped = queue.try_pop()
        assert popped is not None
        assert popped.pod is new
        queue.clock.advance(1000)
        assert queue.try_pop() is None

    def test_pods_after_one_that_a_hint_has_moved_are_judged_all_the_same(self) -> None:
        pods = [pod("a"), pod("b"), pod("c")]

        def hint(_pod: Pod, _old: object, _new: object) -> QueueingHint:
            queue.activate([pods[1]])
            return QueueingHint.QUEUE

        queue = Queue(subscriber("A", NODE_ADD, hint=hint))
        for each in pods:
            queue.add_refused(each, "A")
        queue.tell(NODE_ADD)
        assert queue.names(Place.ACTIVE) == ["b"]
        assert sorted(queue.names(Place.BACKOFF)) == ["a", "c"]

    def test_pods_of_an_unknown_profile_are_tried_on_any_event(self) -> None:
        queue = Queue(subscriber("A"))
        stranger = make_pod("a").uid("a").scheduler_name("somebody-else").build()
        assert queue.add_refused(stranger, "A") is Place.UNSCHEDULABLE
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.BACKOFF

    def test_every_profile_has_its_own_subscriptions(self) -> None:
        clock = FakeClock(1000)
        profiles = {
            "one": make_framework(PrioritySort, subscriber("A", NODE_ADD), clock=clock),
            "two": make_framework(PrioritySort, subscriber("A", NODE_LABEL), clock=clock),
        }
        queue = SchedulingQueue(profiles, clock=clock)
        for name in profiles:
            queue.add(make_pod(name).uid(name).scheduler_name(name).build())
            info = queue.try_pop()
            assert info is not None
            info.unschedulable_plugins = {"A"}
            queue.add_unschedulable_if_not_present(info)
        queue.move_all_to_active_or_backoff(NODE_LABEL, None, None)
        assert (queue.place("one"), queue.place("two")) == (Place.UNSCHEDULABLE, Place.BACKOFF)


class TestEventsInFlight:
    def test_what_happened_meanwhile_counts_when_the_pod_comes_back(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD))
        queue.add(pod("a"))
        info = queue.try_pop()
        queue.tell(NODE_LABEL)
        queue.tell(NODE_ADD)
        assert queue.in_flight_events() == [NODE_LABEL, NODE_ADD]
        assert queue.refuse(info, "A") is Place.BACKOFF
        assert queue.in_flight_events() == []

    def test_what_happened_before_does_not(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD))
        queue.add(pod("b"))
        queue.try_pop()
        queue.tell(NODE_ADD)
        assert queue.add_refused(pod("a"), "A") is Place.UNSCHEDULABLE

    def test_a_pending_plugin_has_the_last_word(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD), subscriber("P", NODE_LABEL))
        queue.add(pod("a"))
        info = queue.try_pop()
        queue.tell(NODE_ADD)
        queue.tell(NODE_LABEL)
        assert queue.refuse(info, "A", pending=["P"]) is Place.ACTIVE

    def test_without_it_the_pod_backs_off(self) -> None:
        queue = Queue(subscriber("A", NODE_ADD), subscriber("P"))
        queue.add(pod("a"))
        info = queue.try_pop()
        queue.tell(NODE_ADD)
        queue.tell(NODE_LABEL)
        assert queue.refuse(info, "A", pending=["P"]) is Place.BACKOFF

    def test_an_update_of_the_pod_itself_is_such_an_event(self) -> None:
        queue = Queue(subscriber("A", POD_LABEL))
        queue.add(pod("a"))
        info = queue.try_pop()
        assert info is not None
        queue.update(info.pod, make_pod("a").uid("a").labels(x="y").build())
        assert queue.place("a") is Place.IN_FLIGHT
        assert queue.refuse(info, "A") is Place.BACKOFF

    def test_a_pod_that_is_deleted_in_flight_does_not_come_back(self) -> None:
        queue = Queue()
        queue.add(pod("a"))
        info = queue.try_pop()
        queue.delete(pod("a"))
        assert queue.refuse(info, "A") is None
        assert queue.pending_pods()[0] == []

    def test_unless_it_is_there_again(self) -> None:
        queue = Queue()
        queue.add(pod("a"))
        info = queue.try_pop()
        queue.delete(pod("a"))
        queue.add(pod("a"))
        assert queue.refuse(info) is Place.BACKOFF

    def test_a_pod_is_not_added_twice(self) -> None:
        queue = Queue(subscriber("A"))
        queue.add(pod("a"))
        queue.add_if_not_present(pod("a"))
        queue.add(pod("a"))
        info = queue.try_pop()
        queue.add(pod("a"))
        queue.add_if_not_present(pod("a"))
        assert queue.try_pop() is None
        assert queue.refuse(info, "A") is Place.UNSCHEDULABLE
        queue.add_if_not_present(pod("a"))
        assert queue.place("a") is Place.UNSCHEDULABLE
        queue.add_if_not_present(pod("b"))
        assert queue.place("b") is Place.ACTIVE


class TestGates:
    def test_a_gated_pod_waits_until_its_gates_are_gone(self) -> None:
        queue = Queue()
        gated = make_pod("a").uid("a").scheduling_gate("x", "y").build()
        queue.add(gated)
        assert queue.place("a") is Place.GATED
        assert queue.names(Place.GATED) == ["a"]
        assert queue.names(Place.UNSCHEDULABLE) == []
        info = queue.get("a")
        assert info is not None
        assert (info.gating_plugin, info.unschedulable_plugins) == ("SchedulingGates", {"SchedulingGates"})
        assert info.initial_attempt_timestamp is None
        fewer = make_pod("a").uid("a").scheduling_gate("y").build()
        queue.update(gated, fewer)
        assert queue.place("a") is Place.GATED
        queue.pass_time(5)
        queue.update(fewer, pod("a"))
        assert queue.place("a") is Place.ACTIVE
        assert info.initial_attempt_timestamp == 1005

    def test_only_events_that_its_gating_plugin_subscribed_to_open_a_gate(self) -> None:
        gate = Gate()
        queue = Queue(gate.plugin(), subscriber("A", NODE_LABEL))
        queue.add(pod("a"))
        gate.open, gate.asked = True, 0
        queue.tell(NODE_LABEL)
        assert (queue.place("a"), gate.asked) == (Place.GATED, 0)
        queue.tell(NODE_ADD)
        assert (queue.place("a"), gate.asked) == (Place.ACTIVE, 1)

    def test_a_refused_pod_may_be_gated_on_its_way_back(self) -> None:
        gate = Gate(open=True)
        queue = Queue(gate.plugin(), subscriber("A", NODE_LABEL))
        queue.add_refused(pod("a"), "A")
        gate.open = False
        queue.tell(NODE_LABEL)
        assert queue.place("a") is Place.GATED
        # Now it is the gate that counts, not the plugin that refused it.
        gate.open = True
        queue.tell(NODE_LABEL)
        assert queue.place("a") is Place.GATED
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.BACKOFF

    def test_a_gate_that_fails_is_closed(self) -> None:
        def broken() -> None:
            raise OSError("no answer")

        queue = Queue(plugin("Broken", pre_enqueue=broken))
        queue.add(pod("a"))
        assert queue.place("a") is Place.GATED

    def test_who_backs_off_has_passed_the_gates(self) -> None:
        gate = Gate(open=True)
        queue = Queue(gate.plugin())
        queue.add_refused(pod("a"))
        gate.open = False
        queue.pass_time(2)
        assert queue.pop_names() == ["a"]

    def test_without_popping_from_backoff_gates_are_asked_afterwards(self) -> None:
        gate = Gate(open=True)
        queue = Queue(gate.plugin(), pop_from_backoff=False)
        queue.add_refused(pod("a"))
        gate.open = False
        queue.pass_time(2)
        assert queue.try_pop() is None
        assert queue.place("a") is Place.GATED

    def test_an_error_and_a_gate_make_a_gated_pod(self) -> None:
        gate = Gate(open=True)
        queue = Queue(gate.plugin())
        queue.add(pod("a"))
        info = queue.try_pop()
        gate.open = False
        assert queue.refuse(info) is Place.GATED
        # Behind the gate the backoff of the error is still to come, in full.
        gate.open = True
        queue.tell(NODE_ADD)
        assert queue.place("a") is Place.BACKOFF
        assert queue.try_pop() is None
        queue.pass_time(2)
        assert queue.pop_names() == ["a"]

    def test_a_gated_member_isnt_taken_along_with_its_group(self) -> None:
        gate = Gate()
        queue = Queue(gate.plugin(), subscriber("A", NODE_ADD))
        members = [pod("gated"), pod("free")]
        queue.add(members[0])
        gate.open = True
        queue.add_refused(members[1], "A")
        gate.open = False
        assert queue.take_members([members[0]]) == []
        assert queue.place("gated") is Place.GATED
        gate.open = True
        assert [info.pod.name for info in queue.take_members(members)] == ["gated", "free"]


class TestLeftovers:
    def test_a_pod_that_waited_for_five_minutes_is_tried_again(self) -> None:
        queue = Queue(subscriber("Never"))
        queue.add_refused(pod("a"), "Never")
        queue.pass_time(300)
        assert queue.try_pop() is None
        queue.pass_time(0.1)
        info = queue.try_pop()
        assert info is not None
        assert info.was_flushed_from_unschedulable
        queue.refuse(info, "Never")
        assert not info.was_flushed_from_unschedulable

    def test_gates_are_looked_at_again_once_in_that_time(self) -> None:
        gate = Gate()
        queue = Queue(gate.plugin())
        queue.add(pod("a"))
        gate.asked = 0
        for _ in range(3):
            queue.pass_time(301)
            assert queue.try_pop() is None
            assert queue.try_pop() is None
        assert gate.asked == 3
        info = queue.get("a")
        assert info is not None
        assert not info.was_flushed_from_unschedulable
        gate.open = True
        queue.pass_time(301)
        assert queue.pop_names() == ["a"]

    def test_only_those_are_flushed_that_waited_long_enough(self) -> None:
        queue = Queue(subscriber("Never"), unschedulable_timeout=10)
        queue.add_refused(pod("early"), "Never")
        queue.pass_time(5)
        queue.add_refused(pod("late"), "Never")
        queue.flush_unschedulable_leftover()
        queue.pass_time(6)
        queue.flush_unschedulable_leftover()
        assert queue.names(Place.ACTIVE) == ["early"]
        assert queue.names(Place.UNSCHEDULABLE) == ["late"]

    def test_the_queue_knows_when_time_changes_something(self) -> None:
        queue = Queue(subscriber("Never"))
        assert queue.next_deadline() is None
        queue.add_refused(pod("a"), "Never")
        deadline = queue.next_deadline()
        assert deadline == pytest.approx(1300)
        queue.add_refused(pod("b"))
        assert queue.next_deadline() == 1002
        queue.pass_time(2)
        queue.pop_names()
        assert queue.next_deadline() == deadline
        assert deadline is not None
        queue.pass_time(deadline - queue.clock.now())
        assert queue.pop_names() == ["a"]
        assert queue.next_deadline() is None


class TestActivate:
    def test_pods_become_active_whatever_they_wait_for(self) -> None:
        queue = Queue(subscriber("Never"))
        queue.add_refused(pod("refused"), "Never")
        queue.add_refused(pod("failed"))
        queue.activate([pod("failed"), pod("refused"), pod("unknown")])
        assert queue.names(Place.ACTIVE) == ["refused", "failed"]
        assert queue.place("unknown") is None

    def test_but_not_past_a_gate(self) -> None:
        gate = Gate()
        queue = Queue(gate.plugin())
        queue.add(pod("a"))
        queue.activate([pod("a")])
        assert queue.place("a") is Place.GATED
        gate.open = True
        queue.activate([pod("a")])
        assert queue.place("a") is Place.ACTIVE

    def test_in_flight_it_counts_for_that_pod_alone(self) -> None:
        queue = Queue(subscriber("Never"))
        for name in ("a", "b"):
            queue.add(pod(name))
        a, b = queue.try_pop(), queue.try_pop()
        queue.activate([pod("a")])
        assert queue.refuse(b, "Never") is Place.UNSCHEDULABLE
        assert queue.refuse(a, "Never") is Place.BACKOFF


class TestUpdates:
    def test_an_update_may_help_a_refused_pod(self) -> None:
        queue = Queue(subscriber("A", POD_LABEL), subscriber("B", NODE_ADD))
        for name in ("a", "b"):
            queue.add_refused(pod(name), name.upper())
        labelled = {name: make_pod(name).uid(name).labels(x="y").build() for name in ("a", "b")}
        for name, new in labelled.items():
            queue.update(pod(name), new)
        assert queue.place("a") is Place.BACKOFF
        assert queue.place("b") is Place.UNSCHEDULABLE
        assert queue.pods_in(Place.UNSCHEDULABLE) == [labelled["b"]]

    def test_one_update_may_be_several_events(self) -> None:
        tolerated = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        queue = Queue(subscriber("A", tolerated))
        queue.add_refused(pod("a"), "A")
        queue.update(pod("a"), make_pod("a").uid("a").labels(x="y").toleration("t").build())
        assert queue.place("a") is Place.BACKOFF

    def test_an_unknown_pod_is_added(self) -> None:
        queue = Queue()
        queue.update(pod("a"), pod("a"))
        assert queue.place("a") is Place.ACTIVE

    def test_a_pod_that_replaces_another_of_its_name_is_a_new_pod(self) -> None:
        queue = Queue(subscriber("Never"))
        queue.add_refused(pod("a"), "Never")
        queue.update(pod("a"), make_pod("a").uid("other").build())
        assert queue.place("a") is None
        assert queue.place("other") is Place.ACTIVE

    def test_what_is_known_already_is_no_news(self) -> None:
        def at_version(version: str) -> Pod:
            plain = pod("a")
            return attrs.evolve(plain, metadata=attrs.evolve(plain.metadata, resource_version=version))

        queue = Queue(subscriber("A", ClusterEvent(EventResource.POD, ActionType.UPDATE)))
        queue.add_refused(at_version("1"), "A")
        queue.add(at_version("1"))
        assert queue.place("a") is Place.UNSCHEDULABLE
        queue.add(at_version("2"))
        assert queue.place("a") is Place.BACKOFF

    @pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED])
    def test_a_deleted_pod_is_forgotten(self, place: Place) -> None:
        queue = Queue(subscriber("Never"))
        match place:
            case Place.ACTIVE:
                queue.add(pod("a"))
            case Place.GATED:
                queue.add(make_pod("a").uid("a").scheduling_gate("x").build())
            case _:
                queue.add_refused(pod("a"), *(["Never"] if place is Place.UNSCHEDULABLE else []))
        assert queue.place("a") is place
        queue.delete(pod("a"))
        queue.delete(pod("a"))
        assert queue.place("a") is None
        assert queue.pending_pods()[0] == []


class TestNominations:
    def test_the_status_of_new_pods_is_believed_also_behind_a_gate(self) -> None:
        queue = Queue()
        queue.add(make_pod("a").uid("a").nominated_node("n").scheduling_gate("x").build())
        assert [info.pod.name for info in queue.nominated_pods_for_node("n")] == ["a"]

    @pytest.mark.parametrize("wait", ["active", "backoff", "unschedulable"])
    def test_updates_and_deletions_reach_the_nominator(self, wait: str) -> None:
        queue = Queue(subscriber("Never"))
        if wait == "active":
            queue.add(pod("a"))
        else:
            queue.add_refused(pod("a"), *(["Never"] if wait == "unschedulable" else []))
        nominated = make_pod("a").uid("a").nominated_node("n").build()
        queue.update(pod("a"), nominated)
        assert [info.pod for info in queue.nominated_pods_for_node("n")] == [nominated]
        queue.delete(nominated)
        assert queue.nominated_pods_for_node("n") == ()


class TestReports:
    def test_pending_pods_come_with_kube_schedulers_summary(self) -> None:
        queue = self.busy_queue()
        pods, summary = queue.pending_pods()
        assert [each.name for each in pods] == ["active", "failed", "refused", "gated"]
        assert summary == "activeQ:1; backoffQ:1; unschedulableEntities:2"

    def test_metrics_tell_where_pods_are_and_why_they_came_there(self) -> None:
        metrics = Recorder()
        queue = self.busy_queue(metrics)
        assert metrics.pending == {"active": 1, "backoff": 1, "unschedulable": 1, "gated": 1}
        assert metrics.incoming == [
            ("active", "UnschedulablePodAdd"),
            ("unschedulable", "ScheduleAttemptFailure"),
            ("active", "UnschedulablePodAdd"),
            ("backoff", "ScheduleAttemptFailure"),
            ("unschedulable", "UnschedulablePodAdd"),
            ("active", "UnschedulablePodAdd"),
        ]
        metrics.incoming.clear()
        queue.pass_time(2)
        queue.flush_backoff_completed()
        queue.activate([pod("refused")])
        assert metrics.incoming == [("active", "BackoffComplete"), ("active", "ForceActivate")]
        assert len(queue.pop_names()) == 3
        assert metrics.pending == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}

    def test_a_pod_popped_from_backoff_was_active_for_a_moment(self) -> None:
        metrics = Recorder()
        queue = Queue(subscriber("A", NODE_ADD), metrics=metrics)
        queue.add_refused(pod("a"), "A")
        queue.tell(NODE_ADD)
        queue.pop_names()
        assert metrics.incoming[-2:] == [("backoff", "NodeAdd"), ("active", "PopFromBackoffQ")]

    @staticmethod
    def busy_queue(metrics: MetricsRecorder = NO_METRICS) -> Queue:
        queue = Queue(subscriber("Never"), metrics=metrics)
        queue.add_refused(pod("refused"), "Never")
        queue.add_refused(pod("failed"))
        queue.add(make_pod("gated").uid("gated").scheduling_gate("x").build())
        queue.add(pod("active"))
        return queue
