"""Pods that plugins don't tell apart share a plan, which follows the nodes; how many plans are kept has a limit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import attrs
import pytest

from kschedfw import (
    CycleState,
    EnabledPlugin,
    Evaluation,
    Framework,
    NodeInfo,
    Pod,
    PodInfo,
    PreFilterResult,
    Profile,
    Reads,
    Snapshot,
    StateKey,
    Status,
    Verdicts,
    make_node,
    make_pod,
)
from kschedfw.framework.nodes.arrays import LARGEST_EXACT
from kschedfw.framework.plugin import IDLE
from kschedfw.framework.runtime.engine import plans as plans_module
from kschedfw.framework.runtime.engine.plan import BYTES_PER_PLAN, Plan
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from tests.framework.runtime.engine.support import everything, of_kind, signing, snapshot_of
from tests.framework.support import PluginClass, answering, make_framework, plugin, pod

BATCH = {"filter_batch": lambda rows: Verdicts.passing(len(rows))}


def plan_of(framework: Framework, pod: Pod) -> Plan:
    state = CycleState()
    framework.run_pre_filter_plugins(state, pod)
    assert isinstance(state.plan, Plan)
    return state.plan


def signing_with(sign: Callable[[Pod], Hashable | None], **members: Any) -> PluginClass:
    made = signing(**members)
    made.sign = lambda self, pod: sign(pod)  # type: ignore[misc, method-assign]
    return made


class TestSharing:
    def test_pods_of_one_signature_share_a_plan_whatever_they_request(self) -> None:
        framework = make_framework(signing(), snapshot=snapshot_of(3))
        first = plan_of(framework, of_kind("a"))
        large = make_pod("large").labels(kind="a").requests(cpu=7).build()
        assert plan_of(framework, large) is first
        assert plan_of(framework, of_kind("b")) is not first
        assert plan_of(framework, of_kind("a")) is first

    def test_signatures_of_all_plugins_count(self) -> None:
        other = signing_with(lambda pod: pod.namespace)
        other.name = "B"
        framework = make_framework(signing(), other, snapshot=snapshot_of(3))
        pods = [make_pod().labels(kind=kind).namespace(its).build() for kind in "ab" for its in "xy"]
        found = [plan_of(framework, pod) for pod in pods]
        assert len(set(map(id, found))) == 4
        # What is known of one signature is shared by all plans with it.
        assert found[0].kept["A"] is found[1].kept["A"]
        assert found[0].kept["A"] is not found[2].kept["A"]
        assert found[0].kept["B"] is found[2].kept["B"]

    def test_plugin_that_doesnt_sign_a_pod_is_asked_about_each(self) -> None:
        framework = make_framework(signing(), snapshot=snapshot_of(10))
        unsigned = make_pod("p").build()
        assert not plan_of(framework, unsigned).kept
        for asked in (10, 20):
            framework.filter_nodes(CycleState(), unsigned, everything(framework))
            assert framework.memo_report()["A"].rows_asked == asked
        counts = framework.memo_report()["A"]
        assert (counts.classes_signed, counts.classes_unsigned) == (0, 1)

    def test_amounts_that_arent_exact_have_a_plan_of_their_own_in_which_nothing_is_computed(self) -> None:
        node = make_node("n").capacity({"cpu": 8, "memory": LARGEST_EXACT, "pods": 9}).build()
        profile = Profile([NodeResourcesFit.name])
        framework = make_framework(NodeResourcesFit, nodes=[node], profile=profile)
        small, large, small_again = (
            plan_of(framework, make_pod().requests(memory=str(memory)).build())
            for memory in (1, LARGEST_EXACT + 1, 2)
        )
        assert small.computed
        assert not large.computed
        assert small_again is small

    def test_the_scalar_evaluation_keeps_and_computes_nothing(self) -> None:
        framework = make_framework(
            signing(), NodeResourcesFit, snapshot=snapshot_of(3), evaluation=Evaluation.SCALAR
        )
        plan = plan_of(framework, of_kind("a"))
        assert not plan.kept
        assert not plan.computed
        framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        assert framework.decided_together == 0

    def test_a_profile_that_asks_all_filters_keeps_nothing(self) -> None:
        profile = attrs.evolve(Profile(["A"]), run_all_filters=True)
        framework = make_framework(signing(), snapshot=snapshot_of(3), profile=profile)
        assert not plan_of(framework, of_kind("a")).kept

    @pytest.mark.parametrize(("weight", "together"), [(2**52 // 100, 1), (2**52 // 100 + 1, 0)])
    def test_totals_that_floats_dont_hold_exactly_are_added_up_in_order(
        self, weight: int, together: int
    ) -> None:
        profile = Profile([EnabledPlugin("A", weight)])
        framework = make_framework(signing(score=answering(99)), snapshot=snapshot_of(3), profile=profile)
        state = CycleState()
        found = framework.filter_nodes(state, of_kind("a"), everything(framework))
        framework.run_pre_score_plugins(state, of_kind("a"), found.feasible)
        totals, _ = framework.total_scores(state, of_kind("a"), found.feasible)
        assert totals is not None
        assert totals.values.tolist() == [99 * weight] * 3
        assert framework.decided_together == together


class TestKeptFrom:
    """The pod of a signature from which on answers are kept."""

    def counted(self, reads: Reads, kinds: str, **members: Any) -> int:
        """How many signatures' answers are kept, after pods of these kinds in turn."""
        made = signing(reads=reads, **members)
        framework = make_framework(made, snapshot=snapshot_of(3))
        for kind in kinds:
            plan_of(framework, of_kind(kind))
        return framework.memo_report()["A"].classes_signed

    @pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
    @pytest.mark.parametrize(
        "scalar", [{}, {**BATCH, "score": answering(1)}], ids=["filter alone", "score alone"]
    )
    def test_without_a_batch_form_it_is_the_first(self, reads: Reads, scalar: dict[str, object]) -> None:
        assert self.counted(reads, "a", **scalar) == 1
        assert self.counted(reads, "abcdefgh", **scalar) == 8

    @pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
    def test_with_a_batch_form_it_is_the_second(self, reads: Reads) -> None:
        assert self.counted(reads, "a", **BATCH) == 0
        assert self.counted(reads, "aa", **BATCH) == 1
        assert self.counted(reads, "abcd", **BATCH) == 0
        assert self.counted(reads, "abcdabcd", **BATCH) == 4

    def test_what_follows_pods_is_kept_only_for_the_latest_four(self) -> None:
        assert self.counted(Reads.PODS, "abcde" * 3, **BATCH) == 0
        assert self.counted(Reads.NODE, "abcde" * 3, **BATCH) == 5
        # Each of the latest counts as the last one when it comes again.
        assert self.counted(Reads.PODS, "abcda" + "e" + "a", **BATCH) == 1

    def test_what_reads_the_whole_cluster_is_never_kept(self) -> None:
        assert self.counted(Reads.CLUSTER, "aaaa") == 0

    def test_answers_of_one_plugin_are_kept_while_another_meets_a_signature_for_the_first_time(self) -> None:
        """As in a stream of pods that all differ in one respect."""
        other = signing_with(lambda pod: pod.name, **BATCH)
        other.name = "B"
        framework = make_framework(signing(**BATCH), other, snapshot=snapshot_of(3))
        plans = [plan_of(framework, of_kind("a", f"p{number}")) for number in range(4)]
        assert list(plans[-1].kept) == ["A"]
        assert plans[2] is plans[3]
        assert framework.memo_report()["B"].classes_signed == 0


class TestIdle:
    """A plugin that has nothing to do with a pod, as its signature tells."""

    @pytest.mark.parametrize("reads", [*Reads])
    def test_its_hooks_arent_called_and_its_filter_and_score_are_skipped(self, reads: Reads) -> None:
        calls: list[str] = []

        def noting(hook: str) -> Callable[[], object]:
            return lambda: calls.append(hook)

        hooks = {each: noting(each) for each in ("pre_filter", "filter", "pre_score")}
        made = signing_with(lambda pod: IDLE, reads=reads, **hooks, score=answering(7))
        framework = make_framework(made, plugin("B", score=answering(1)), snapshot=snapshot_of(3))
        for _ in range(2):
            state = CycleState()
            framework.run_pre_filter_plugins(state, of_kind("a"))
            found = framework.filter_nodes(state, of_kind("a"), everything(framework))
            assert framework.run_pre_score_plugins(state, of_kind("a"), found.feasible).is_success
            totals, _ = framework.total_scores(state, of_kind("a"), found.feasible)
            assert totals is not None
            assert totals.values.tolist() == [1, 1, 1]
            assert state.skip_filter_plugins == state.skip_score_plugins == {"A"}
        assert not calls
        assert framework.memo_report()["A"].rows_asked == 0

    @pytest.mark.parametrize("evaluation", Evaluation)
    def test_score_without_pre_score_counts_and_filter_without_pre_filter_is_asked(
        self, evaluation: Evaluation
    ) -> None:
        """As for any other pod: there is no hook that would skip them."""
        skip = answering(Status.skip())
        for hooks, feasible, skipped in (
            ({"pre_filter": skip}, 3, {"A"}),
            ({"pre_score": skip, "filter": answering(Status.unschedulable("no"))}, 0, set()),
        ):
            made = signing_with(lambda pod: IDLE, score=answering(7), **hooks)
            framework = make_framework(made, snapshot=snapshot_of(3), evaluation=evaluation)
            state = CycleState()
            framework.run_pre_filter_plugins(state, of_kind("a"))
            assert state.skip_filter_plugins == skipped
            found = framework.filter_nodes(state, of_kind("a"), everything(framework))
            assert found.count == feasible
            if feasible:
                framework.run_pre_score_plugins(state, of_kind("a"), found.feasible)
                totals, _ = framework.total_scores(state, of_kind("a"), found.feasible)
                assert totals is not None
                assert totals.values.tolist() == [7, 7, 7]
                assert not state.skip_score_plugins

    def test_pod_that_it_has_to_do_with_has_another_plan(self) -> None:
        framework = make_framework(
            signing_with(
                lambda pod: IDLE if pod.labels["kind"] == "idle" else pod.labels["kind"],
                pre_filter=answering(None),
            ),
            snapshot=snapshot_of(3),
        )
        kinds = ["idle", "busy", "idle"]
        found = [plan_of(framework, of_kind(kind)).kept["A"].is_idle for kind in kinds]
        assert found == [True, False, True]


class TestFailedSignatures:
    @pytest.mark.parametrize(
        ("sign", "objection"),
        [
            (lambda pod: [pod.name], "sign failed: TypeError: unhashable type: 'list'"),
            (lambda pod: 1 // 0, "sign failed: ZeroDivisionError: integer division or modulo by zero"),
        ],
    )
    def test_is_named_once_and_the_answers_are_given_all_the_same(
        self, sign: Callable[[Pod], Hashable], objection: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        refusal = Status.unschedulable("no")
        broken, other = signing_with(sign, filter=answering(refusal)), signing("B", filter=answering(None))
        framework = make_framework(broken, other, snapshot=snapshot_of(10))
        with caplog.at_level(logging.WARNING):
            for number in range(3):
                labelled = of_kind("a", f"p{number}")
                found = framework.filter_nodes(CycleState(), labelled, everything(framework))
                assert found.count == 0
                assert dict(found.refused)["n3"].plugin == "A"
                assert plan_of(framework, labelled).kept.keys() == {"B"}
        assert framework.memo_report()["A"].objection == objection
        assert [record.message for record in caplog.records] == [
            f"plugin A: {objection}; its answers aren't kept"
        ]

    def test_other_pods_are_signed_as_before(self) -> None:
        def sign(pod: Pod) -> str:
            if pod.labels["kind"] == "bad":
                raise RuntimeError("no pen")
            return pod.labels["kind"]

        framework = make_framework(signing_with(sign), snapshot=snapshot_of(3))
        first = plan_of(framework, of_kind("a"))
        assert not plan_of(framework, of_kind("bad")).kept
        assert plan_of(framework, of_kind("a")) is first

    def test_a_promise_that_is_missing_is_named(self) -> None:
        neither, unsigned = plugin("B", filter=answering(None)), plugin("C", filter=answering(None))
        unsigned.reads = Reads.NODE
        report = make_framework(neither, unsigned, snapshot=snapshot_of(3)).memo_report()
        assert report["B"].objection == "it isn't pure"
        assert report["C"].objection == "it isn't pure, and doesn't declare sign"


WRITTEN = StateKey[str]("written")
READ = StateKey[str | None]("read")


class TestPreparedHooks:
    """pre_filter and pre_score of a plugin that reads node objects alone are called once for many pods."""

    def calls(self, reads: Reads, answer: object = None) -> tuple[Framework, list[str]]:
        """A framework whose plugin has these hooks, and the pods that its pre_filter is called for."""
        called: list[str] = []

        def pre_filter(pod: Pod) -> object:
            called.append(pod.name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return make_framework(signing(reads=reads, pre_filter=pre_filter), snapshot=snapshot_of(3)), called

    def run(self, framework: Framework, name: str) -> CycleState:
        state = CycleState()
        framework.run_pre_filter_plugins(state, of_kind("a", name))
        return state

    @pytest.mark.parametrize("answer", [None, Status.success(), Status.skip()])
    def test_until_a_node_object_changes(self, answer: object) -> None:
        framework, called = self.calls(Reads.NODE, answer)
        snapshot = framework.handle.snapshot
        self.run(framework, "p0")
        self.run(framework, "p1")
        snapshot.update([NodeInfo.of(snapshot.get("n1").node, [make_pod("there").build()])])
        state = self.run(framework, "p2")
        assert called == ["p0"]
        assert state.skip_filter_plugins == ({"A"} if answer == Status.skip() else set())
        snapshot.update([NodeInfo.of(make_node("n1").labels(new="label").build())])
        self.run(framework, "p3")
        snapshot.replace(snapshot.node_infos[:2])
        self.run(framework, "p4")
        self.run(framework, "p5")
        assert called == ["p0", "p3", "p4"]

    @pytest.mark.parametrize("reads", [Reads.PODS, Reads.CLUSTER])
    def test_what_reads_more_is_called_for_each(self, reads: Reads) -> None:
        framework, called = self.calls(reads)
        for name in ("p0", "p1"):
            self.run(framework, name)
        assert called == ["p0", "p1"]

    @pytest.mark.parametrize(
        "answer",
        [Status.unschedulable("no"), PreFilterResult.of(["n1"]), ValueError("broke"), "rubbish"],
        ids=["refusal", "nodes left over", "failure", "rubbish"],
    )
    def test_answers_that_others_have_to_follow_are_asked_for_each(self, answer: object) -> None:
        framework, called = self.calls(Reads.NODE, answer)
        scalar = make_framework(
            signing(pre_filter=answering(answer)), snapshot=snapshot_of(3), evaluation=Evaluation.SCALAR
        )
        for name in ("p0", "p1"):
            told = [
                each.run_pre_filter_plugins(CycleState(), of_kind("a", name)) for each in (framework, scalar)
            ]
            assert str(told[0]) == str(told[1])
        assert set(called) == {"p0", "p1"}

    def test_each_hook_finds_what_those_before_it_wrote_and_nothing_of_those_behind(self) -> None:
        def write(state: CycleState) -> None:
            state.write(WRITTEN, "by A")

        def read(state: CycleState) -> None:
            state.write(READ, state.find(WRITTEN))

        reader = plugin("B", pre_filter=read, pre_score=read)
        writer = signing(pre_filter=write, pre_score=write)
        for order, expected in (((writer, reader), "by A"), ((reader, writer), None)):
            framework = make_framework(*order, snapshot=snapshot_of(3))
            for _ in range(2):
                state = self.run(framework, "p")
                assert state.find(READ) == expected
                assert state.find(WRITTEN) == "by A"
                scored = CycleState()
                nodes = framework.handle.snapshot.selection
                assert framework.run_pre_score_plugins(scored, of_kind("a"), nodes).is_success
                assert scored.find(READ) == expected
                assert scored.find(WRITTEN) == "by A"

    def test_after_a_refusal_nothing_of_hooks_behind_it_shows(self) -> None:
        def write(state: CycleState) -> Status:
            state.write(WRITTEN, "by A")
            return Status.skip()

        refusing = plugin("B", pre_filter=answering(Status.unresolvable("no")))
        framework = make_framework(refusing, signing(pre_filter=write), snapshot=snapshot_of(3))
        for name in ("p0", "p1"):
            state = self.run(framework, name)
            assert state.find(WRITTEN) is None
            assert not state.skip_filter_plugins

    def test_after_a_refusal_all_of_the_hooks_before_it_shows_and_nothing_of_those_behind(self) -> None:
        def writing(key: StateKey[Any]) -> Callable[[CycleState], None]:
            return lambda state: state.write(key, "written")

        framework = make_framework(
            signing("A", pre_filter=writing(WRITTEN)),
            plugin("B", pre_filter=answering(Status.unresolvable("no"))),
            signing("C", pre_filter=writing(READ)),
            snapshot=snapshot_of(3),
        )
        for name in ("p0", "p1"):
            state = self.run(framework, name)
            assert (state.find(WRITTEN), state.find(READ)) == ("written", None)

    def test_filters_and_scores_that_are_kept_find_what_their_own_hooks_wrote(self) -> None:
        def write(state: CycleState) -> None:
            state.write(WRITTEN, "7")

        made = signing(
            pre_filter=write,
            filter=lambda state: Status.unschedulable(state.read(WRITTEN)),
            pre_score=write,
        )
        framework = make_framework(made, snapshot=snapshot_of(10))
        for name in ("p0", "p1"):
            state = self.run(framework, name)
            found = framework.filter_nodes(state, of_kind("a", name), everything(framework))
            assert dict(found.refused)["n3"].reasons == ("7",)
        scoring = signing(pre_score=write, score=lambda state: int(state.read(WRITTEN)))
        framework = make_framework(scoring, snapshot=snapshot_of(10))
        state = self.run(framework, "p0")
        found = framework.filter_nodes(state, of_kind("a"), everything(framework))
        framework.run_pre_score_plugins(state, of_kind("a"), found.feasible)
        totals, _ = framework.total_scores(state, of_kind("a"), found.feasible)
        assert totals is not None
        assert totals.values.tolist() == [7] * 10


class TestMemory:
    def test_the_least_recently_used_go_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plans_module, "LEAST_BYTES", 2 * (BYTES_PER_PLAN + 20))
        monkeypatch.setattr(plans_module, "BYTES_PER_NODE", 0)
        framework = make_framework(signing(), snapshot=snapshot_of(1))
        first, second = plan_of(framework, of_kind("a")), plan_of(framework, of_kind("b"))
        assert plan_of(framework, of_kind("a")) is first
        plan_of(framework, of_kind("c"))
        assert plan_of(framework, of_kind("a")) is first
        assert plan_of(framework, of_kind("b")) is not second

    def test_the_one_in_use_stays_whatever_its_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plans_module, "LEAST_BYTES", 1)
        monkeypatch.setattr(plans_module, "BYTES_PER_NODE", 0)
        framework = make_framework(signing(), snapshot=snapshot_of(1))
        first = plan_of(framework, of_kind("a"))
        assert plan_of(framework, of_kind("a")) is first
        plan_of(framework, of_kind("b"))
        assert plan_of(framework, of_kind("a")) is not first

    def test_more_nodes_leave_room_for_fewer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plans_module, "LEAST_BYTES", 60_000)
        monkeypatch.setattr(plans_module, "BYTES_PER_NODE", 0)
        framework = make_framework(signing(), snapshot=snapshot_of(1))
        first = plan_of(framework, of_kind("a"))
        framework.handle.snapshot.replace(snapshot_of(2000).node_infos)
        second = plan_of(framework, of_kind("b"))
        assert plan_of(framework, of_kind("b")) is second
        assert plan_of(framework, of_kind("a")) is not first

    def test_more_nodes_may_have_more_plans(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plans_module, "LEAST_BYTES", 1)
        framework = make_framework(signing(), snapshot=snapshot_of(10))
        first = plan_of(framework, of_kind("a"))
        for kind in "bcdefgh":
            plan_of(framework, of_kind(kind))
        assert plan_of(framework, of_kind("a")) is first

    def test_answers_go_with_the_last_plan_that_uses_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plans_module, "LEAST_BYTES", 1)
        monkeypatch.setattr(plans_module, "BYTES_PER_NODE", 0)
        framework = make_framework(signing(), snapshot=snapshot_of(10))
        for kind in "aba":
            framework.filter_nodes(CycleState(), of_kind(kind), everything(framework))
        assert framework.memo_report()["A"].rows_asked == 30

    @pytest.mark.slow
    @pytest.mark.parametrize("evaluation", Evaluation)
    def test_reasons_that_are_all_different_do_not_pile_up(self, evaluation: Evaluation) -> None:
        # A status per pod and node, more in all than are kept.
        def refuse(pod: object, node_info: NodeInfo) -> Status:
            return Status.unschedulable(f"{node_info.name} against {pod}")

        framework = make_framework(
            plugin("A", filter=refuse), snapshot=snapshot_of(200), evaluation=evaluation
        )
        for number in range(90):
            found = framework.filter_nodes(CycleState(), pod(f"p{number}"), everything(framework))
            assert f"p{number}" in dict(found.refused)["n7"].message
        found = framework.filter_nodes(CycleState(), pod("last"), everything(framework))
        assert found.refused.count == 200
        assert len(found.refused.statuses) < 17_000


class TestKeptColumn:
    """Callers keep columns of their own, where they follow from what a plan knows."""

    def column(self, framework: Framework, pod: Pod, key: str = "key") -> list[object] | None:
        state = CycleState()
        framework.run_pre_filter_plugins(state, pod)
        return framework.kept_column(state, pod, key, list)

    def test_pods_with_equal_requests_share_one(self) -> None:
        framework = make_framework(signing(), snapshot=snapshot_of(3))
        first = self.column(framework, of_kind("a"))
        assert first == []
        assert self.column(framework, of_kind("a", "other")) is first
        for kind, cpu, key in (("b", "0", "key"), ("a", "1", "key"), ("a", "0", "other")):
            other = make_pod("p").labels(kind=kind).requests(cpu=cpu).build()
            assert self.column(framework, other, key) is not first

    @pytest.mark.parametrize(
        "other",
        [
            plugin("B", filter=answering(None)),
            signing("B", reads=Reads.CLUSTER),
            signing("B", filter=answering(Status.unschedulable("later", retry_at=9e9))),
        ],
        ids=["unsigned", "whole cluster", "refusal that ends"],
    )
    def test_there_is_none_where_a_filter_is_asked_for_each_pod(self, other: PluginClass) -> None:
        framework = make_framework(signing(), other, snapshot=snapshot_of(3))
        assert self.column(framework, of_kind("a")) is None

    def test_a_plugin_that_follows_added_pods_must_be_kept_or_skip_the_pod(self) -> None:
        def framework(pre_filter: Callable[[], object]) -> Framework:
            follower = plugin("B", pre_filter=pre_filter, pre_filter_add_pod=answering(None))
            return make_framework(signing(), follower, snapshot=snapshot_of(3))

        assert self.column(framework(answering(None)), of_kind("a")) is None
        assert self.column(framework(answering(Status.skip())), of_kind("a")) == []

    def test_the_oldest_of_many_goes(self) -> None:
        framework = make_framework(signing(), snapshot=snapshot_of(3))
        first = self.column(framework, of_kind("a"), "0")
        for number in range(1, 16):
            self.column(framework, of_kind("a"), str(number))
        assert self.column(framework, of_kind("a"), "0") is first
        self.column(framework, of_kind("a"), "16")
        assert self.column(framework, of_kind("a"), "0") is not first


class TestNodesThatChange:
    """A plan holds for any state of the nodes."""

    def answers(self, framework: Framework) -> dict[str, str]:
        """The reason that each node was refused for: its label `colour`, if it is not green."""
        found = framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        return {name: status.message for name, status in found.refused}

    def framework(self, colours: Sequence[str], reads: Reads) -> Framework:
        def filter_(node_info: NodeInfo) -> Status | None:
            colour = node_info.node.labels.get("colour", "")
            return None if colour == "green" else Status.unschedulable(colour)

        infos = [coloured(f"n{number}", colour) for number, colour in enumerate(colours)]
        return make_framework(signing(filter=filter_, reads=reads), snapshot=Snapshot(infos))

    @pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
    def test_each_node_counts_as_it_is_now(self, reads: Reads) -> None:
        framework = self.framework(["green", "red", "green"], reads)
        snapshot = framework.handle.snapshot
        plan = plan_of(framework, of_kind("a"))
        assert self.answers(framework) == {"n1": "red"}
        snapshot.update([coloured("n0", "blue")])
        assert self.answers(framework) == {"n0": "blue", "n1": "red"}
        first, second, third = snapshot.node_infos
        snapshot.replace([first, second, third, coloured("n3", "pink")])
        assert self.answers(framework) == {"n0": "blue", "n1": "red", "n3": "pink"}
        snapshot.replace([third, second])
        assert self.answers(framework) == {"n1": "red"}
        snapshot.replace([coloured("n0", "green"), second, third])
        assert self.answers(framework) == {"n1": "red"}
        snapshot.replace([coloured("n1", "green"), third, coloured("n0", "red")])
        assert self.answers(framework) == {"n0": "red"}
        snapshot.replace([])
        assert self.answers(framework) == {}
        snapshot.replace([coloured("n2", "red")])
        assert self.answers(framework) == {"n2": "red"}
        assert plan_of(framework, of_kind("a")) is plan

    @pytest.mark.parametrize("reads", [Reads.NODE, Reads.PODS])
    def test_pods_that_come_and_go_change_what_follows_pods(self, reads: Reads) -> None:
        framework = make_framework(
            signing(
                filter=lambda node_info: Status.unschedulable("full") if node_info.pods else None, reads=reads
            ),
            snapshot=snapshot_of(3),
        )
        snapshot = framework.handle.snapshot
        assert self.answers(framework) == {}
        crowded = snapshot.get("n1").clone()
        crowded.add_pod(PodInfo.of(make_pod("there").build()))
        snapshot.update([crowded])
        assert self.answers(framework) == ({"n1": "full"} if reads is Reads.PODS else {})


def coloured(name: str, colour: str) -> NodeInfo:
    return NodeInfo.of(make_node(name).labels(colour=colour).build())


def test_a_pods_reasons_are_its_own_although_all_is_forgotten_between_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plans_module, "_MOST_STATUSES", 5)
    made = signing(
        filter=lambda pod, node_info: Status.unschedulable(f"{pod.labels['kind']} {node_info.name}")
    )
    framework = make_framework(made, snapshot=snapshot_of(10))
    nodes = everything(framework)
    first, second = CycleState(), CycleState()
    framework.run_pre_filter_plugins(first, of_kind("a"))
    framework.filter_nodes(first, of_kind("a"), nodes)
    framework.run_pre_filter_plugins(second, of_kind("b"))
    assert framework.filter_nodes(second, of_kind("b"), nodes).refused.count == 10
    refused = framework.filter_nodes(first, of_kind("a"), nodes).refused
    assert {status.message for _, status in refused} == {f"a {name}" for name in nodes.names}
