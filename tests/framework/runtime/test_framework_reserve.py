"""reserve and unreserve, pre_bind, bind and post_bind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kschedfw import Code, CycleState, Framework, Pod, Status
from tests.framework.support import PluginClass, answering, make_framework, plugin, pod, traceback_names

MAY = "may answer only Success, Error, Unschedulable, UnschedulableAndUnresolvable"
POD = pod()


def reserve(framework: Framework) -> Status:
    return framework.run_reserve_plugins_reserve(CycleState(), POD, "n")


def pre_bind(framework: Framework) -> Status:
    return framework.run_pre_bind_plugins(CycleState(), POD, "n")


def pre_enqueue(framework: Framework) -> Status:
    return framework.run_pre_enqueue_plugins(POD)


@pytest.mark.parametrize(
    ("hook", "point", "run"),
    [
        ("reserve", "Reserve", reserve),
        ("pre_bind", "PreBind", pre_bind),
        ("pre_enqueue", "PreEnqueue", pre_enqueue),
    ],
)
class TestPointsThatStopAtTheFirstFailure:
    def test_all_are_asked_in_profile_order_as_long_as_they_succeed(
        self, hook: str, point: str, run: Callable[[Framework], Status]
    ) -> None:
        order: list[str] = []
        framework = make_framework(
            plugin("B", **{hook: lambda: order.append("B")}),
            plugin("A", **{hook: lambda: order.append("A")}),
            plugin("C", **{hook: answering(Status.success())}),
        )
        assert run(framework) == Status.success()
        assert order == ["B", "A"]

    @pytest.mark.parametrize(
        "refused", [Status.unschedulable("x"), Status.unresolvable("x"), Status.pending("x")]
    )
    def test_a_refusal_comes_back_with_its_plugin(
        self, hook: str, point: str, run: Callable[[Framework], Status], refused: Status
    ) -> None:
        framework = make_framework(
            plugin("A", **{hook: answering(refused)}),
            plugin("B", **{hook: answering(AssertionError("is not asked any more"))}),
        )
        assert run(framework) == refused.with_plugin("A")

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.from_error("no disk"), "no disk"),
            (Status.wait(1, "soon"), f"Wait (soon), but {{hook}} {MAY} or Pending"),
            (Status.skip(), f"Skip, but {{hook}} {MAY} or Pending"),
            (ValueError("no disk"), "ValueError: no disk"),
            ("yes", "{hook} must return None or a Status, not 'yes'"),
        ],
    )
    def test_anything_else_is_an_error_of_that_point(
        self, hook: str, point: str, run: Callable[[Framework], Status], answer: object, text: str
    ) -> None:
        status = run(make_framework(plugin("A", **{hook: answering(answer)})))
        assert status.code is Code.ERROR
        assert status.plugin == "A"
        assert status.message == f'running {point} plugin "A": {text.format(hook=hook)}'
        assert status.error is not None


def test_an_exception_keeps_its_traceback() -> None:
    def break_down(pod: Pod) -> None:
        raise ValueError(pod.name)

    assert traceback_names(reserve(make_framework(plugin("A", reserve=break_down))))[-1] == "break_down"


@pytest.mark.parametrize(("hook", "point"), [("unreserve", "Unreserve"), ("post_bind", "PostBind")])
class TestPointsThatCanNotFail:
    def run(self, hook: str, *plugins: PluginClass) -> list[tuple[str, str]]:
        framework = make_framework(*plugins)
        run = (
            framework.run_reserve_plugins_unreserve
            if hook == "unreserve"
            else framework.run_post_bind_plugins
        )
        failures = run(CycleState(), POD, "n")
        assert {failure.code for failure in failures} <= {Code.ERROR}
        return [(failure.plugin, failure.message) for failure in failures]

    def test_every_plugin_is_called_even_if_others_fail(self, hook: str, point: str) -> None:
        order: list[str] = []
        failures = self.run(
            hook,
            plugin("A", **{hook: lambda node_name: order.append(f"A {node_name}")}),
            plugin("B", **{hook: answering(ValueError("no disk"))}),
            plugin("C", **{hook: lambda: order.append("C")}),
        )
        assert order == (["C", "A n"] if hook == "unreserve" else ["A n", "C"])
        assert failures == [("B", f'running {point} plugin "B": ValueError: no disk')]

    def test_what_they_return_does_not_matter(self, hook: str, point: str) -> None:
        assert self.run(hook, plugin("A", **{hook: answering(Status.unschedulable("no"))})) == []


class TestBind:
    def run(self, *plugins: PluginClass) -> Status:
        return make_framework(*plugins).run_bind_plugins(CycleState(), POD, "n")

    def test_the_first_answer_other_than_skip_is_final(self) -> None:
        bound: list[str] = []
        status = self.run(
            plugin("A", bind=answering(Status.skip())),
            plugin("B", bind=lambda pod, node_name: bound.append(f"{pod.name} to {node_name}")),
            plugin("C", bind=answering(AssertionError("is not asked any more"))),
        )
        assert status.is_success
        assert bound == ["pod to n"]

    @pytest.mark.parametrize("plugins", [[], [plugin("A", bind=answering(Status.skip()))]])
    def test_if_nobody_binds_the_pod_that_is_skip(self, plugins: list[PluginClass]) -> None:
        assert self.run(*plugins).is_skip

    @pytest.mark.parametrize(
        "refused", [Status.unschedulable("x"), Status.unresolvable("x"), Status.pending("x")]
    )
    def test_a_refusal_is_final_too(self, refused: Status) -> None:
        last = plugin("B", bind=answering(AssertionError("is not asked any more")))
        assert self.run(plugin("A", bind=answering(refused)), last) == refused.with_plugin("A")

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.from_error("conflict"), "conflict"),
            (ValueError("conflict"), "ValueError: conflict"),
            (Status.wait(1, "soon"), f"Wait (soon), but bind {MAY}, Skip or Pending"),
            (False, "bind must return None or a Status, not False"),
        ],
    )
    def test_anything_else_is_an_error(self, answer: object, text: str) -> None:
        status = self.run(plugin("A", bind=answering(answer)))
        assert status.code is Code.ERROR
        assert status.plugin == "A"
        assert status.message == f'running Bind plugin "A": {text}'
