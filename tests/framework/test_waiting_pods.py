"""Pods that permit plugins hold back: allowed by all, rejected by one, or timed out."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kschedfw import Status
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.waiting_pods import MAX_PERMIT_TIMEOUT, WaitingPod, WaitingPods
from kschedfw.testing import FakeClock
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import pod

MINUTE = 60.0


def waiting(clock: Clock | None = None, name: str = "pod", **timeouts: float) -> WaitingPod:
    return WaitingPod(pod(name), timeouts or {"A": 10.0}, clock or FakeClock())


class Waiter(threading.Thread):
    """Waits for a pod's fate on a thread of its own."""

    def __init__(self, waiting_pod: WaitingPod) -> None:
        super().__init__(daemon=True)
        self._waiting_pod = waiting_pod
        self.status: Status | None = None
        self.start()

    def run(self) -> None:
        self.status = self._waiting_pod.wait()

    def result(self) -> Status | None:
        self.join(PATIENCE)
        assert not self.is_alive(), "it still waits"
        return self.status


class TestFate:
    def test_a_pod_goes_on_when_every_plugin_has_allowed_it(self) -> None:
        held = waiting(A=10.0, B=20.0)
        assert list(held.pending_plugins) == ["A", "B"]
        held.allow("B")
        assert list(held.pending_plugins) == ["A"]
        assert held.poll() is None
        held.allow("A")
        assert list(held.pending_plugins) == []
        assert held.poll() == held.wait() == Status.success()

    def test_a_plugin_that_does_not_hold_the_pod_has_nothing_to_allow(self) -> None:
        held = waiting()
        held.allow("Stranger")
        assert list(held.pending_plugins) == ["A"]
        assert held.poll() is None

    def test_one_plugin_rejects_for_all(self) -> None:
        held = waiting(A=10.0, B=20.0)
        held.reject("B", "no quorum")
        assert held.wait() == Status.unschedulable("no quorum").with_plugin("B")
        assert list(held.pending_plugins) == []

    def test_a_pods_fate_is_settled_once(self) -> None:
        clock = FakeClock()
        held = waiting(clock)
        held.allow("A")
        held.reject("A", "too late")
        clock.advance(MINUTE)
        assert held.poll() == Status.success()
        rejected = waiting(clock)
        rejected.reject("A", "no")
        rejected.reject("B", "no, too")
        rejected.allow("A")
        clock.advance(MINUTE)
        assert rejected.wait().reasons == ("no",)


class TestTimeout:
    @pytest.mark.parametrize(
        ("timeout", "text"),
        [
            (10.0, "rejected due to timeout after waiting 10s at plugin A"),
            (0.5, "rejected due to timeout after waiting 500ms at plugin A"),
            (90.0, "rejected due to timeout after waiting 1m30s at plugin A"),
        ],
    )
    def test_the_text_is_kube_schedulers(self, timeout: float, text: str) -> None:
        clock = FakeClock(1000.0)
        held = waiting(clock, A=timeout)
        assert held.poll() is None
        clock.advance(timeout)
        assert held.poll() == Status.unschedulable(text).with_plugin("A")

    def test_it_comes_neither_early_nor_late(self) -> None:
        clock = FakeClock()
        held = waiting(clock, A=10.0)
        clock.advance(9.999)
        assert held.poll() is None
        clock.advance(0.001)
        assert held.poll() is not None

    def test_the_first_of_several_decides(self) -> None:
        clock = FakeClock()
        held = waiting(clock, A=30.0, B=10.0, C=20.0)
        clock.advance(MINUTE)
        status = held.poll()
        assert status is not None
        assert status.plugin == "B"
        assert status.message == "rejected due to timeout after waiting 10s at plugin B"

    def test_a_plugin_that_allowed_the_pod_can_not_time_out(self) -> None:
        clock = FakeClock()
        held = waiting(clock, A=30.0, B=10.0)
        held.allow("B")
        clock.advance(20)
        assert held.poll() is None

    def test_no_plugin_waits_longer_than_15_minutes(self) -> None:
        clock = FakeClock()
        held = waiting(clock, A=3600.0)
        assert MAX_PERMIT_TIMEOUT == 15 * MINUTE
        clock.advance(15 * MINUTE - 1)
        assert held.poll() is None
        clock.advance(1)
        status = held.poll()
        assert status is not None
        assert status.message == "rejected due to timeout after waiting 15m0s at plugin A"

    def test_no_time_at_all_is_over_at_once(self) -> None:
        assert waiting(A=0.0).wait().message == "rejected due to timeout after waiting 0s at plugin A"


class TestDeadline:
    def test_it_is_that_of_the_first_plugin_that_still_holds_the_pod(self) -> None:
        held = waiting(FakeClock(1000.0), A=30.0, B=10.0)
        assert held.deadline == 1010.0
        held.allow("B")
        assert held.deadline == 1030.0

    def test_it_is_capped_like_the_wait(self) -> None:
        assert waiting(FakeClock(1000.0), A=3600.0).deadline == 1000.0 + MAX_PERMIT_TIMEOUT

    @pytest.mark.parametrize(
        "settle", [lambda held: held.allow("A"), lambda held: held.reject("A", "no")], ids=["allow", "reject"]
    )
    def test_a_pod_whose_fate_is_settled_has_none(self, settle: Callable[[WaitingPod], None]) -> None:
        held = waiting()
        settle(held)
        assert held.deadline is None


def _by_time(held: WaitingPod, clock: FakeClock, look: Callable[[WaitingPod], Status | None]) -> None:
    clock.advance(10)
    look(held)


SETTLED: list[Callable[[WaitingPod, FakeClock], object]] = [
    lambda held, _: held.allow("A"),
    lambda held, _: held.reject("A", "no"),
    lambda held, clock: _by_time(held, clock, WaitingPod.poll),
    lambda held, clock: _by_time(held, clock, WaitingPod.wait),
]


class TestOnSettled:
    @pytest.mark.parametrize("settle", SETTLED, ids=["allow", "reject", "poll", "wait"])
    def test_whoever_settles_the_fate_calls_back_once(
        self, settle: Callable[[WaitingPod, FakeClock], None]
    ) -> None:
        clock, calls = FakeClock(), []
        held = waiting(clock)
        held.on_settled(lambda: calls.append("first"))
        held.on_settled(lambda: calls.append("second"))
        assert calls == []
        settle(held, clock)
        assert calls == ["first", "second"]
        held.poll()
        held.wait()
        held.reject("A", "again")
        assert calls == ["first", "second"]

    def test_at_once_if_it_is_settled(self) -> None:
        calls: list[Status | None] = []
        held = waiting()
        held.allow("A")
        held.on_settled(lambda: calls.append(held.poll()))
        assert calls == [Status.success()]

    def test_no_lock_is_held_meanwhile(self) -> None:
        held = waiting()
        waiters: list[Waiter] = []

        def look_from_another_thread() -> None:
            waiters.append(Waiter(held))
            assert waiters[0].result() == Status.success()

        held.on_settled(look_from_another_thread)
        held.allow("A")
        assert len(waiters) == 1


class TestThreads:
    @pytest.mark.parametrize("make_clock", [FakeClock, SystemClock])
    @pytest.mark.parametrize(
        ("settle", "expected"),
        [
            (lambda held: held.allow("A"), Status.success()),
            (lambda held: held.reject("A", "no"), Status.unschedulable("no").with_plugin("A")),
        ],
    )
    def test_who_waits_is_told_at_once(
        self, make_clock: Callable[[], Clock], settle: Callable[[WaitingPod], None], expected: Status
    ) -> None:
        held = waiting(make_clock(), A=600.0)
        waiters = [Waiter(held) for _ in range(3)]
        settle(held)
        assert [waiter.result() for waiter in waiters] == [expected] * 3

    def test_time_that_passes_wakes_who_waits(self) -> None:
        clock = FakeClock()
        waiter = Waiter(waiting(clock, A=10.0))
        for _ in range(3):
            clock.advance(4)
        assert waiter.result() == (
            Status.unschedulable("rejected due to timeout after waiting 10s at plugin A").with_plugin("A")
        )

    def test_real_time_passes_by_itself(self) -> None:
        assert waiting(SystemClock(), A=0.02).wait().message == (
            "rejected due to timeout after waiting 20ms at plugin A"
        )

    def test_many_plugins_may_allow_from_many_threads(self) -> None:
        plugins = [f"P{number}" for number in range(20)]
        held = WaitingPod(pod(), dict.fromkeys(plugins, 600.0), FakeClock())
        waiter = Waiter(held)
        threads = [threading.Thread(target=held.allow, args=(name,)) for name in plugins]
        for thread in threads:
            thread.start()
        assert waiter.result() == Status.success()
        for thread in threads:
            thread.join()


class TestAllOfAProfile:
    def test_they_are_found_by_uid_and_listed_in_the_order_they_came(self) -> None:
        pods = WaitingPods()
        first, second = waiting(name="b"), waiting(name="a")
        pods.add(first)
        pods.add(second)
        assert list(pods) == [first, second]
        assert len(pods) == 2
        assert pods.get("uid-a") is second
        assert pods.get("uid-x") is None

    def test_a_pod_is_removed_once_and_for_all(self) -> None:
        pods = WaitingPods()
        pods.add(waiting())
        pods.remove("uid-pod")
        pods.remove("uid-pod")
        assert len(pods) == 0

    def test_a_pod_that_is_gone_is_rejected(self) -> None:
        pods = WaitingPods()
        held = waiting()
        pods.add(held)
        assert pods.reject("uid-pod")
        assert held.wait() == Status.unschedulable("removed")
        assert not pods.reject("uid-x")

    def test_they_may_be_changed_while_they_are_gone_through(self) -> None:
        pods = WaitingPods()
        for name in "abc":
            pods.add(waiting(name=name))
        for each in pods:
            pods.remove(each.pod.uid)
        assert len(pods) == 0
