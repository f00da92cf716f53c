"""What a recorder is told of a framework's work, and that nothing is measured where nobody listens."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import (
    Code,
    CycleState,
    Framework,
    InMemoryCluster,
    NodeInfo,
    Parallelizer,
    Parts,
    Pod,
    PodInfo,
    PostFilterResult,
    PreFilterResult,
    Profile,
    Registry,
    Snapshot,
    Status,
)
from kschedfw.framework.clock import SystemClock, VirtualClock
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.groups import GroupPlacement, PlacedGroup, QueuedGroup
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.metrics import (
    NO_METRICS,
    AttemptResult,
    CachedObject,
    HintResult,
    MeasuredPoint,
    MetricsRecorder,
    NoMetrics,
    Operation,
    PluginSampling,
)
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import FilterOutcome
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.results import Verdicts
from kschedfw.testing import FakeClock
from tests.framework.support import PluginClass, answering, node_info, nodes, plugin, pod

POD = pod()
GROUP = QueuedGroup("default/g", None, (POD,))
NODES = ("a", "b", "c", "d", "e", "f")  # more than are scored on the caller's thread alone


@attrs.define(eq=False)
class Notes(NoMetrics):
    """Writes down what the framework tells."""

    points: list[tuple[MeasuredPoint, Code, str, float]] = attrs.field(factory=list)
    executions: list[tuple[str, MeasuredPoint, Code, float]] = attrs.field(factory=list)
    evaluations: Counter[tuple[str, MeasuredPoint]] = attrs.field(factory=Counter)
    waits: list[tuple[Code, float]] = attrs.field(factory=list)
    busy: Counter[Operation] = attrs.field(factory=Counter)
    most_busy: Counter[Operation] = attrs.field(factory=Counter)

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        self.points.append((point, code, profile, seconds))

    def plugin_execution(self, plugin: str, point: MeasuredPoint, code: Code, seconds: float) -> None:
        self.executions.append((plugin, point, code, seconds))

    def plugin_evaluations(self, plugin: str, point: MeasuredPoint, profile: str, count: int) -> None:
        self.evaluations[plugin, point] += count

    def permit_wait(self, code: Code, seconds: float) -> None:
        self.waits.append((code, seconds))

    def workers(self, operation: Operation, change: int) -> None:
        self.busy[operation] += change
        self.most_busy[operation] = max(self.most_busy[operation], self.busy[operation])


@attrs.define
class Bench:
    """A framework over these nodes with a recorder, and a clock that hooks may advance."""

    framework: Framework
    notes: Notes
    state: CycleState

    @classmethod
    def of(
        cls,
        *plugins: PluginClass,
        clock: FakeClock | None = None,
        parallelism: int = 1,
        sampled: bool = False,
        sampling: PluginSampling | None = None,
        recorder: MetricsRecorder | None = None,
    ) -> Bench:
        registry = Registry(entry_points=False)
        for each in plugins:
            registry.register(each)
        notes = Notes()
        framework = Framework(
            registry,
            Profile([each.name for each in plugins], scheduler_name="gpu"),
            Parts(
                InMemoryCluster(),
                snapshot=Snapshot.of(nodes(*NODES), ()),
                clock=clock or FakeClock(),
                random=Random(0),
                parallelizer=Parallelizer(parallelism),
                metrics=notes if recorder is None else recorder,
                plugin_sampling=sampling,
            ),
        )
        state = CycleState()
        state.record_plugin_metrics = sampled
        return cls(framework, notes, state)

    def filter(self) -> FilterOutcome:
        everything = NodeSelection.whole(self.framework.handle.snapshot.table)
        return self.framework.filter_nodes(self.state, POD, everything)

    def run(self, method: str) -> Any:
        """Call a method of the framework with whatever arguments it takes."""
        everything = self.framework.handle.snapshot.node_infos
        selection = NodeSelection.whole(self.framework.handle.snapshot.table)
        arguments: tuple[object, ...] = {
            "run_pre_enqueue_plugins": (POD,),
            "run_placement_generate_plugins": (self.state, GROUP, GroupPlacement("", selection)),
            "run_placement_score_plugins": (
                self.state,
                GROUP,
                [PlacedGroup(GroupPlacement("", selection), {POD.uid: "a"})],
            ),
            "run_placement_feasible_plugins": (
                self.state,
                GROUP,
                PlacedGroup(GroupPlacement("", selection), {}),
                1,
                0,
            ),
            "run_pod_group_post_filter_plugins": (self.state, GROUP, Status.success),
            "run_pre_filter_plugins": (self.state, POD),
            "run_post_filter_plugins": (self.state, POD, NodeToStatus()),
            "run_pre_score_plugins": (self.state, POD, everything),
            "run_score_plugins": (self.state, POD, everything),
            "total_scores": (self.state, POD, selection),
        }.get(method, (self.state, POD, "a"))
        return getattr(self.framework, method)(*arguments)


POINT_METHODS: Final = frozenset(
    {
        "run_pre_enqueue_plugins",
        "run_pre_filter_plugins",
        "run_post_filter_plugins",
        "run_pre_score_plugins",
        "run_score_plugins",
        "total_scores",
        "run_reserve_plugins_reserve",
        "run_reserve_plugins_unreserve",
        "run_permit_plugins",
        "run_pre_bind_pre_flights",
        "run_pre_bind_plugins",
        "run_bind_plugins",
        "run_post_bind_plugins",
        "run_placement_generate_plugins",
        "run_placement_feasible_plugins",
        "run_placement_score_plugins",
        "run_pod_group_post_filter_plugins",
    }
)
"""The methods that run an extension point once for a pod. `filter_nodes` does so for FILTER."""

TOLD_BY_PLANS: Final = frozenset(
    {"run_pre_filter_plugins", "run_pre_score_plugins", "run_score_plugins", "total_scores"}
)
"""The methods that measure themselves, since they tell of plugins that aren't called, too."""

NODE_METHODS: Final = frozenset(
    {"run_filter_plugins", "run_each_filter_plugin", "run_filter_plugins_with_nominated_pods"}
)
"""The methods that ask the filters about a single node."""


def after(clock: FakeClock, seconds: float, answer: object = None) -> Callable[[], object]:
    """A hook that takes so long."""

    def hook() -> object:
        clock.advance(seconds)
        return answering(answer)()

    return hook


def passes(state: CycleState, pod: Pod, node_info: NodeInfo) -> None:
    """A filter with all arguments, which needs no adapter."""


class TestWhoListens:
    def test_nobody_does_by_default_and_then_nothing_is_wrapped(self) -> None:
        registry = Registry(entry_points=False)
        registry.register(plugin("A", filter=passes))
        framework = Framework(registry, Profile(["A"]), Parts(InMemoryCluster()))
        assert framework.handle.metrics is NO_METRICS
        assert framework._hooks["filter"] == (("A", passes),)

    def test_nobody_does_where_that_is_said(self) -> None:
        framework = Bench.of(plugin("A", filter=passes), recorder=NoMetrics()).framework
        assert framework._hooks["filter"] == (("A", passes),)

    def test_who_wants_to_know_one_thing_only_derives_from_nobody(self) -> None:
        seen: list[float] = []

        class Waits(NoMetrics):
            def permit_wait(self, code: Code, seconds: float) -> None:
                seen.append(seconds)

        clock = FakeClock()
        bench = Bench.of(plugin("A", permit=answering(Status.wait(2))), recorder=Waits(), clock=clock)
        bench.run("run_permit_plugins")
        clock.advance(2)
        bench.framework.wait_on_permit(POD)
        assert seen == [2.0]

    def test_who_takes_part_in_a_point_stays_known(self) -> None:
        framework = Bench.of(plugin("A", filter=answering(None)), plugin("B")).framework
        assert framework.plugins_at(ExtensionPoint.FILTER) == ("A",)

    def test_a_plugin_finds_the_recorder_in_its_handle(self) -> None:
        bench = Bench.of(plugin("A"))
        assert bench.framework.plugins["A"].handle.metrics is bench.notes

    def test_everything_may_be_told_to_nobody(self) -> None:
        NO_METRICS.scheduling_attempt(AttemptResult.SCHEDULED, "p", 1)
        NO_METRICS.scheduling_algorithm(1)
        NO_METRICS.pod_scheduled(1, None)
        NO_METRICS.pod_scheduled_after_flush()
        NO_METRICS.cache_size(CachedObject.NODES, 1)
        NO_METRICS.workers(Operation.BINDING, 1)
        NO_METRICS.event_handled("NodeAdd", 1)
        NO_METRICS.extension_point(MeasuredPoint.BIND, Code.SUCCESS, "p", 1)
        NO_METRICS.plugin_execution("A", MeasuredPoint.BIND, Code.SUCCESS, 1)
        NO_METRICS.plugin_evaluations("A", MeasuredPoint.FILTER, "p", 1)
        NO_METRICS.permit_wait(Code.SUCCESS, 1)
        NO_METRICS.preemption_attempt()
        NO_METRICS.preemption_victims(1)
        NO_METRICS.pending_pods("active", 1)
        NO_METRICS.pod_incoming("active", "NodeAdd")
        NO_METRICS.unschedulable_pods("A", "p", 1)
        NO_METRICS.queueing_hint("A", "NodeAdd", HintResult.QUEUE, 1)
        NO_METRICS.in_flight_events("NodeAdd", 1)


class TestExtensionPoints:
    """Kept as (point, outcome, profile, seconds)."""

    @pytest.mark.parametrize(
        ("method", "hook", "answer", "point", "code"),
        [
            ("run_pre_enqueue_plugins", "pre_enqueue", None, "PreEnqueue", Code.SUCCESS),
            (
                "run_pre_enqueue_plugins",
                "pre_enqueue",
                Status.unschedulable("gates"),
                "PreEnqueue",
                Code.UNSCHEDULABLE,
            ),
            ("run_pre_filter_plugins", "pre_filter", PreFilterResult.of(["a"]), "PreFilter", Code.SUCCESS),
            ("run_pre_filter_plugins", "pre_filter", Status.skip(), "PreFilter", Code.SUCCESS),
            (
                "run_pre_filter_plugins",
                "pre_filter",
                Status.unschedulable("no"),
                "PreFilter",
                Code.UNSCHEDULABLE,
            ),
            ("run_post_filter_plugins", "post_filter", (None, None), "PostFilter", Code.SUCCESS),
            (
                "run_post_filter_plugins",
                "post_filter",
                (PostFilterResult(), Status.unschedulable("no")),
                "PostFilter",
                Code.UNSCHEDULABLE,
            ),
            ("run_pre_score_plugins", "pre_score", Status.skip(), "PreScore", Code.SUCCESS),
            ("run_score_plugins", "score", 7, "Score", Code.SUCCESS),
            ("run_score_plugins", "score", 101, "Score", Code.ERROR),
            ("total_scores", "score", 7, "Score", Code.SUCCESS),
            ("run_reserve_plugins_reserve", "reserve", RuntimeError("full"), "Reserve", Code.ERROR),
            ("run_reserve_plugins_unreserve", "unreserve", None, "Unreserve", Code.SUCCESS),
            ("run_reserve_plugins_unreserve", "unreserve", RuntimeError("lost"), "Unreserve", Code.ERROR),
            ("run_permit_plugins", "permit", Status.wait(5), "Permit", Code.WAIT),
            ("run_pre_bind_plugins", "pre_bind", None, "PreBind", Code.SUCCESS),
            ("run_bind_plugins", "bind", Status.skip(), "Bind", Code.SKIP),
            ("run_post_bind_plugins", "post_bind", None, "PostBind", Code.SUCCESS),
        ],
    )
    def test_each_is_told_with_its_outcome_and_duration(
        self, method: str, hook: str, answer: object, point: str, code: Code
    ) -> None:
        clock = FakeClock(100)
        bench = Bench.of(plugin("A", **{hook: after(clock, 0.25, answer)}), clock=clock)
        bench.run(method)
        seconds = 0.25 * (len(NODES) if hook == "score" else 1)
        assert bench.notes.points == [(point, code, "gpu", seconds)]

    def test_the_answers_are_those_of_a_framework_that_is_not_measured(self) -> None:
        plugins = (
            plugin(
                "A", pre_filter=answering(PreFilterResult.of(["a", "b"])), permit=answering(Status.wait(5))
            ),
            plugin("B", reserve=answering(Status.unschedulable("full")), score=answering(3)),
        )
        measured, plain = Bench.of(*plugins), Bench.of(*plugins, recorder=NoMetrics())
        compared = {"run_score_plugins", "total_scores", "run_placement_generate_plugins"}
        for method in POINT_METHODS - compared:
            assert measured.run(method) == plain.run(method)
        (scores, status), (plain_scores, plain_status) = (
            bench.run("run_score_plugins") for bench in (measured, plain)
        )
        assert status == plain_status
        assert list(scores.totals) == list(plain_scores.totals) == [3] * len(NODES)
        for bench in (measured, plain):
            totals, status = bench.run("total_scores")
            assert status == plain_status
            assert totals.values.tolist() == [3] * len(NODES)

    def test_filtering_is_told_once_for_all_nodes_with_what_prepares_it(self) -> None:
        clock = FakeClock()

        def filter_batch(rows: IntArray) -> Verdicts:
            clock.advance(10)
            return Verdicts(np.zeros(len(rows), dtype=np.int64), (Status.success(),))

        bench = Bench.of(
            plugin("A", filter=answering(None), filter_batch=filter_batch),
            plugin("B", filter=after(clock, 1)),
            clock=clock,
        )
        bench.filter()
        assert bench.notes.points == [("Filter", Code.SUCCESS, "gpu", 16.0)]

    @pytest.mark.parametrize(
        ("answer", "code"), [(Status.unschedulable("no"), Code.SUCCESS), (RuntimeError("broken"), Code.ERROR)]
    )
    def test_that_nodes_are_refused_is_a_success_of_filtering(self, answer: object, code: Code) -> None:
        bench = Bench.of(plugin("A", filter=answering(answer)))
        bench.filter()
        assert [told[:2] for told in bench.notes.points] == [("Filter", code)]

    def test_no_method_of_the_framework_is_forgotten(self) -> None:
        methods = {name for name in dir(Framework) if name.startswith("run_")} | {"total_scores"}
        extensions = {"run_pre_filter_add_pod", "run_pre_filter_remove_pod"}  # parts of other points
        points = {name for name in methods if hasattr(getattr(Framework, name), "__wrapped__")}
        points |= TOLD_BY_PLANS
        assert points == POINT_METHODS
        assert methods - points - extensions == NODE_METHODS

    def test_only_sorting_and_the_registration_of_events_are_not_measured(self) -> None:
        unmeasured = {name for name, spec in HOOKS.items() if spec.measured is None}
        assert unmeasured == {"queue_sort", "events_to_register", "normalize_placement_score"}

    def test_points_have_kube_schedulers_names(self) -> None:
        assert [point.value for point in MeasuredPoint] == [
            "PreEnqueue",
            "PreFilter",
            "PreFilterExtensionAddPod",
            "PreFilterExtensionRemovePod",
            "Filter",
            "PostFilter",
            "PreScore",
            "Score",
            "ScoreExtensionNormalize",
            "Reserve",
            "Unreserve",
            "Permit",
            "PreBindPreFlight",
            "PreBind",
            "Bind",
            "PostBind",
            "PlacementGenerate",
            "PlacementFeasible",
            "PlacementScore",
            "PodGroupPostFilter",
        ]


def one_of_each(clock: FakeClock) -> PluginClass:
    """A plugin with every hook, each of which takes a second."""
    answers: dict[str, object] = {
        "score": 1,
        "post_filter": (None, None),
        "placement_generate": [],
        "placement_score": 1,
    }
    names = {name for name, spec in HOOKS.items() if spec.measured is not None} - {
        "filter_batch",
        "score_batch",
    }
    return plugin("A", **{name: after(clock, 1, answers.get(name)) for name in names})


class TestPlugins:
    """Kept as (plugin, point, outcome, seconds), in the cycles of the sample only."""

    def everything(self, bench: Bench) -> None:
        for method in sorted(POINT_METHODS):
            bench.run(method)
        bench.filter()
        info = node_info()
        bench.framework.run_pre_filter_add_pod(bench.state, POD, PodInfo.of(POD), info)
        bench.framework.run_pre_filter_remove_pod(bench.state, POD, PodInfo.of(POD), info)

    def test_each_hook_is_told_in_a_cycle_of_the_sample(self) -> None:
        clock = FakeClock()
        bench = Bench.of(
            one_of_each(clock), clock=clock, sampled=True, sampling=PluginSampling(Random(0), 100)
        )
        self.everything(bench)
        assert set(bench.notes.executions) == {("A", point, Code.SUCCESS, 1.0) for point in MeasuredPoint}
        per_node = {MeasuredPoint.FILTER, MeasuredPoint.SCORE}
        times = Counter(point for _, point, _, _ in bench.notes.executions)
        twice = {
            MeasuredPoint.SCORE,
            MeasuredPoint.NORMALIZE_SCORE,
        }  # with and without what totals are made of
        assert times == {
            point: (len(NODES) if point in per_node else 1) * (2 if point in twice else 1)
            for point in MeasuredPoint
        }

    def test_none_is_told_in_any_other_cycle(self) -> None:
        clock = FakeClock()
        bench = Bench.of(one_of_each(clock), clock=clock, sampling=PluginSampling(Random(0), 0))
        self.everything(bench)
        assert bench.notes.executions == []
        assert len(bench.notes.points) == len(POINT_METHODS) + 1

    def test_without_sampling_pre_enqueue_is_not_told(self) -> None:
        bench = Bench.of(plugin("A", pre_enqueue=answering(None)), sampled=True)
        bench.run("run_pre_enqueue_plugins")
        assert bench.notes.executions == []

    @pytest.mark.parametrize(
        ("method", "hook", "answer", "code"),
        [
            ("run_pre_filter_plugins", "pre_filter", PreFilterResult.of(["a"]), Code.SUCCESS),
            ("run_pre_filter_plugins", "pre_filter", Status.skip(), Code.SKIP),
            ("run_pre_filter_plugins", "pre_filter", "yes", Code.ERROR),
            (
                "run_post_filter_plugins",
                "post_filter",
                (None, Status.unschedulable("no")),
                Code.UNSCHEDULABLE,
            ),
            ("run_post_filter_plugins", "post_filter", (None, "no"), Code.ERROR),
            ("run_reserve_plugins_reserve", "reserve", RuntimeError("full"), Code.ERROR),
            ("run_permit_plugins", "permit", Status.wait(1), Code.WAIT),
            ("run_bind_plugins", "bind", Status.skip(), Code.SKIP),
        ],
    )
    def test_the_outcome_is_the_plugins_own(self, method: str, hook: str, answer: object, code: Code) -> None:
        bench = Bench.of(plugin("A", **{hook: answering(answer)}), sampled=True)
        bench.run(method)
        assert [told[2] for told in bench.notes.executions] == [code]

    def test_a_batch_form_is_told_once(self) -> None:
        bench = Bench.of(
            plugin(
                "A",
                filter=answering(None),
                filter_batch=lambda rows: Verdicts(np.zeros(len(rows), dtype=np.int64), (Status.success(),)),
                score=answering(0),
                score_batch=lambda rows: np.zeros(len(rows), dtype=np.int64),
            ),
            sampled=True,
        )
        bench.filter()
        bench.run("run_score_plugins")
        assert [told[:3] for told in bench.notes.executions] == [
            ("A", "Filter", Code.SUCCESS),
            ("A", "Score", Code.SUCCESS),
        ]

    def test_a_clone_of_the_state_is_in_the_sample_too(self) -> None:
        state = CycleState()
        assert not state.clone().record_plugin_metrics
        state.record_plugin_metrics = True
        assert state.clone().record_plugin_metrics


class TestSampling:
    def test_it_is_a_tenth_of_the_cycles(self) -> None:
        sampling = PluginSampling(Random(1))
        assert sum(sampling() for _ in range(10_000)) == pytest.approx(1_000, rel=0.1)

    @given(st.integers(), st.integers(0, 100))
    def test_the_same_seed_draws_the_same_cycles(self, seed: int, percent: int) -> None:
        first, second = (PluginSampling(Random(seed), percent) for _ in range(2))
        assert [first() for _ in range(20)] == [second() for _ in range(20)]

    @given(st.integers())
    def test_it_can_be_none_and_all(self, seed: int) -> None:
        none, everyone = PluginSampling(Random(seed), 0), PluginSampling(Random(seed), 100)
        assert not any(none() for _ in range(20))
        assert all(everyone() for _ in range(20))


class TestEvaluations:
    """How often plugins were asked; of the points with which kube-scheduler counts that."""

    @given(
        refusers=st.lists(st.sampled_from(["A", "B", "C", ""]), min_size=len(NODES), max_size=len(NODES)),
        parallelism=st.sampled_from([1, 3]),
    )
    def test_a_filter_is_asked_about_the_nodes_that_those_before_it_let_pass(
        self, refusers: list[str], parallelism: int
    ) -> None:
        refuser_of = dict(zip(NODES, refusers, strict=True))

        def filtering(name: str) -> PluginClass:
            return plugin(
                name,
                filter=lambda node_info: (
                    Status.unschedulable("no") if refuser_of[node_info.name] == name else None
                ),
            )

        bench = Bench.of(*map(filtering, "ABC"), parallelism=parallelism)
        bench.filter()
        bench.framework.close()
        not_a = [refuser for refuser in refusers if refuser != "A"]
        not_a_or_b = [refuser for refuser in not_a if refuser != "B"]
        assert {name: bench.notes.evaluations[name, MeasuredPoint.FILTER] for name in "ABC"} == {
            "A": len(NODES),
            "B": len(not_a),
            "C": len(not_a_or_b),
        }

    def test_a_batch_form_counts_its_rows_unless_it_leaves_them_to_the_scalar_form(self) -> None:
        answers = iter([None, Verdicts(np.zeros(len(NODES), dtype=np.int64), (Status.success(),))])
        bench = Bench.of(plugin("A", filter=answering(None), filter_batch=lambda: next(answers)))
        bench.filter()
        assert bench.notes.evaluations == {("A", "Filter"): len(NODES)}
        bench.filter()
        assert bench.notes.evaluations == {("A", "Filter"): 2 * len(NODES)}

    @pytest.mark.parametrize(
        ("method", "hook", "point"),
        [
            ("run_pre_filter_plugins", "pre_filter", "PreFilter"),
            ("run_pre_score_plugins", "pre_score", "PreScore"),
        ],
    )
    def test_a_skip_does_not_count(self, method: str, hook: str, point: str) -> None:
        bench = Bench.of(
            plugin("A", **{hook: answering(None)}), plugin("B", **{hook: answering(Status.skip())})
        )
        bench.run(method)
        bench.run(method)
        assert bench.notes.evaluations == {("A", point): 2}

    def test_scores_count_per_node(self) -> None:
        bench = Bench.of(plugin("A", score=answering(1)), parallelism=4)
        bench.run("run_score_plugins")
        bench.framework.close()
        assert bench.notes.evaluations == {("A", "Score"): len(NODES)}

    @pytest.mark.parametrize("method", sorted(NODE_METHODS))
    def test_single_nodes_count_at_once(self, method: str) -> None:
        bench = Bench.of(plugin("A", filter=answering(None)))
        getattr(bench.framework, method)(bench.state, POD, node_info())
        assert bench.notes.evaluations == {("A", "Filter"): 1}
        assert bench.notes.points == []

    def test_no_other_point_counts(self) -> None:
        clock = FakeClock()
        bench = Bench.of(one_of_each(clock), clock=clock)
        TestPlugins().everything(bench)
        assert bench.notes.evaluations.keys() == {
            ("A", point)
            for point in (
                MeasuredPoint.PRE_FILTER,
                MeasuredPoint.FILTER,
                MeasuredPoint.PRE_SCORE,
                MeasuredPoint.SCORE,
            )
        }


class TestWorkers:
    @pytest.mark.parametrize(("parallelism", "busy"), [(1, 1), (3, 3), (16, len(NODES))])
    def test_there_are_as_many_as_the_parallelizer_has_but_not_more_than_nodes(
        self, parallelism: int, busy: int
    ) -> None:
        bench = Bench.of(plugin("A", filter=answering(None), score=answering(1)), parallelism=parallelism)
        bench.filter()
        bench.run("run_score_plugins")
        bench.framework.close()
        assert bench.notes.most_busy == {Operation.FILTER: busy, Operation.SCORE: busy}
        assert set(bench.notes.busy.values()) == {0}

    def test_none_is_left_when_a_score_fails(self) -> None:
        bench = Bench.of(plugin("A", score=answering(RuntimeError("broken"))))
        bench.run("run_score_plugins")
        assert bench.notes.busy == {Operation.SCORE: 0}


class TestPermitWait:
    def test_a_pod_that_waited_is_told(self) -> None:
        clock = FakeClock()
        bench = Bench.of(plugin("A", permit=answering(Status.wait(5))), clock=clock)
        bench.run("run_permit_plugins")
        clock.advance(3)
        held = bench.framework.waiting_pods.get(POD.uid)
        assert held is not None
        held.allow("A")
        bench.framework.wait_on_permit(POD)
        assert bench.notes.waits == [(Code.SUCCESS, 3.0)], (
            "from the plugin's wish, not from when somebody looked"
        )

    def test_a_pod_that_times_out_is_told_with_how_long_that_took(self) -> None:
        class Leap(FakeClock):
            def wait_until(self, condition: object, deadline: float) -> None:
                self.advance(deadline - self.now())

        bench = Bench.of(plugin("A", permit=answering(Status.wait(5))), clock=Leap())
        bench.run("run_permit_plugins")
        bench.framework.wait_on_permit(POD)
        assert bench.notes.waits == [(Code.UNSCHEDULABLE, 5.0)]

    def test_a_pod_that_did_not_wait_is_not(self) -> None:
        bench = Bench.of(plugin("A", permit=answering(None)))
        bench.run("run_permit_plugins")
        bench.framework.wait_on_permit(POD)
        assert bench.notes.waits == []


class TestMonotonicTime:
    """What durations are measured by comes with every clock."""

    def test_a_test_moves_it_by_hand(self) -> None:
        clock = FakeClock(1_000)
        began = clock.monotonic()
        clock.advance(2.5)
        assert clock.monotonic() - began == 2.5

    def test_in_a_simulation_waiting_moves_it(self) -> None:
        clock = VirtualClock()
        began = clock.monotonic()
        clock.wait_until(threading.Condition(), clock.now() + 2.5)
        assert clock.monotonic() - began == 2.5

    def test_in_reality_it_never_goes_back(self) -> None:
        readings = [SystemClock().monotonic() for _ in range(1_000)]
        assert readings == sorted(readings)
