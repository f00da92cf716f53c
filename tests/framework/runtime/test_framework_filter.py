"""pre_filter, its extensions, and filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

from kschedfw import (
    Code,
    CycleState,
    Evaluation,
    Framework,
    NodeInfo,
    NodeTable,
    Pod,
    PodInfo,
    PreFilterResult,
    Reads,
    StateKey,
    Status,
    Verdicts,
    make_pod,
)
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nominator import Nominator
from tests.framework.support import (
    PluginClass,
    answering,
    make_framework,
    node_info,
    nodes,
    plugin,
    pod,
    traceback_names,
)

POD = pod()
MAY = "may answer only Success, Error, Unschedulable, UnschedulableAndUnresolvable"


def only(*names: str) -> Callable[[], object]:
    return answering(PreFilterResult.of(names))


def pre_filter(*plugins: PluginClass) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
    return make_framework(*plugins).run_pre_filter_plugins(CycleState(), POD)


class TestPreFilter:
    def test_without_plugins_all_nodes_are_left(self) -> None:
        assert pre_filter() == (None, Status.success(), frozenset())

    def test_it_sees_all_nodes_of_the_snapshot(self) -> None:
        seen: list[str] = []

        def look(nodes: Sequence[NodeInfo]) -> None:
            seen.extend(info.name for info in nodes)

        make_framework(plugin("A", pre_filter=look), nodes=nodes("b", "a")).run_pre_filter_plugins(
            CycleState(), POD
        )
        assert seen == ["b", "a"]

    def test_results_of_several_plugins_are_intersected(self) -> None:
        result, status, narrowing = pre_filter(
            plugin("A", pre_filter=only("a", "b", "c")),
            plugin("B", pre_filter=answering(None)),
            plugin("C", pre_filter=only("b", "c", "d")),
        )
        assert result == PreFilterResult.of(["b", "c"])
        assert status.is_success
        assert narrowing == {"A", "C"}

    def test_one_plugin_that_leaves_no_node_is_named(self) -> None:
        result, status, narrowing = pre_filter(plugin("A", pre_filter=only()))
        assert result == PreFilterResult.of([])
        assert status == Status.unresolvable("node(s) didn't satisfy plugin A")
        assert narrowing == {"A"}

    def test_several_that_leave_none_together_are_named_sorted(self) -> None:
        result, status, narrowing = pre_filter(
            plugin("B", pre_filter=only("a")),
            plugin("C", pre_filter=answering(None)),
            plugin("A", pre_filter=only("b")),
            plugin("D", pre_filter=answering(AssertionError("is not asked any more"))),
        )
        assert result == PreFilterResult.of([])
        assert status == Status.unresolvable("node(s) didn't satisfy plugin(s) [A B] simultaneously")
        assert narrowing == {"A", "B"}

    def test_unschedulable_lets_the_others_run_for_preemption_needs_their_state(self) -> None:
        ran: list[str] = []
        result, status, _ = pre_filter(
            plugin("A", pre_filter=answering(Status.unschedulable("first"))),
            plugin("B", pre_filter=lambda: ran.append("B")),
            plugin("C", pre_filter=answering(Status.unschedulable("second"))),
        )
        assert ran == ["B"]
        assert status == Status.unschedulable("second").with_plugin("C")
        assert result is None

    def test_unresolvable_ends_it(self) -> None:
        _, status, narrowing = pre_filter(
            plugin("A", pre_filter=only("a")),
            plugin("B", pre_filter=answering(Status.unresolvable("no claim"))),
            plugin("C", pre_filter=answering(AssertionError("is not asked any more"))),
        )
        assert status == Status.unresolvable("no claim").with_plugin("B")
        assert narrowing == frozenset()

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.from_error("no disk"), "no disk"),
            (Status.pending("later"), "later"),
            (
                Status.wait(1, "soon"),
                f"Wait (soon), but pre_filter {MAY} or Skip",
            ),
            (
                Status.pending(),
                f"Pending, but pre_filter {MAY} or Skip",
            ),
            (Status.pending("no token"), "no token"),
            (ValueError("no disk"), "ValueError: no disk"),
            (KeyError(), "KeyError"),
            (42, "pre_filter must return None, a PreFilterResult of a set of names, or a Status, not 42"),
        ],
    )
    def test_anything_else_is_an_error(self, answer: object, text: str) -> None:
        result, status, narrowing = pre_filter(
            plugin("A", pre_filter=answering(answer)),
            plugin("B", pre_filter=answering(AssertionError("is not asked any more"))),
        )
        assert (result, narrowing) == (None, frozenset())
        assert status.code is Code.ERROR
        assert status.plugin == "A"
        assert status.message == f'running PreFilter plugin "A": {text}'

    @pytest.mark.parametrize("make", [PreFilterResult, PreFilterResult.of])
    @pytest.mark.parametrize(
        ("names", "text"),
        [
            ("n0", r"node_names: expected several texts, found one: 'n0'; write \('n0',\)"),
            (5, "node_names: expected texts, found 5"),
            ([5], "node_names: expected texts, found 5"),
        ],
    )
    def test_a_lone_text_is_no_set_of_names(
        self, make: Callable[[Any], PreFilterResult], names: object, text: str
    ) -> None:
        with pytest.raises(TypeError, match=text):
            make(names)
        _, status, _ = pre_filter(plugin("A", pre_filter=lambda: make(names)))
        assert status.message.startswith('running PreFilter plugin "A": TypeError: node_names: expected')

    def test_an_exception_keeps_its_traceback(self) -> None:
        def break_down() -> None:
            raise ValueError("no disk")

        _, status, _ = pre_filter(plugin("A", pre_filter=break_down))
        assert traceback_names(status)[-1] == "break_down"

    def test_skipping_plugins_are_noted_however_it_ends(self) -> None:
        for last in (None, Status.unresolvable("no"), ValueError("no"), PreFilterResult.of([])):
            state = CycleState()
            make_framework(
                plugin("A", pre_filter=answering(Status.skip())),
                plugin("B", pre_filter=answering(None)),
                plugin("C", pre_filter=answering(last)),
            ).run_pre_filter_plugins(state, POD)
            assert state.skip_filter_plugins == {"A"}


class TestFilter:
    def test_the_first_refusal_in_profile_order_counts(self) -> None:
        framework = make_framework(
            plugin("A", filter=answering(None)),
            plugin("B", filter=answering(Status.unschedulable("Insufficient cpu"))),
            plugin("C", filter=answering(AssertionError("is not asked any more"))),
        )
        assert framework.run_filter_plugins(CycleState(), POD, node_info()) == (
            Status.unschedulable("Insufficient cpu").with_plugin("B")
        )

    def test_success_may_be_said_or_left_unsaid(self) -> None:
        framework = make_framework(
            plugin("A", filter=answering(None)), plugin("B", filter=answering(Status.success()))
        )
        assert framework.run_filter_plugins(CycleState(), POD, node_info()) == Status.success()

    @pytest.mark.parametrize(
        "refused", [Status.unschedulable("x"), Status.unresolvable("x", "y"), Status.pending("x")]
    )
    def test_refusals_come_back_with_their_plugin(self, refused: Status) -> None:
        framework = make_framework(plugin("A", filter=answering(refused)))
        assert framework.run_filter_plugins(CycleState(), POD, node_info()) == refused.with_plugin("A")

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.from_error("no disk"), "no disk"),
            (Status.skip(), f"Skip, but filter {MAY} or Pending"),
            (Status.wait(1, "soon"), f"Wait (soon), but filter {MAY} or Pending"),
            (ValueError("no disk"), "ValueError: no disk"),
            (True, "filter must return None or a Status, not True"),
        ],
    )
    def test_anything_else_is_an_error(self, answer: object, text: str) -> None:
        framework = make_framework(plugin("A", filter=answering(answer)))
        status = framework.run_filter_plugins(CycleState(), POD, node_info())
        assert status.code is Code.ERROR
        assert status.plugin == "A"
        assert status.message == f'running "A" filter plugin: {text}'

    def test_an_exception_keeps_its_traceback(self) -> None:
        def break_down() -> None:
            raise ValueError("no disk")

        framework = make_framework(plugin("A", filter=break_down))
        status = framework.run_filter_plugins(CycleState(), POD, node_info())
        assert traceback_names(status)[-1] == "break_down"

    def test_plugins_that_skipped_in_pre_filter_are_not_asked(self) -> None:
        asked: list[str] = []
        framework = make_framework(
            plugin("A", pre_filter=answering(Status.skip()), filter=lambda: asked.append("A")),
            plugin("B", filter=lambda: asked.append("B")),
        )
        state = CycleState()
        framework.run_pre_filter_plugins(state, POD)
        framework.run_filter_plugins(state, POD, node_info())
        assert asked == ["B"]
        framework.run_filter_plugins(CycleState(), POD, node_info())
        assert asked == ["B", "A", "B"]

    def test_for_an_explanation_each_says_its_own(self) -> None:
        framework = make_framework(
            plugin("A", filter=answering(Status.unschedulable("too hot"))),
            plugin("B", filter=answering(None)),
            plugin("C", filter=answering(ValueError("no disk"))),
            plugin("D", pre_filter=answering(Status.skip()), filter=answering(None)),
        )
        state = CycleState()
        framework.run_pre_filter_plugins(state, POD)
        verdicts = framework.run_each_filter_plugin(state, POD, node_info())
        assert {name: (status.code, status.message) for name, status in verdicts.items()} == {
            "A": (Code.UNSCHEDULABLE, "too hot"),
            "B": (Code.SUCCESS, ""),
            "C": (Code.ERROR, 'running "C" filter plugin: ValueError: no disk'),
        }
        assert verdicts["A"].plugin == "A"
        assert verdicts["C"].plugin == "C"


@pytest.mark.parametrize(
    ("operation", "hook"), [("AddPod", "pre_filter_add_pod"), ("RemovePod", "pre_filter_remove_pod")]
)
class TestExtensions:
    OTHER = PodInfo.of(pod("other"))

    def run(self, framework: Framework, operation: str, state: CycleState | None = None) -> Status:
        run = (
            framework.run_pre_filter_add_pod if operation == "AddPod" else framework.run_pre_filter_remove_pod
        )
        return run(state or CycleState(), POD, self.OTHER, node_info())

    def test_they_run_in_profile_order(self, operation: str, hook: str) -> None:
        order: list[str] = []
        framework = make_framework(
            plugin("B", **{"pre_filter": answering(None), hook: lambda: order.append("B")}),
            plugin("A", **{"pre_filter": answering(None), hook: lambda: order.append("A")}),
        )
        assert self.run(framework, operation).is_success
        assert order == ["B", "A"]

    def test_plugins_that_skipped_are_left_alone(self, operation: str, hook: str) -> None:
        framework = make_framework(
            plugin(
                "A", **{"pre_filter": answering(Status.skip()), hook: answering(AssertionError("was asked"))}
            )
        )
        state = CycleState()
        framework.run_pre_filter_plugins(state, POD)
        assert self.run(framework, operation, state).is_success

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (Status.unschedulable("no"), "no"),
            (Status.from_error("no disk"), "no disk"),
            (ValueError("no disk"), "ValueError: no disk"),
        ],
    )
    def test_anything_but_success_is_an_error_and_ends_it(
        self, operation: str, hook: str, answer: object, text: str
    ) -> None:
        framework = make_framework(
            plugin("A", **{"pre_filter": answering(None), hook: answering(answer)}),
            plugin(
                "B",
                **{"pre_filter": answering(None), hook: answering(AssertionError("is not asked any more"))},
            ),
        )
        status = self.run(framework, operation)
        assert status.code is Code.ERROR
        assert status.plugin == "A"
        assert status.message == f'running {operation} on PreFilter plugin "A": {text}'


@attrs.define
class Counted:
    """How many pods are about, as pre_filter would work it out."""

    pods: int

    def clone(self) -> Counted:
        return Counted(self.pods)


COUNTED = StateKey[Counted]("Room.counted")


def room_for(limit: int) -> PluginClass:
    """Passes nodes with fewer pods than the limit, by its own books, which must agree with the node's."""

    def start(state: CycleState) -> None:
        state.write(COUNTED, Counted(0))

    def add(state: CycleState) -> None:
        state.read(COUNTED).pods += 1

    def check(state: CycleState, node_info: NodeInfo) -> Status | None:
        counted = state.read(COUNTED).pods
        assert counted == len(node_info.pods)
        return None if counted < limit else Status.unschedulable("Too many pods")

    return plugin("Room", pre_filter=start, pre_filter_add_pod=add, filter=check)


class TestFilterWithNominatedPods:
    def run(
        self, *plugins: PluginClass, nominated: Sequence[Pod] = (), incoming: Pod = POD
    ) -> tuple[Status, CycleState, NodeInfo]:
        nominator = Nominator()
        for each in nominated:
            nominator.add(PodInfo.of(each), "n")
        framework = make_framework(*plugins, nodes=nodes("n"), nominator=nominator)
        state, info = CycleState(), framework.handle.snapshot.get("n")
        framework.run_pre_filter_plugins(state, incoming)
        return framework.run_filter_plugins_with_nominated_pods(state, incoming, info), state, info

    def test_without_any_the_node_is_asked_once(self) -> None:
        asked: list[int] = []
        self.run(plugin("A", filter=lambda node_info: asked.append(len(node_info.pods))))
        assert asked == [0]

    def test_otherwise_first_with_them_and_then_without(self) -> None:
        asked: list[int] = []
        status, _, _ = self.run(
            plugin("A", filter=lambda node_info: asked.append(len(node_info.pods))),
            nominated=[pod("x"), pod("y")],
        )
        assert status.is_success
        assert asked == [2, 0]

    def test_a_node_that_fails_with_them_is_refused_and_not_asked_again(self) -> None:
        status, state, info = self.run(room_for(1), nominated=[pod("x")])
        assert status == Status.unschedulable("Too many pods").with_plugin("Room")
        assert state.read(COUNTED).pods == 0, "the state that was changed is a clone"
        assert info.pods == (), "and so is the node"

    def test_a_node_that_passes_only_with_them_is_refused(self) -> None:
        lonely = Status.unschedulable("needs company")
        company = plugin("Company", filter=lambda node_info: None if node_info.pods else lonely)
        status, _, _ = self.run(company, nominated=[pod("x")])
        assert status == lonely.with_plugin("Company")

    def test_it_must_pass_both_times(self) -> None:
        status, _, _ = self.run(room_for(2), nominated=[pod("x")])
        assert status.is_success

    @pytest.mark.parametrize(
        ("priority", "counts"), [(9, False), (10, True), (11, True)], ids=["lower", "equal", "higher"]
    )
    def test_only_those_of_equal_or_higher_priority_count(self, priority: int, counts: bool) -> None:
        status, _, _ = self.run(
            room_for(1), nominated=[pod("x", priority=priority)], incoming=pod("incoming", priority=10)
        )
        assert status.is_success is not counts

    def test_a_pod_does_not_stand_in_its_own_way(self) -> None:
        status, _, _ = self.run(room_for(1), nominated=[POD])
        assert status.is_success

    def test_a_failing_extension_is_an_error(self) -> None:
        failing = plugin(
            "A",
            pre_filter=answering(None),
            pre_filter_add_pod=answering(ValueError("lost count")),
            filter=answering(None),
        )
        status, _, _ = self.run(failing, nominated=[pod("x")])
        assert status.code is Code.ERROR
        assert status.message == 'running AddPod on PreFilter plugin "A": ValueError: lost count'


REFUSALS = (Status.success(), Status.unschedulable("too hot"), Status.unresolvable("wrong rack"))


def verdicts_on(
    framework: Framework, infos: Sequence[NodeInfo] | None = None, state: CycleState | None = None
) -> dict[str, Status]:
    """The verdict on each node, in order, and "error" for what ended the search."""
    snapshot = framework.handle.snapshot
    nodes = NodeSelection.of(snapshot.table, snapshot.node_infos if infos is None else infos)
    assert nodes is not None
    found = framework.filter_nodes(CycleState() if state is None else state, POD, nodes)
    refused = dict(found.refused)
    verdicts = {
        info.name: refused.get(info.name, Status.success())
        for info in nodes
        if info.name in refused or info.name in found.feasible.names
    }
    return verdicts if found.error is None else verdicts | {"error": found.error}


class TestBatch:
    """`filter_nodes` uses the batch forms, and nobody can tell from the verdicts."""

    def framework(
        self,
        codes: Sequence[int],
        batch: Callable[..., object] | None = None,
        nominator: Nominator | None = None,
        more: Sequence[PluginClass] = (),
        evaluation: Evaluation = Evaluation.MEMO,
    ) -> tuple[Framework, list[str]]:
        """A plugin that answers node n<i> by codes[i], and the names of nodes on which its scalar form was asked."""
        asked: list[str] = []

        def scalar(node_info: NodeInfo) -> Status | None:
            asked.append(node_info.name)
            return REFUSALS[codes[int(node_info.name[1:])]]

        def all_at_once(nodes: NodeTable, rows: np.ndarray) -> Verdicts:
            return Verdicts(
                np.array([codes[int(nodes.names[row][1:])] for row in rows], dtype=np.int8), REFUSALS
            )

        rack = plugin("Rack", filter=scalar, filter_batch=batch or all_at_once)
        names = [f"n{index}" for index in range(len(codes))]
        framework = make_framework(
            rack, *more, nodes=nodes(*names), nominator=nominator, evaluation=evaluation
        )
        return framework, asked

    def test_none_leaves_it_to_the_scalar_form(self) -> None:
        framework, asked = self.framework([1], batch=answering(None))
        assert verdicts_on(framework) == {"n0": REFUSALS[1].with_plugin("Rack")}
        assert asked == ["n0"]

    def test_nodes_with_nominated_pods_are_asked_about_as_if_these_were_there_too(self) -> None:
        nominator = Nominator()
        nominator.add(PodInfo.of(pod("x")), "n1")
        framework, asked = self.framework([0, 0, 0], nominator=nominator)
        assert verdicts_on(framework) == dict.fromkeys(("n0", "n1", "n2"), Status.success())
        assert asked == ["n1"]

    @pytest.mark.parametrize("evaluation", Evaluation)
    @pytest.mark.parametrize("batch", [None, answering(None)], ids=["together", "node by node"])
    def test_the_first_refusal_is_the_reason_where_another_filter_refuses_the_nominated_pods_too(
        self, batch: Callable[..., object] | None, evaluation: Evaluation
    ) -> None:
        def full(node_info: NodeInfo) -> Status | None:
            return Status.unschedulable("full") if node_info.pods else None

        def nobody_there(rows: np.ndarray) -> Verdicts:
            return Verdicts.passing(len(rows))

        nominator = Nominator()
        for name in ("n0", "n1"):
            nominator.add(PodInfo.of(pod(f"on-{name}")), name)
        room = plugin("Room", filter=full, filter_batch=nobody_there)
        framework, _ = self.framework(
            [1, 0], batch=batch, nominator=nominator, more=[room], evaluation=evaluation
        )
        type(framework.plugins["Rack"]).reads = Reads.NODE
        assert verdicts_on(framework) == {
            "n0": REFUSALS[1].with_plugin("Rack"),
            "n1": Status.unschedulable("full").with_plugin("Room"),
        }

    @pytest.mark.parametrize("evaluation", Evaluation)
    def test_an_error_ends_the_search_where_a_later_filter_refuses_the_nominated_pods(
        self, evaluation: Evaluation
    ) -> None:
        def rack(node_info: NodeInfo) -> Status | None:
            return Status.from_error("no disk") if node_info.name == "n1" else None

        nominator = Nominator()
        nominator.add(PodInfo.of(pod("x")), "n1")
        framework = make_framework(
            plugin("Rack", filter=rack, reads=Reads.NODE),
            plugin(
                "Room",
                filter=lambda node_info: Status.unschedulable("full") if node_info.pods else None,
            ),
            nodes=nodes("n0", "n1", "n2"),
            nominator=nominator,
            evaluation=evaluation,
        )
        found = framework.filter_nodes(CycleState(), pod("p"), framework.handle.snapshot.selection)
        assert found.error is not None
        assert found.error.plugin == "Rack"
        assert found.feasible.names == ("n0",)

    @pytest.mark.parametrize("evaluation", Evaluation)
    def test_an_error_on_a_node_that_its_nominated_pods_refuse_ends_no_search(
        self, evaluation: Evaluation
    ) -> None:
        answers = {"n0": Status.from_error("no disk"), "n1": REFUSALS[1]}

        def rack(nodes: NodeTable, rows: np.ndarray) -> Verdicts:
            codes = [
                [*answers].index(name) + 1 if name in answers else 0 for name in np.take(nodes.names, rows)
            ]
            return Verdicts(np.array(codes), (Status.success(), *answers.values()))

        nominator = Nominator()
        nominator.add(PodInfo.of(pod("x")), "n0")
        framework = make_framework(
            plugin(
                "Room",
                filter=lambda node_info: Status.unschedulable("full") if node_info.pods else None,
                filter_batch=lambda rows: Verdicts.passing(len(rows)),
            ),
            plugin("Rack", filter=lambda node_info: answers.get(node_info.name), filter_batch=rack),
            plugin("Last", filter=answering(None)),
            nodes=nodes(*(f"n{index}" for index in range(20))),
            nominator=nominator,
            evaluation=evaluation,
        )
        found = framework.filter_nodes(CycleState(), POD, framework.handle.snapshot.selection, 2)
        assert (found.feasible.names, found.error) == (("n2", "n3"), None)
        assert dict(found.refused) == {
            "n0": Status.unschedulable("full").with_plugin("Room"),
            "n1": REFUSALS[1].with_plugin("Rack"),
        }

    def test_plugins_without_one_are_asked_in_their_turn(self) -> None:
        asked_last: list[str] = []
        last = plugin("Last", filter=lambda node_info: asked_last.append(node_info.name))
        framework, _ = self.framework([0, 1, 0], more=[last])
        assert [status.code for status in verdicts_on(framework).values()] == [
            Code.SUCCESS,
            Code.UNSCHEDULABLE,
            Code.SUCCESS,
        ]
        assert asked_last == ["n0", "n2"]

    def test_an_exception_of_the_scalar_form_beside_it_is_an_error(self) -> None:
        framework, _ = self.framework([0], more=[plugin("Last", filter=answering(ValueError("no disk")))])
        assert verdicts_on(framework)["error"].message == 'running "Last" filter plugin: ValueError: no disk'

    def test_reasons_may_come_as_a_list(self) -> None:
        status = Status(Code.UNSCHEDULABLE, ["too hot"])
        framework = make_framework(plugin("A", filter=answering(status)), nodes=nodes("n0"))
        assert verdicts_on(framework) == {"n0": Status.unschedulable("too hot").with_plugin("A")}

    def test_a_plugin_that_skipped_is_not_asked(self) -> None:
        skipped = plugin(
            "A",
            pre_filter=answering(Status.skip()),
            filter=answering(None),
            filter_batch=answering(AssertionError("was asked")),
        )
        framework = make_framework(skipped, nodes=nodes("n"))
        state = CycleState()
        framework.run_pre_filter_plugins(state, POD)
        assert verdicts_on(framework, state=state)["n"].is_success

    def test_no_nodes_are_no_question(self) -> None:
        framework, _ = self.framework([0], batch=answering(AssertionError("was asked")))
        assert verdicts_on(framework, []) == {}

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (ValueError("no disk"), "ValueError: no disk"),
            ([0, 1], "filter_batch must return None or Verdicts, not [0, 1]"),
            (
                Verdicts(np.array([0]), REFUSALS),
                "the verdicts' codes must be integers of shape (2,), not int64 of shape (1,)",
            ),
            (
                Verdicts(np.array([0.0, 1.0]), REFUSALS),
                "the verdicts' codes must be integers of shape (2,), not float64 of shape (2,)",
            ),
            (Verdicts(np.array([0, 3]), REFUSALS), "the verdicts have a code 3 but 3 statuses"),
            (Verdicts(np.array([0, -1]), REFUSALS), "the verdicts have a code -1 but 3 statuses"),
        ],
    )
    def test_a_failure_or_a_wrong_answer_is_an_error_on_every_node(self, answer: object, text: str) -> None:
        framework, _ = self.framework([0, 0], batch=answering(answer))
        for infos in (list(framework.handle.snapshot.node_infos), framework.handle.snapshot.node_infos[::-1]):
            ((name, status),) = verdicts_on(framework, infos).items()
            assert name == "error", "which ends the search"
            assert status.code is Code.ERROR
            assert status.plugin == "Rack"
            assert status.message == f'running "Rack" filter plugin: {text}'

    def test_a_code_without_refusal_is_an_error_or_a_pass_as_in_the_scalar_form(self) -> None:
        statuses = (Status.success(), Status.success(), Status.skip())
        rack = plugin(
            "Rack",
            filter=lambda node_info: statuses[int(node_info.name[1:]) + 1],
            filter_batch=answering(Verdicts(np.array([1, 2]), statuses)),
        )
        verdicts = verdicts_on(make_framework(rack, nodes=nodes("n0", "n1")))
        assert verdicts["n0"].is_success
        assert verdicts["error"].message == (
            f'running "Rack" filter plugin: Skip, but filter {MAY} or Pending'
        )

    def test_refuse_makes_verdicts_of_one_reason(self) -> None:
        verdicts = Verdicts.refuse(np.array([True, False]), Status.unschedulable("too hot"))
        assert [verdicts.of(0), verdicts.of(1)] == [Status.unschedulable("too hot"), None]


def test_a_pod_that_names_no_priority_has_priority_zero() -> None:
    assert make_pod().build().priority == 0
