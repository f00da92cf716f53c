"""Waiting in pop: for pods, for time, and for the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kschedfw.framework.clock import SystemClock
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.plugins.priority_sort import PrioritySort
from kschedfw.scheduler.queue import Place, SchedulingQueue
from kschedfw.testing import FakeClock
from tests.framework.support import make_framework
from tests.scheduler.queue.support import PROFILE, pod

SOON = 10.0
"""Seconds of real time until a test gives up."""

MakeQueue = Callable[[FakeClock], SchedulingQueue]


def scheduling_queue(clock: FakeClock) -> SchedulingQueue:
    return SchedulingQueue({PROFILE: make_framework(PrioritySort, clock=clock)}, clock=clock)


class Waiting:
    """A thread that waits in pop. `asleep` returns once it really waits."""

    def __init__(self, queue: SchedulingQueue, timeout: float | None = None) -> None:
        self._executor = ThreadPoolExecutor(1)
        self._queue = queue
        self._future: Future[QueuedPodInfo | None] = self._executor.submit(queue.pop, timeout)

    def asleep(self) -> Waiting:
        condition = self._queue._condition
        pause = threading.Event()
        for _ in range(int(SOON / 0.001)):
            with condition:
                if condition._waiters:  # type: ignore[attr-defined]
                    return self
            pause.wait(0.001)
        raise AssertionError("it doesn't wait")

    @property
    def popped(self) -> str | None:
        info = self._future.result(SOON)
        self._executor.shutdown()
        return None if info is None else info.pod.name


@pytest.fixture(params=[scheduling_queue])
def make_queue(request: pytest.FixtureRequest) -> MakeQueue:
    make: MakeQueue = request.param
    return make


def test_pop_waits_for_a_pod(make_queue: MakeQueue) -> None:
    queue = make_queue(FakeClock())
    waiting = Waiting(queue).asleep()
    queue.add(pod("a"))
    assert waiting.popped == "a"


def test_pop_waits_for_the_end_of_a_backoff(make_queue: MakeQueue) -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    queue.add(pod("a"))
    info = queue.pop()
    assert info is not None
    queue.add_unschedulable_if_not_present(info)
    waiting = Waiting(queue).asleep()
    clock.advance(2)
    assert waiting.popped == "a"


def test_pop_gives_up_after_a_timeout(make_queue: MakeQueue) -> None:
    clock = FakeClock()
    queue = make_queue(clock)
    waiting = Waiting(queue, timeout=5).asleep()
    clock.advance(4)
    waiting.asleep()
    clock.advance(1)
    assert waiting.popped is None
    assert queue.pop(timeout=0) is None


def test_closing_ends_the_wait_and_all_flights(make_queue: MakeQueue) -> None:
    queue = make_queue(FakeClock())
    queue.add(pod("a"))
    queue.pop()
    waiting = Waiting(queue).asleep()
    queue.close()
    assert waiting.popped is None
    assert queue.in_flight_pods() == []


def test_a_closed_queue_gives_nothing(make_queue: MakeQueue) -> None:
    queue = make_queue(FakeClock())
    queue.add(pod("a"))
    queue.close()
    assert queue.pop() is None
    assert queue.try_pop() is None
    queue.add(pod("b"))
    assert [each.name for each in queue.pending_pods()[0]] == ["a", "b"]


def test_every_pod_goes_to_one_of_many_workers() -> None:
    queue = SchedulingQueue({PROFILE: make_framework(PrioritySort)}, clock=SystemClock(), initial_backoff=0)
    names = [f"pod-{number}" for number in range(300)]
    popped: list[str] = []

    def work() -> None:
        while (info := queue.pop()) is not None:
            if info.attempts < 2:
                info.unschedulable_plugins = {"Filter"}
                queue.add_unschedulable_if_not_present(info)
                queue.activate([info.pod])
            else:
                popped.append(info.pod.name)
                queue.done(info.pod.uid)
                if len(popped) == len(names):
                    queue.close()

    with ThreadPoolExecutor(4) as executor:
        workers = [executor.submit(work) for _ in range(4)]
        for name in names:
            queue.add(pod(name))
        for worker in workers:
            worker.result(SOON)
    assert sorted(popped) == sorted(names)
    assert queue.in_flight_events() == []
    assert all(queue.place(name) is None for name in names)


def test_place_is_a_word() -> None:
    assert str(Place.IN_FLIGHT) == "in-flight"
