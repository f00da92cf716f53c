"""pre_bind_pre_flight and pre_bind: who has work to do, and who does it at the same time."""

from __future__ import annotations

import threading

import pytest

from kschedfw import Code, CycleState, Framework, PreBindPreFlightResult, Status
from kschedfw.framework.errors import HookError
from kschedfw.framework.waiting_pods import PodInPreBind
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import PluginClass, answering, make_framework, plugin, pod

POD = pod()
PARALLEL = PreBindPreFlightResult(allow_parallel=True)
SERIAL = PreBindPreFlightResult()
PARALLEL_SKIP = PreBindPreFlightResult(allow_parallel=True, skip=True)
SERIAL_SKIP = PreBindPreFlightResult(skip=True)


def pre_flight(*plugins: PluginClass) -> Status:
    return make_framework(*plugins).run_pre_bind_pre_flights(CycleState(), POD, "n")


def working(name: str, answer: object = None) -> PluginClass:
    return plugin(name, pre_bind_pre_flight=answering(answer), pre_bind=answering(None))


class TestPreFlight:
    @pytest.mark.parametrize(
        "plugins",
        [
            [],
            [plugin("A", bind=answering(None))],
            [working("A", Status.skip()), working("B", PARALLEL_SKIP), working("C", SERIAL_SKIP)],
        ],
    )
    def test_where_nobody_has_work_to_do_it_is_skip(self, plugins: list[PluginClass]) -> None:
        assert pre_flight(*plugins).is_skip

    @pytest.mark.parametrize("answer", [None, Status.success(), SERIAL, PARALLEL])
    def test_one_that_has_is_enough(self, answer: object) -> None:
        assert pre_flight(working("A", Status.skip()), working("B", answer)) == Status.success()

    def test_a_plugin_without_the_hook_always_has(self) -> None:
        assert pre_flight(plugin("A", pre_bind=answering(None))) == Status.success()

    @pytest.mark.parametrize("answer", [OSError("no disk"), Status.from_error("no disk")])
    def test_an_error_is_one(self, answer: object) -> None:
        status = pre_flight(working("A", Status.skip()), working("B", answer))
        assert (status.code, status.plugin) == (Code.ERROR, "B")
        assert status.message.startswith('running PreBindPreFlight "B": ')
        assert status.message.endswith("no disk")

    @pytest.mark.parametrize("refused", [Status.unschedulable("no"), Status.pending("no"), Status.wait(1)])
    def test_it_can_not_reject_a_pod(self, refused: Status) -> None:
        status = pre_flight(working("A", refused))
        assert status.code is Code.ERROR
        assert status.message == (
            f'PreBindPreFlight A returned "{refused.code}", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status"
        )

    def test_nor_answer_anything_else(self) -> None:
        assert pre_flight(working("A", True)).message == (
            'running PreBindPreFlight "A": '
            "pre_bind_pre_flight must return None, a PreBindPreFlightResult or a Status, not True"
        )

    def test_it_goes_with_pre_bind(self) -> None:
        with pytest.raises(HookError, match="'pre_bind_pre_flight' but not 'pre_bind', which it goes with"):
            make_framework(plugin("A", pre_bind_pre_flight=answering(None)))


def groups(*answers: object, parallelism: int = 1) -> list[list[str]]:
    """Which pre_binds run together, seen by plugins that wait for each other."""
    framework, state = (
        make_framework(
            *(
                plugin(f"P{place}", pre_bind_pre_flight=answering(answer), pre_bind=answering(None))
                for place, answer in enumerate(answers, 1)
            ),
            parallelism=parallelism,
        ),
        CycleState(),
    )
    framework.run_pre_bind_pre_flights(state, POD, "n")
    return [[name for name, _ in group] for group in framework._groups(state)]


class TestPreBind:
    @pytest.mark.parametrize(
        ("answers", "expected"),
        [
            ([], []),
            ([SERIAL], [["P1"]]),
            ([Status.skip()], []),
            ([PARALLEL], [["P1"]]),
            ([None, SERIAL], [["P1"], ["P2"]]),
            ([PARALLEL, PARALLEL], [["P1", "P2"]]),
            ([None, PARALLEL, PARALLEL, None], [["P1"], ["P2", "P3"], ["P4"]]),
            ([PARALLEL, None, PARALLEL], [["P1"], ["P2"], ["P3"]]),
            ([None, Status.skip(), None], [["P1"], ["P3"]]),
            ([PARALLEL_SKIP], []),
            ([PARALLEL, PARALLEL_SKIP, PARALLEL], [["P1", "P3"]]),
            ([PARALLEL, SERIAL_SKIP, PARALLEL], [["P1"], ["P3"]]),
            ([PARALLEL, Status.skip(), PARALLEL], [["P1"], ["P3"]]),
            ([PARALLEL, PARALLEL_SKIP, SERIAL, PARALLEL_SKIP, PARALLEL], [["P1"], ["P3"], ["P5"]]),
            ([PARALLEL, Status.skip(), SERIAL, Status.skip(), PARALLEL], [["P1"], ["P3"], ["P5"]]),
        ],
    )
    def test_neighbours_that_allow_it_run_together_also_across_a_skipped_one_that_does(
        self, answers: list[object], expected: list[list[str]]
    ) -> None:
        assert groups(*answers) == expected

    def test_one_that_skipped_is_not_called(self) -> None:
        called: list[str] = []
        framework, state = (
            make_framework(
                plugin(
                    "A", pre_bind_pre_flight=answering(Status.skip()), pre_bind=lambda: called.append("A")
                ),
                plugin("B", pre_bind=lambda: called.append("B")),
            ),
            CycleState(),
        )
        framework.run_pre_bind_pre_flights(state, POD, "n")
        assert framework.run_pre_bind_plugins(state, POD, "n").is_success
        assert called == ["B"]

    def meeting(self, *, parallelism: int, answer: object = None) -> tuple[Framework, CycleState, list[str]]:
        """Two plugins of which the first can't end before the second has begun, if they run together."""
        journal: list[str] = []
        begun = threading.Event()

        def first() -> None:
            if parallelism > 1:
                assert begun.wait(PATIENCE)
            journal.append("First")

        def second() -> object:
            begun.set()
            journal.append("Second")
            return answer

        plugins = [
            plugin("First", pre_bind_pre_flight=answering(PARALLEL), pre_bind=first),
            plugin("Second", pre_bind_pre_flight=answering(PARALLEL), pre_bind=second),
        ]
        framework, state = make_framework(*plugins, parallelism=parallelism), CycleState()
        framework.run_pre_bind_pre_flights(state, POD, "n")
        return framework, state, journal

    def test_together_means_at_the_same_time(self) -> None:
        framework, state, journal = self.meeting(parallelism=2)
        assert framework.run_pre_bind_plugins(state, POD, "n").is_success
        assert sorted(journal) == ["First", "Second"]
        framework.close()

    def test_all_have_ended_when_one_fails(self) -> None:
        framework, state, journal = self.meeting(parallelism=2, answer=Status.from_error("no disk"))
        status = framework.run_pre_bind_plugins(state, POD, "n")
        assert status.message == 'running PreBind plugin "Second": no disk'
        assert sorted(journal) == ["First", "Second"]
        framework.close()

    def test_with_parallelism_one_they_run_one_after_the_other(self) -> None:
        framework, state, journal = self.meeting(parallelism=1)
        assert framework.run_pre_bind_plugins(state, POD, "n").is_success
        assert journal == ["First", "Second"]

    @pytest.mark.parametrize("parallelism", [1, 4])
    def test_the_first_failure_in_profile_order_counts(self, parallelism: int) -> None:
        framework, state = (
            make_framework(
                *(
                    plugin(
                        name,
                        pre_bind_pre_flight=answering(PARALLEL),
                        pre_bind=answering(Status.from_error(name)),
                    )
                    for name in ("A", "B", "C")
                ),
                parallelism=parallelism,
            ),
            CycleState(),
        )
        framework.run_pre_bind_pre_flights(state, POD, "n")
        for _ in range(5):
            assert framework.run_pre_bind_plugins(state, POD, "n").plugin == "A"
        framework.close()


class TestCancelling:
    def test_the_first_message_counts(self) -> None:
        held = PodInPreBind(POD)
        assert held.cancelled is None
        assert held.cancel("preempted by A")
        assert held.cancel("preempted by B")
        assert held.cancelled == held.finish() == "preempted by A"

    def test_a_cancelled_binding_stays_cancelled_when_pre_bind_ends(self) -> None:
        """Who needs its room, too, must not be told that it is being bound."""
        held = PodInPreBind(POD)
        held.cancel("preempted by A")
        held.finish()
        assert held.cancel("preempted by B")
        assert held.finish() == "preempted by A"

    def test_it_is_too_late_once_pre_bind_has_ended(self) -> None:
        held = PodInPreBind(POD)
        assert held.finish() is None
        assert not held.cancel("preempted by A")
        assert held.cancelled is None


class TestSystemExit:
    """A plugin that calls sys.exit is wrong, and no reason to end anything."""

    @pytest.mark.parametrize(
        ("hook", "run"),
        [
            ("pre_enqueue", lambda each: each.run_pre_enqueue_plugins(POD)),
            ("pre_filter", lambda each: each.run_pre_filter_plugins(CycleState(), POD)[1]),
            ("reserve", lambda each: each.run_reserve_plugins_reserve(CycleState(), POD, "n")),
            ("permit", lambda each: each.run_permit_plugins(CycleState(), POD, "n")),
            ("pre_bind", lambda each: each.run_pre_bind_plugins(CycleState(), POD, "n")),
            ("bind", lambda each: each.run_bind_plugins(CycleState(), POD, "n")),
            ("post_bind", lambda each: each.run_post_bind_plugins(CycleState(), POD, "n")[0]),
            ("unreserve", lambda each: each.run_reserve_plugins_unreserve(CycleState(), POD, "n")[0]),
        ],
    )
    def test_it_is_an_error_that_says_what_it_was(self, hook: str, run: object) -> None:
        assert callable(run)
        status = run(make_framework(plugin("A", **{hook: answering(SystemExit(3))})))
        assert status.code is Code.ERROR
        assert "SystemExit: 3" in status.message
