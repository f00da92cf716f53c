"""Changes are tried, kept, undone and redone; what they lead to is what a fresh scheduler would do."""

from __future__ import annotations

import pytest
from explore.clusters import GATES, PROFILE, cluster, default_configuration, groups
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_advisor.explore.changes import (
    AddNodes,
    AddObjects,
    Change,
    ChangeError,
    Cordon,
    DeleteNodes,
    DeletePods,
    Drain,
    Reschedule,
    SetArguments,
    SetWeight,
    SwitchPlugin,
    Uncordon,
)
from kschedfw_advisor.explore.outcome import Move, moves
from kschedfw_advisor.explore.state import state_of
from kschedfw_advisor.explore.workbench import Workbench

from kschedfw import InMemoryCluster
from kschedfw.api.errors import KschedfwError
from kschedfw.explain import Result
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters

POD = "{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: c, image: i}]}}"


@pytest.fixture
def bench() -> Workbench:
    return Workbench(cluster(), default_configuration())


def told(bench: Workbench, *changes: Change) -> dict[str, tuple[str, str | None, str | None]]:
    """The moves by pod."""
    found = moves(bench.outcome(), bench.outcome((*bench.kept, *changes)))
    return {each.pod.removeprefix("default/"): (each.change, each.before, each.after) for each in found}


class TestChanges:
    def test_without_any_pending_pods_are_placed_and_others_have_a_reason(self, bench: Workbench) -> None:
        fates = bench.outcome().fates
        assert fates["default/busy"].node == "cpu-taken"
        assert not fates["default/busy"].is_new
        assert fates["default/web"].is_new
        assert "3 nodes are available" in fates["default/huge"].why
        assert "example.com/quota" in fates["default/gated"].why

    def test_a_weight_moves_a_pod(self, bench: Workbench) -> None:
        before = bench.outcome().fates["default/web"].node
        strategy = {"type": "MostAllocated", "resources": [{"name": "memory", "weight": 1}]}
        most = SetArguments(PROFILE, "NodeResourcesFit", {"scoringStrategy": strategy})
        found = told(bench, most, SetWeight(PROFILE, "NodeResourcesFit", 100))
        assert before == "cpu-taken"
        assert found == {"web": ("moves", "cpu-taken", "memory-taken")}

    def test_a_plugin_that_is_off_refuses_nothing(self, bench: Workbench) -> None:
        assert (
            told(bench, SwitchPlugin(PROFILE, "NodeResourcesFit", enabled=False))["huge"][0] == "newly placed"
        )

    def test_a_drain_moves_what_may_leave(self, bench: Workbench) -> None:
        assert told(bench, Drain(("cpu-taken",)))["busy"] == ("moves", "cpu-taken", "memory-taken")
        assert bench.outcome((Drain(("cpu-taken",)),)).notes == [
            "drain cpu-taken: evicts 1 pod, leaves 0 of the node's own"
        ]

    def test_cordon_and_uncordon(self, bench: Workbench) -> None:
        everywhere = Cordon(("cpu-taken", "memory-taken"))
        assert told(bench, everywhere)["web"][0] == "no longer placed"
        assert told(bench, everywhere, Uncordon(("shut",)))["web"] == ("moves", "cpu-taken", "shut")

    def test_a_deleted_node_takes_its_pods_along(self, bench: Workbench) -> None:
        found = told(bench, DeleteNodes(("cpu-taken",)))
        assert found == {"busy": ("gone", "cpu-taken", None), "web": ("moves", "cpu-taken", "memory-taken")}

    def test_more_nodes_like_one(self, bench: Workbench) -> None:
        outcome = bench.outcome((AddNodes("shut", 2),))
        assert [node.name for node in outcome.nodes[3:]] == ["shut-1", "shut-2"]
        assert not outcome.nodes[3].spec.unschedulable, "a new node takes pods, whatever its model does"
        assert outcome.fates["default/web"].node in ("shut-1", "shut-2")

    def test_objects_from_manifests(self, bench: Workbench) -> None:
        found = told(bench, AddObjects(POD, 2))
        assert {name: change for name, (change, _, _) in found.items()} == {
            "new-1": "added",
            "new-2": "added",
        }

    def test_deleted_pods_make_room(self, bench: Workbench) -> None:
        assert told(bench, DeletePods(("default/busy",)))["busy"] == ("gone", "cpu-taken", None)

    def test_pods_are_taken_off_and_scheduled_anew(self, bench: Workbench) -> None:
        outcome = bench.outcome((Reschedule(),))
        assert all(outcome.fates[f"default/{name}"].is_new for name in ("busy", "cache", "web"))

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (Cordon(("nowhere",)), "there is no node 'nowhere'"),
            (AddNodes("nowhere"), "there is no node 'nowhere'"),
            (DeletePods(("default/none",)), "there is no pod 'default/none'"),
            (AddObjects("kind: Pod"), "apiVersion"),
            (AddObjects("# nothing"), "no object"),
            (SetWeight("other", "NodeResourcesFit", 1), "there is no profile 'other'"),
            (SetWeight(PROFILE, "NodeName", 1), "doesn't score"),
            (SwitchPlugin(PROFILE, "NodeResourceFit", enabled=True), "did you mean NodeResourcesFit"),
            (SetArguments(PROFILE, "NodeResourcesFit", {"scoring": 1}), "scoring"),
            (SwitchPlugin(PROFILE, "DefaultBinder", enabled=False), "bind"),
        ],
    )
    def test_a_change_that_cant_be_made_says_why(
        self, bench: Workbench, change: Change, problem: str
    ) -> None:
        with pytest.raises(KschedfwError, match=problem):
            bench.keep((change,))
        assert bench.kept == ()
        assert bench.undoable is None


class TestKeeping:
    def test_what_is_kept_can_be_undone_and_redone(self, bench: Workbench) -> None:
        drain, weight = Drain(("cpu-taken",)), SetWeight(PROFILE, "ImageLocality", 7)
        start = bench.outcome()
        bench.keep((drain,))
        drained = bench.outcome()
        bench.keep((weight,))
        assert (bench.undoable, bench.redoable) == ("weight of ImageLocality: 7", None)
        bench.undo()
        assert bench.outcome().fates == drained.fates
        bench.undo()
        assert bench.outcome().fates == start.fates
        assert (bench.undoable, bench.redoable) == (None, "drain cpu-taken")
        bench.redo()
        bench.redo()
        assert bench.kept == (drain, weight)

    def test_a_new_step_forgets_what_was_undone(self, bench: Workbench) -> None:
        bench.keep((Drain(("cpu-taken",)),))
        bench.undo()
        bench.keep((Cordon(("cpu-taken",)),))
        with pytest.raises(ChangeError, match="nothing to redo"):
            bench.redo()

    def test_nothing_to_undo(self, bench: Workbench) -> None:
        with pytest.raises(ChangeError, match="nothing to undo"):
            bench.undo()


class TestExplaining:
    def test_a_pending_pod_is_explained_at_its_turn(self, bench: Workbench) -> None:
        assert bench.explain("default/web").node == bench.outcome().fates["default/web"].node
        assert bench.explain("default/huge").message == bench.outcome().fates["default/huge"].why

    def test_a_pod_on_a_node_is_explained_as_if_it_were_off(self, bench: Workbench) -> None:
        explanation = bench.explain("default/busy")
        assert explanation.result.value == "placed"
        assert bench.explain("default/busy").node == explanation.node, "nothing is left behind"

    def test_with_changes(self, bench: Workbench) -> None:
        assert bench.explain("default/web", (Cordon(("cpu-taken",)),)).node == "memory-taken"

    def test_a_pod_with_a_gate(self, bench: Workbench) -> None:
        assert bench.explain("default/gated").result.value == "gated"

    def test_an_unknown_pod(self, bench: Workbench) -> None:
        with pytest.raises(ChangeError, match="there is no pod 'none'"):
            bench.explain("none")


class TestGroups:
    @pytest.fixture
    def bench(self) -> Workbench:
        return Workbench(groups(), default_configuration(*GATES))

    def test_a_group_has_a_row_with_its_state_and_its_members_no_place_among_pods(
        self, bench: Workbench
    ) -> None:
        state = state_of(bench)
        rows = {row.name: (row.state, row.placed, len(row.pods), row.least) for row in state.pod_groups}
        assert list(rows.items()) == [
            ("default/train", ("pending", 0, 4, 4)),
            ("default/loose", ("in part", 1, 2, None)),
            ("default/small", ("would fit", 2, 2, 2)),
            ("default/running", ("placed", 2, 2, 2)),
        ]
        names = state.map.pods.names
        assert [[names[pod] for pod in each.pods] for each in state.waiting] == [["default/huge"]]
        assert state.placed == []

    def test_the_reason_of_a_pending_group_is_that_of_its_condition_and_else_that_of_its_members(
        self, bench: Workbench
    ) -> None:
        whys = {row.name: row.why for row in state_of(bench).pod_groups}
        assert whys["default/train"].startswith("0/3 placements are available")
        assert whys["default/loose"].startswith("0/6 nodes are available: 6 Insufficient cpu.")
        assert not whys["default/running"]

    def test_a_pending_group_is_explained_at_its_turn(self, bench: Workbench) -> None:
        step = bench.explain_group("default/train")
        assert [(each.name, each.placed) for each in step.by_distance] == [("b", 2), ("c", 2), ("a", 1)]

    def test_a_group_on_nodes_is_explained_as_if_it_were_off(self, bench: Workbench) -> None:
        assert bench.explain_group("default/running").result is Result.PLACED
        assert told(bench) == {}

    def test_with_changes(self, bench: Workbench) -> None:
        step = bench.explain_group("default/train", (AddNodes("c-1", 2),))
        assert (step.result, step.taken) == (Result.PLACED, "c")

    def test_an_unknown_group_and_pods_that_are_scheduled_one_by_one(self, bench: Workbench) -> None:
        with pytest.raises(ChangeError, match="no group 'default/nobody' with members"):
            bench.explain_group("default/nobody")
        alone = Workbench(groups(), default_configuration())
        assert state_of(alone).pod_groups == []
        with pytest.raises(KschedfwError, match="isn't scheduled together"):
            alone.explain_group("default/train")


def changes_of(given: DrawnCluster) -> st.SearchStrategy[tuple[Change, ...]]:
    """Changes that can be made, one after another."""
    names = [node.name for node in given.nodes]
    one: st.SearchStrategy[Change] = st.one_of(
        st.sampled_from(names).map(lambda name: Cordon((name,))),
        st.sampled_from(names).map(lambda name: Uncordon((name,))),
        st.sampled_from(names).map(lambda name: Drain((name,))),
        st.builds(AddNodes, st.sampled_from(names), st.integers(1, 2)),
        st.builds(SetWeight, st.just(PROFILE), st.just("NodeResourcesFit"), st.integers(0, 20)),
        st.builds(SwitchPlugin, st.just(PROFILE), st.just("TaintToleration"), st.booleans()),
        st.just(Reschedule()),
    )
    return st.lists(one, max_size=4).map(tuple)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(st.data())
def test_an_outcome_is_that_of_the_resulting_objects_and_configuration(data: st.DataObject) -> None:
    given = data.draw(clusters(most_nodes=4, most_bound=4, most_pending=4))
    changes = data.draw(changes_of(given))
    bench = Workbench(InMemoryCluster([*given.nodes, *given.bound, *given.pending]), default_configuration())
    outcome = bench.outcome(changes)
    fresh = Workbench(InMemoryCluster(bench.objects(changes)), bench.configuration(changes))
    assert dict(fresh.outcome().fates) == dict(outcome.fates)
    for pod in given.pending:
        if outcome.fates[pod.key].is_new:
            assert bench.explain(pod.key, changes).node == outcome.fates[pod.key].node
    before = bench.outcome()
    bench.keep(changes)
    bench.undo()
    assert bench.outcome().fates == before.fates


def test_moves_between_outcomes(bench: Workbench) -> None:
    before, after = bench.outcome(), bench.outcome((DeletePods(("default/busy",)),))
    assert list(moves(before, before)) == []
    assert Move("default/busy", "gone", "cpu-taken", None, "deleted") in list(moves(before, after))
    assert Move("default/busy", "added", None, "cpu-taken", "") in list(moves(after, before))
