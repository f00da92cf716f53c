"""Pods that are tried again at a time: one that somebody set, or one that came with a refusal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import make_pod
from kschedfw.api.pod import Pod
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.metrics import NoMetrics
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.status import Status
from kschedfw.scheduler.queue import Place
from kschedfw.scheduler.queue.appointments import Appointments
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from tests.framework.support import answering, make_framework, plugin
from tests.scheduler.queue.support import NODE_ADD, Queue, pod, subscriber
from tests.scheduler.stage import Stage, node


class Incoming(NoMetrics):
    def __init__(self) -> None:
        self.events: list[str] = []

    def pod_incoming(self, queue: str, event: str) -> None:
        self.events.append(event)


def test_pods_with_the_same_time_come_in_the_order_in_which_they_got_one() -> None:
    appointments = Appointments()
    for uid in "dbeac":
        appointments.add(uid, 5)
    appointments.cancel("e")
    appointments.add("b", 3)
    assert appointments.pop_due(3) == ["b"]
    appointments.add("e", 5)
    assert appointments.pop_due(5) == ["d", "b", "a", "c", "e"]


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from("abc"), st.integers(0, 20)),
            st.sampled_from("abc"),
            st.integers(0, 20),
        )
    )
)
def test_every_time_comes_once_unless_it_is_cancelled(steps: list[tuple[str, int] | str | int]) -> None:
    """A pair sets a time, a letter cancels a pod's, a number lets the time come."""
    appointments, model = Appointments(), set[tuple[str, float]]()
    for step in steps:
        match step:
            case (uid, time):
                appointments.add(uid, time)
                model.add((uid, time))
            case str(uid):
                appointments.cancel(uid)
                model = {each for each in model if each[0] != uid}
            case int(now):
                due = {each for each in model if each[1] <= now}
                times = {uid: sorted(time for other, time in due if other == uid) for uid, _ in due}
                came = appointments.pop_due(now)
                assert sorted(came) == sorted(uid for uid, _ in due)
                assert [times[uid].pop(0) for uid in came] == sorted(time for _, time in due)
                model -= due
        assert appointments.next() == min((time for _, time in model), default=math.inf)
        assert appointments.next_by_pod() == {
            uid: min(time for other, time in model if other == uid) for uid, _ in model
        }


class TestActivateAt:
    def test_a_refused_pod_is_active_at_that_time(self) -> None:
        queue = Queue(subscriber("A"))
        refused = pod()
        queue.add_refused(refused, "A")
        queue.activate_at(1060.0, [refused])
        assert queue.next_deadline() == 1060.0
        assert queue.wake_times() == {"pod": 1060.0}
        queue.pass_time(59.5)
        assert queue.try_pop() is None
        queue.pass_time(0.5)
        assert queue.pop_names() == ["pod"]
        assert queue.wake_times() == {}

    def test_a_time_that_has_come_is_now(self) -> None:
        queue = Queue(subscriber("A"))
        refused = pod()
        queue.add_refused(refused, "A")
        queue.activate_at(1000.0, [refused])
        assert queue.place("pod") is Place.ACTIVE

    def test_a_pod_in_flight_has_its_time_when_it_comes_back(self) -> None:
        queue = Queue(subscriber("A"))
        queue.add(pod())
        info = queue.try_pop()
        assert info is not None
        queue.activate_at(1060.0, [info.pod])
        assert queue.refuse(info, "A") is Place.UNSCHEDULABLE
        queue.pass_time(60)
        assert queue.pop_names() == ["pod"]

    def test_a_time_that_comes_during_the_flight_counts_as_an_event(self) -> None:
        queue = Queue(subscriber("A"))
        queue.add(pod())
        info = queue.try_pop()
        assert info is not None
        queue.activate_at(1001.0, [info.pod])
        queue.pass_time(1)
        assert queue.try_pop() is None
        assert queue.refuse(info, "A") is Place.BACKOFF

    def test_backoff_does_not_matter(self) -> None:
        queue = Queue(pop_from_backoff=False, initial_backoff=10.0)
        failed = pod()
        assert queue.add_refused(failed) is Place.BACKOFF
        queue.activate_at(1001.0, [failed])
        queue.pass_time(1)
        assert queue.pop_names() == ["pod"]

    @pytest.mark.parametrize("again", [False, True])
    def test_a_pod_that_goes_takes_its_times_along(self, again: bool) -> None:
        queue = Queue(subscriber("A"))
        refused = pod()
        queue.add_refused(refused, "A")
        queue.activate_at(1060.0, [refused])
        queue.delete(refused)
        assert queue.next_deadline() is None
        if again:
            queue.add_refused(refused, "A")
            queue.pass_time(60)
            assert queue.try_pop() is None

    def test_pods_that_are_not_known_are_left_alone(self) -> None:
        queue = Queue()
        queue.activate_at(1060.0, [pod("stranger")])
        assert queue.next_deadline() is None

    @pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
    def test_a_time_is_a_finite_number(self, time: float) -> None:
        with pytest.raises(ValueError, match="time: expected seconds since the epoch, found"):
            Queue().activate_at(time, [])


class TestRetryTimes:
    def refused(self, retry_at: float | None, **options: Any) -> Queue:
        queue = Queue(subscriber("A", NODE_ADD), **options)
        queue.add(pod())
        info = queue.try_pop()
        assert info is not None
        info.retry_at = retry_at
        queue.refuse(info, "A")
        return queue

    def test_a_refused_pod_is_tried_again_at_that_time(self) -> None:
        metrics = Incoming()
        queue = self.refused(1060.0, metrics=metrics)
        assert queue.place("pod") is Place.UNSCHEDULABLE
        assert queue.next_deadline() == 1060.0
        assert queue.wake_times() == {"pod": 1060.0}
        queue.pass_time(60)
        info = queue.try_pop()
        assert info is not None
        assert (info.retry_at, info.was_flushed_from_unschedulable) == (None, False)
        assert metrics.events[-1] == "RetryTime"

    def test_backoff_is_kept(self) -> None:
        queue = self.refused(1000.5, initial_backoff=4.0, pop_from_backoff=False)
        queue.pass_time(0.5)
        assert queue.try_pop() is None
        assert queue.place("pod") is Place.BACKOFF

    def test_a_time_that_has_come_already_means_after_backoff(self) -> None:
        assert self.refused(999.0).place("pod") is Place.BACKOFF

    def test_an_event_may_bring_it_back_before_and_ends_the_wait(self) -> None:
        queue = self.refused(1060.0)
        queue.tell(NODE_ADD)
        info = queue.try_pop()
        assert queue.refuse(info, "A") is Place.UNSCHEDULABLE
        assert queue.wake_times() == {}

    def test_the_flush_comes_all_the_same(self) -> None:
        queue = self.refused(2000.0, unschedulable_timeout=300.0)
        queue.pass_time(301)
        info = queue.try_pop()
        assert info is not None
        assert info.was_flushed_from_unschedulable

    def test_without_a_flush_only_the_time_brings_it_back(self) -> None:
        queue = self.refused(1e6, unschedulable_timeout=math.inf)
        assert queue.next_deadline() == 1e6
        assert self.refused(None, unschedulable_timeout=math.inf).next_deadline() is None

    def test_a_gate_is_asked_again_at_that_time(self) -> None:
        times = iter([1060.0, 1060.0, None])

        def pre_enqueue() -> Status | None:
            time = next(times)
            return None if time is None else Status.unresolvable("closed", retry_at=time)

        queue = Queue(plugin("Gate", pre_enqueue=pre_enqueue, events_to_register=answering([])))
        queue.add(pod())
        assert queue.place("pod") is Place.GATED
        assert queue.next_deadline() == 1060.0
        queue.pass_time(60)
        assert queue.try_pop() is None
        assert queue.next_deadline() == 1061.0, "not over and over at the time that has come"
        queue.pass_time(1)
        assert queue.pop_names() == ["pod"]


class TestHandle:
    """What plugins are given reaches the queue."""

    class Caller(Plugin):
        name = "Caller"

        @hookimpl
        def filter(self, pod: Pod) -> Status | None:
            present = self.handle.cluster.get(Pod, "default/caller")
            here = present is not None and bool(present.node_name)
            return None if pod.name == "caller" or here else Status.unresolvable("not called")

        @hookimpl
        def post_bind(self, pod: Pod) -> None:
            others = [each for each in self.handle.cluster.list(Pod) if each.name != pod.name]
            self.handle.activate([each for each in others if each.name == "now"])
            self.handle.activate_at(self.handle.clock.now() + 5.0, others)

        @hookimpl
        def events_to_register(self) -> Sequence[ClusterEvent]:
            return ()

    def test_a_plugin_calls_in_other_pods_now_and_later(self) -> None:
        stage = Stage(self.Caller, nodes=[node()])
        stage.run(make_pod("now").build(), make_pod("later").build())
        assert (stage.place("now"), stage.place("later")) == (Place.UNSCHEDULABLE, Place.UNSCHEDULABLE)
        stage.run(make_pod("caller").build())
        assert (stage.node_of("now"), stage.node_of("later")) == ("n", "")
        stage.run(after=4.0)
        assert stage.node_of("later") == ""
        stage.run(after=1.0)
        assert stage.node_of("later") == "n"
        assert stage.scheduler.queue.wake_times() == {}, "whoever is bound needs no waking"

    def test_without_a_queue_there_is_nobody_to_call(self) -> None:
        handle = make_framework(self.Caller).handle
        handle.activate([pod()])
        handle.activate_at(9.0, [pod()])

    @pytest.mark.parametrize("hook", ["pre_filter", "filter", "reserve", "permit"])
    def test_a_refusal_anywhere_may_name_a_time(self, hook: str) -> None:
        clock: list[FakeClock] = []

        def closed() -> Status | None:
            return Status.unschedulable("closed", retry_at=1060.0) if clock[0].now() < 1060.0 else None

        stage = Stage(plugin("Door", **{hook: closed, "events_to_register": answering([])}), nodes=[node()])
        clock.append(stage.clock)
        stage.run(make_pod().build())
        assert stage.place() is Place.UNSCHEDULABLE
        stage.run(after=59.0)
        assert stage.node_of() == ""
        stage.run(after=1.0)
        assert stage.node_of() == "n"

    def test_of_several_times_the_earliest_counts(self) -> None:
        def closed(node_info: NodeInfo) -> Status:
            return Status.unresolvable("closed", retry_at=1100.0 if node_info.name == "a" else 1050.0)

        door = plugin("Door", filter=closed, events_to_register=answering([]))
        stage = Stage(door, nodes=[node("a"), node("b"), node("c")])
        stage.run(make_pod().build())
        assert list(stage.scheduler.queue.wake_times().values()) == [1050.0]


@pytest.mark.parametrize("make", [Status.unschedulable, Status.unresolvable, Status.pending])
def test_refusals_may_carry_a_time(make: Any) -> None:
    status = make("closed", retry_at=9)
    assert (status.message, status.retry_at, status.with_plugin("A").retry_at) == ("closed", 9, 9)
    assert make("closed").retry_at is None
    for wrong in (math.nan, math.inf, "09:00"):
        with pytest.raises(ValueError, match="retry_at: expected seconds since the epoch, found"):
            make("closed", retry_at=wrong)
