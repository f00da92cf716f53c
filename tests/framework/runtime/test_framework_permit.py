"""permit: the last word before binding, or a wait."""

from __future__ import annotations

import threading

import pytest

from kschedfw import Code, CycleState, Framework, Status
from kschedfw.testing import FakeClock
from tests.framework.support import PluginClass, answering, make_framework, plugin, pod

POD = pod()


def permit(framework: Framework) -> Status:
    return framework.run_permit_plugins(CycleState(), POD, "n")


def waiting(*plugins: PluginClass, clock: FakeClock | None = None) -> Framework:
    framework = make_framework(*plugins, clock=clock)
    assert permit(framework).is_wait
    return framework


def test_a_pod_that_nobody_holds_goes_on() -> None:
    framework = make_framework(
        plugin("A", permit=answering(None)), plugin("B", permit=answering(Status.success()))
    )
    assert permit(framework) == Status.success()
    assert len(framework.waiting_pods) == 0
    assert framework.wait_on_permit(POD) == Status.success()


@pytest.mark.parametrize(
    "refused", [Status.unschedulable("x"), Status.unresolvable("x"), Status.pending("x")]
)
def test_a_refusal_is_final_even_if_others_would_wait(refused: Status) -> None:
    framework = make_framework(
        plugin("A", permit=answering(Status.wait(10))),
        plugin("B", permit=answering(refused)),
        plugin("C", permit=answering(AssertionError("is not asked any more"))),
    )
    assert permit(framework) == refused.with_plugin("B")
    assert len(framework.waiting_pods) == 0


MAY = "may answer only Success, Error, Unschedulable, UnschedulableAndUnresolvable"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Status.from_error("no disk"), "no disk"),
        (
            Status.skip(),
            f"Skip, but permit {MAY}, Wait or Pending",
        ),
        (ValueError("no disk"), "ValueError: no disk"),
        (10, "permit must return None or a Status, not 10"),
    ],
)
def test_anything_else_is_an_error(answer: object, text: str) -> None:
    status = permit(make_framework(plugin("A", permit=answering(answer))))
    assert status.code is Code.ERROR
    assert status.plugin == "A"
    assert status.message == f'running Permit plugin "A": {text}'


class TestWait:
    def test_it_is_said_in_kube_schedulers_words_after_everyone_was_asked(self) -> None:
        asked: list[str] = []
        framework = make_framework(
            plugin("A", permit=answering(Status.wait(10, "quorum"))),
            plugin("B", permit=lambda: asked.append("B")),
        )
        assert permit(framework) == Status(
            Code.WAIT, ('one or more plugins asked to wait and no plugin rejected pod "pod"',)
        )
        assert asked == ["B"]

    def test_the_pod_is_held_by_all_that_asked_for_it(self) -> None:
        framework = waiting(
            plugin("A", permit=answering(Status.wait(10))),
            plugin("B", permit=answering(None)),
            plugin("C", permit=answering(Status.wait(20))),
        )
        held = framework.handle.waiting_pods.get(POD.uid)
        assert held is not None
        assert held.pod is POD
        assert held.pending_plugins == ("A", "C")

    def test_it_ends_when_all_have_allowed_it_and_the_pod_is_forgotten(self) -> None:
        framework = waiting(
            plugin("A", permit=answering(Status.wait(10))), plugin("B", permit=answering(Status.wait(10)))
        )
        held = framework.waiting_pods.get(POD.uid)
        assert held is not None
        timers = [threading.Timer(0.01, held.allow, [name]) for name in ("A", "B")]
        for timer in timers:
            timer.start()
        assert framework.wait_on_permit(POD) == Status.success()
        for timer in timers:
            timer.join()
        assert framework.waiting_pods.get(POD.uid) is None

    def test_it_ends_with_a_rejection(self) -> None:
        framework = waiting(plugin("A", permit=answering(Status.wait(10))))
        held = framework.waiting_pods.get(POD.uid)
        assert held is not None
        held.reject("A", "no quorum")
        assert framework.wait_on_permit(POD) == Status.unschedulable("no quorum").with_plugin("A")
        assert len(framework.waiting_pods) == 0

    @pytest.mark.parametrize(
        ("asked", "granted", "text"),
        [(10.0, 10.0, "10s"), (1800.0, 900.0, "15m0s"), (None, 900.0, "15m0s")],
    )
    def test_it_ends_with_the_timeout_but_after_15_minutes_at_most(
        self, asked: float | None, granted: float, text: str
    ) -> None:
        clock = FakeClock()
        framework = waiting(plugin("A", permit=answering(Status(Code.WAIT, timeout=asked))), clock=clock)
        held = framework.waiting_pods.get(POD.uid)
        assert held is not None
        clock.advance(granted - 0.1)
        assert held.poll() is None
        clock.advance(0.1)
        assert held.poll() is not None
        assert framework.wait_on_permit(POD) == (
            Status.unschedulable(f"rejected due to timeout after waiting {text} at plugin A").with_plugin("A")
        )
