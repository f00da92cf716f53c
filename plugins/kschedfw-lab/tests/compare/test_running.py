"""The same cluster and pods under several configurations."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random

import pytest
from compare.scenes import bare, node, packing, pod, spreading, two_nodes
from hypothesis import given, settings
from kschedfw_lab.compare import Comparison, FateChange, Ground, Move, Setup, compare

from kschedfw import InMemoryCluster, Pod, make_pod
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.simulator import Outcome, Simulation
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


def only_move(comparison: Comparison) -> Move:
    ((move,),) = [moves.moves for moves in comparison.moves]
    return move


def test_all_runs_begin_at_the_same_time_and_attempts_take_equally_long() -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    comparison = compare(two_nodes(pod("web")), [spreading(), packing()], start_time=noon, attempt_time=2.0)
    assert [run.report.start for run in comparison.runs] == [noon.timestamp()] * 2
    assert [run.report.decisions[0].bound for run in comparison.runs] == [2.0, 2.0]


class TestMoves:
    def test_a_pod_that_another_score_draws_elsewhere(self) -> None:
        move = only_move(compare(two_nodes(pod("web")), [spreading(), packing()]))
        assert (move.pod, move.change) == ("default/web", FateChange.MOVED)
        assert move.before is not None
        assert move.after is not None
        assert (move.before.node, move.after.node) == ("n2", "n1")
        assert move.against is not None
        assert (move.against.node, move.against.ground) == ("n2", Ground.OUTSCORED)
        assert str(move.against).endswith("most by NodeResourcesFit: 50×10 to 25×10")
        assert move.baseline_against is not None
        assert (move.baseline_against.node, move.baseline_against.chosen) == ("n1", "n2")
        assert str(move.baseline_against).endswith("most by NodeResourcesFit: 75×1 to 50×1")

    def test_the_refusal_of_a_node_has_its_evidence_and_a_pod_without_a_place_its_causes(self) -> None:
        # Spread, the two small pods leave no node with 4 CPUs; packed, they do.
        cluster = InMemoryCluster([node("n1"), node("n2"), pod("a"), pod("b"), pod("c", cpu=4)])
        comparison = compare(cluster, [packing(), spreading()], causes=True)
        lost = next(move for move in comparison.moves[0].moves if move.pod == "default/c").to_json()
        assert lost["code"] == "no-longer-placed"
        against, after = lost["against"], lost["after"]
        assert isinstance(against, dict)
        assert isinstance(after, dict)
        (evidence,) = against["evidence"]
        assert (against["ground"], evidence["code"]) == ("refused", "insufficient-resource")
        assert (evidence["parameters"]["resource"], evidence["parameters"]["short"]) == ("cpu", 1000)
        (cause,) = after["causes"]
        assert (cause["code"], cause["nodes"]) == ("insufficient-resource", 2)

    def test_a_pod_that_finds_its_place_taken(self) -> None:
        # Spread, the two small pods leave no node with 4 CPUs; packed, they do.
        first, second = pod("a", cpu=1), pod("b", cpu=1)
        big = pod("c", cpu=4)
        cluster = InMemoryCluster([node("n1"), node("n2"), first, second, big])
        comparison = compare(cluster, [packing(), spreading()])
        (moves,) = comparison.moves
        lost = next(move for move in moves.moves if move.pod == "default/c")
        assert lost.change is FateChange.LOST
        assert lost.after is not None
        assert lost.after.outcome is Outcome.UNSCHEDULABLE
        assert lost.against is not None
        assert (lost.against.plugin, lost.against.reasons) == ("NodeResourcesFit", ("Insufficient cpu",))
        assert moves.causes[Ground.REFUSED, "NodeResourcesFit"] == 1
        (back,) = compare(cluster, [spreading(), packing()]).moves
        gained = next(move for move in back.moves if move.pod == "default/c")
        assert gained.change is FateChange.GAINED
        assert gained.against is None
        assert gained.baseline_against is not None
        assert gained.baseline_against.ground is Ground.REFUSED

    def test_pods_that_are_placed_nowhere_but_for_another_reason(self) -> None:
        gated = make_pod("gated").requests(cpu=9, memory="1Gi").scheduling_gate("wait").build()
        comparison = compare(two_nodes(gated), [spreading(), bare("NodeResourcesFit")])
        move = only_move(comparison)
        assert move.change is FateChange.OTHER
        assert (move.against, move.baseline_against) == (None, None)

    def test_a_pod_that_a_configuration_does_not_schedule_at_all(self) -> None:
        cluster = two_nodes(make_pod("own").scheduler_name("packing").build(), pod("web"))
        default = Setup("default", spreading().configuration)
        (moves,) = compare(cluster, [packing(), default]).moves
        lost = next(move for move in moves.moves if move.pod == "default/own")
        assert (lost.change, lost.after) == (FateChange.LOST, None)

    def test_the_last_attempt_counts(self) -> None:
        # The first pod is refused until preemption has made room for it.
        victim = make_pod("victim").requests(cpu=4).node("n1").priority(-5).build()
        cluster = InMemoryCluster([node("n1"), victim, make_pod("vip").requests(cpu=4).priority(9).build()])
        (moves,) = compare(cluster, [spreading(), bare("NodeResourcesFit")]).moves
        move = next(each for each in moves.moves if each.pod == "default/vip")
        assert move.change is FateChange.LOST
        assert move.against is not None
        assert move.against.reasons == ("Insufficient cpu",)


class TestRuns:
    def test_each_begins_with_the_cluster_as_it_is_and_leaves_it_so(self) -> None:
        cluster = two_nodes(pod("web"))
        version = cluster.resource_version
        compare(cluster, [spreading(), packing()])
        assert cluster.resource_version == version
        assert [each.node_name for each in cluster.list(Pod)] == ["n1", ""]

    def test_each_does_what_a_simulation_does(self) -> None:
        pods = [pod(f"web-{index}") for index in range(5)]
        comparison = compare(two_nodes(*pods), [spreading(), packing()], seed=3)
        for run, candidate in zip(comparison.runs, [spreading(), packing()], strict=True):
            cluster = InMemoryCluster(two_nodes(*pods).list(Pod))
            cluster = candidate.cluster_of([node("n1"), node("n2"), *cluster.list(Pod)])
            alone = Simulation(cluster, profiles=candidate.profiles, seed=3).run()
            assert run.report.decisions == alone.decisions

    def test_have_every_node_in_the_inputs_order(self) -> None:
        (run, _) = compare(two_nodes(pod("web")), [packing(), spreading()]).runs
        assert [(each.node, each.pods) for each in run.allocations] == [("n1", 2), ("n2", 0)]
        assert run.nodes_in_use == 1

    def test_notes_go_along(self) -> None:
        comparison = compare(two_nodes(), [spreading(), packing()], notes=["a note"])
        assert comparison.notes == ("a note",)

    def test_progress_is_told_for_every_run(self) -> None:
        told: list[tuple[str, int, int]] = []
        compare(
            two_nodes(pod("web")),
            [spreading(), packing()],
            progress=lambda what, done, total: told.append((what, done, total)),
        )
        assert list(dict.fromkeys(what for what, _, _ in told)) == [
            "spreading",
            "packing",
            "spreading, once more to see why",
        ]
        assert told[-1][1:] == (1, 1)

    @pytest.mark.parametrize("labels", [[], ["same", "same"]])
    def test_candidates_need_labels_of_their_own(self, labels: list[str]) -> None:
        with pytest.raises(ValueError, match="labels of their own"):
            compare(two_nodes(), [spreading(label) for label in labels])

    def test_an_interruption_ends_it_with_what_there_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begin_attempt = Scheduler.begin_attempt
        calls = iter(range(100))

        def interrupted(self: Scheduler) -> object:
            if next(calls) == 3:  # one pod, and a look for more, in the first run
                raise KeyboardInterrupt
            return begin_attempt(self)

        monkeypatch.setattr(Scheduler, "begin_attempt", interrupted)
        comparison = compare(two_nodes(pod("a"), pod("b")), [spreading(), packing(), bare()])
        assert comparison.interrupted
        assert [run.report.interrupted for run in comparison.runs] == [False, True]
        assert comparison.moves == []


class TestJson:
    def test_has_runs_and_moves(self) -> None:
        comparison = compare(two_nodes(pod("web")), [spreading(), packing()])
        document = json.loads(json.dumps(comparison.to_json()))
        assert document["baseline"] == "spreading"
        spread, packed = document["runs"]
        assert (spread["label"], spread["nodesInUse"], packed["nodesInUse"]) == ("spreading", 2, 1)
        assert packed["imbalance"]["betweenNodes"]["cpu"] == 0.25
        assert packed["fragmentation"]["cpu"] == {"unusable": 0, "free": 6000, "share": 0}
        assert packed["nodeAllocations"][0]["requested"]["cpu"] == 2000
        (moves,) = document["moves"]
        assert moves["counts"]["moved"] == 1
        assert moves["causes"] == [{"ground": "outscored", "plugin": "NodeResourcesFit", "pods": 1}]
        assert moves["moves"][0]["against"]["plugin"] == "NodeResourcesFit"


@pytest.mark.slow
class TestProperties:
    @given(clusters(most_nodes=4, most_pending=5))
    @settings(max_examples=examples(8))
    def test_a_configuration_compared_with_itself_moves_nothing(self, found: DrawnCluster) -> None:
        cluster = InMemoryCluster([*found.nodes, *found.bound, *found.pending])
        comparison = compare(cluster, [packing("a"), packing("b")])
        assert [moves.moves for moves in comparison.moves] == [()]
        first, second = comparison.runs
        assert first.allocations == second.allocations
        assert first.fragmentation == second.fragmentation
        assert first.imbalance_within == second.imbalance_within

    @given(clusters(most_nodes=4, most_pending=5))
    @settings(max_examples=examples(8))
    def test_whoever_moved_has_something_against_the_other_node_on_both_sides(
        self, found: DrawnCluster
    ) -> None:
        cluster = InMemoryCluster([*found.nodes, *found.bound, *found.pending])
        comparison = compare(cluster, [spreading(), packing()], seed=Random(1).randrange(9))
        for move in comparison.moves[0].moves:
            if move.change is FateChange.MOVED:
                assert move.before is not None
                assert move.after is not None
                assert move.against is not None
                assert move.baseline_against is not None
                assert (move.against.node, move.against.chosen) == (move.before.node, move.after.node)
                assert move.baseline_against.node == move.after.node
                assert move.baseline_against.chosen == move.before.node
