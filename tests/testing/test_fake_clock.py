"""Time stands still until a test moves it."""

from __future__ import annotations

import threading

from kschedfw.framework.clock import Clock
from kschedfw.testing import FakeClock
from kschedfw.testing.waiting import PATIENCE


def test_it_is_a_clock_that_stands_still() -> None:
    clock: Clock = FakeClock(1000.0)
    assert [clock.now(), clock.now()] == [1000.0, 1000.0]
    assert FakeClock().now() == 0.0


def test_it_moves_by_hand() -> None:
    clock = FakeClock()
    clock.advance(1.5)
    clock.advance(2)
    assert clock.now() == 3.5


def test_waiting_for_what_has_passed_does_not_block() -> None:
    clock, condition = FakeClock(10), threading.Condition()
    with condition:
        clock.wait_until(condition, 10)


def waiting(clock: FakeClock, condition: threading.Condition, deadline: float) -> threading.Thread:
    """A thread that waits until the deadline, however often it is woken."""

    def wait() -> None:
        with condition:
            while clock.now() < deadline:
                clock.wait_until(condition, deadline)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_who_waits_is_woken_when_the_time_has_come_and_not_before() -> None:
    clock, condition = FakeClock(), threading.Condition()
    early, late = waiting(clock, condition, 5), waiting(clock, condition, 10)
    clock.advance(5)
    early.join(PATIENCE)
    assert not early.is_alive()
    assert late.is_alive()
    clock.advance(5)
    late.join(PATIENCE)
    assert not late.is_alive()


def test_a_notification_wakes_without_time_passing() -> None:
    clock, condition = FakeClock(), threading.Condition()
    woken = threading.Event()

    def wait() -> None:
        with condition:
            clock.wait_until(condition, 100)
            woken.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while not woken.wait(0.01):
        with condition:
            condition.notify_all()
    thread.join(PATIENCE)
    assert clock.now() == 0


def test_many_may_wait_for_many_things() -> None:
    clock = FakeClock()
    threads = [waiting(clock, threading.Condition(), deadline) for deadline in range(1, 30)]
    for _ in range(30):
        clock.advance(1)
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
