"""The queue without priorities."""

from __future__ import annotations

import pytest

from kschedfw.framework.pod_info import PodInfo, QueuedPodInfo
from kschedfw.scheduler.queue import FifoQueue, Place, PodAlreadyQueuedError, PodQueue
from kschedfw.testing import FakeClock, make_pod
from tests.scheduler.queue.support import NODE_ADD, pod


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000)


@pytest.fixture
def queue(clock: FakeClock) -> FifoQueue:
    return FifoQueue(clock=clock)


def pop_names(queue: PodQueue) -> list[str]:
    names = []
    while (info := queue.try_pop()) is not None:
        names.append(info.pod.name)
    return names


def fail_next(queue: PodQueue) -> QueuedPodInfo:
    info = queue.try_pop()
    assert info is not None
    queue.add_unschedulable_if_not_present(info)
    return info


def test_pods_come_out_as_they_came_in_whatever_their_priority(queue: FifoQueue) -> None:
    for name, priority in [("a", 1), ("b", 9), ("c", 5)]:
        queue.add(pod(name, priority=priority))
    assert pop_names(queue) == ["a", "b", "c"]


def test_a_pod_that_failed_goes_to_the_end_after_backoff(queue: FifoQueue, clock: FakeClock) -> None:
    for name in ("a", "b"):
        queue.add(pod(name))
    fail_next(queue)
    assert queue.place("a") is Place.BACKOFF
    assert queue.next_deadline() == pytest.approx(1001)
    queue.add(pod("c"))
    clock.advance(1.1)
    queue.flush_backoff_completed()
    assert pop_names(queue) == ["b", "c", "a"]


def test_backoff_doubles_up_to_a_minute(queue: FifoQueue, clock: FakeClock) -> None:
    queue.add(pod("a"))
    waits = []
    for _ in range(8):
        fail_next(queue)
        deadline = queue.next_deadline()
        assert deadline is not None
        waits.append(round(deadline - clock.now()))
        clock.advance(deadline - clock.now())
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_several_backoffs_that_are_over_line_up_by_their_ends(queue: FifoQueue, clock: FakeClock) -> None:
    for name in ("a", "b"):
        queue.add(pod(name))
    a, b = queue.try_pop(), queue.try_pop()
    assert a is not None
    assert b is not None
    queue.add_unschedulable_if_not_present(b)
    clock.advance(0.5)
    a.unschedulable_plugins = {"Filter"}
    queue.add_unschedulable_if_not_present(a)
    clock.advance(9)
    assert pop_names(queue) == ["b", "a"]


def test_events_change_nothing(queue: FifoQueue) -> None:
    queue.add(pod("a"))
    fail_next(queue)
    queue.move_all_to_active_or_backoff(NODE_ADD, None, None)
    queue.assigned_pod_added(pod("x"))
    queue.assigned_pod_updated(pod("x"), pod("x"), NODE_ADD)
    queue.activate([pod("a")])
    queue.flush_unschedulable_leftover()
    assert queue.place("a") is Place.BACKOFF


def test_a_pod_is_in_one_place(queue: FifoQueue, clock: FakeClock) -> None:
    assert queue.place("a") is None
    queue.add(pod("a"))
    queue.add_if_not_present(pod("a"))
    queue.add(pod("a"))
    assert queue.place("a") is Place.ACTIVE
    info = queue.try_pop()
    assert info is not None
    queue.add_if_not_present(pod("a"))
    queue.add(pod("a"))
    assert queue.place("a") is Place.IN_FLIGHT
    assert queue.try_pop() is None
    queue.add_unschedulable_if_not_present(info)
    queue.add_if_not_present(pod("a"))
    queue.add(pod("a"))
    assert queue.place("a") is Place.BACKOFF
    with pytest.raises(PodAlreadyQueuedError):
        queue.add_unschedulable_if_not_present(QueuedPodInfo(PodInfo.of(pod("a"))))
    queue.add_if_not_present(pod("b"))
    assert queue.pending_pods()[1] == "activeQ:1; backoffQ:1; unschedulableEntities:0"
    assert [each.name for each in queue.pending_pods()[0]] == ["b", "a"]


def test_an_updated_pod_keeps_its_place(queue: FifoQueue) -> None:
    for name in ("a", "b"):
        queue.add(pod(name))
    new = make_pod("a").uid("a").nominated_node("n").build()
    queue.update(pod("a"), new)
    assert [info.pod for info in queue.nominated_pods_for_node("n")] == [new]
    info = queue.try_pop()
    assert info is not None
    assert info.pod is new
    queue.update(pod("b"), make_pod("b").uid("other").build())
    assert queue.place("b") is None
    assert queue.place("other") is Place.ACTIVE


def test_a_deleted_pod_is_gone_for_good(queue: FifoQueue) -> None:
    for name in ("active", "backoff", "flying"):
        queue.add(pod(name))
    queue.delete(pod("active"))
    fail_next(queue)
    flying = queue.try_pop()
    assert flying is not None
    for name in ("backoff", "flying"):
        queue.delete(pod(name))
    queue.add_unschedulable_if_not_present(flying)
    assert queue.pending_pods()[0] == []
    assert queue.in_flight_pods() == []
