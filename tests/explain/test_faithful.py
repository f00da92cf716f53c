"""An explanation is of the decision that was made, and having one changes no decision."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import Explaining, ExplainingScheduler, Explanation, Result, Verdict, explain_pod
from kschedfw.explain.sections import headline, overview, plugin_section
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.scheduler import Scheduler
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.simulator import Decision, Simulation
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters
from tests.conformance.decide import profile_of
from tests.conformance.modes import pod_scenarios
from tests.conformance.scenario import LISTS, Scenario

pytestmark = pytest.mark.slow

SCENARIOS = Path(__file__).parents[1] / "conformance" / "data"


def in_memory(cluster: DrawnCluster) -> InMemoryCluster:
    return InMemoryCluster([*cluster.nodes, *cluster.bound, *cluster.pending])


def simulated(
    cluster: InMemoryCluster, seed: int = 0, *, explained: bool, beyond: bool = False, percentage: int = 0
) -> tuple[list[Decision], list[Explanation]]:
    found: list[Explanation] = []
    simulation = Simulation(
        cluster,
        seed=seed,
        parallelism=1,
        percentage_of_nodes_to_score=percentage,
        explaining=Explaining(found.append, beyond=beyond) if explained else None,
    )
    simulation.run()
    return simulation.decisions, found


def equal_nodes(count: int) -> list[Node]:
    return [
        make_node(f"node-{index:03}").capacity(cpu="4", memory="8Gi", pods=10).build()
        for index in range(count)
    ]


class TestNothingChanges:
    @settings(max_examples=examples(10))  # each is a simulation or two
    @given(clusters(most_nodes=6, most_pending=5), st.integers(0, 3), st.booleans())
    def test_the_decisions_are_the_same_with_and_without(
        self, cluster: DrawnCluster, seed: int, beyond: bool
    ) -> None:
        without, _ = simulated(in_memory(cluster), seed, explained=False)
        explained, _ = simulated(in_memory(cluster), seed, explained=True, beyond=beyond)
        assert explained == without

    @pytest.mark.parametrize("percentage", [0, 100])
    def test_nor_does_the_draw_among_many_equal_nodes_or_where_the_search_begins(
        self, percentage: int
    ) -> None:
        def cluster() -> InMemoryCluster:
            pods = [make_pod(f"pod-{index}").requests(cpu="100m").build() for index in range(60)]
            return InMemoryCluster([*equal_nodes(150), *pods])

        without, _ = simulated(cluster(), 7, explained=False, percentage=percentage)
        explained, found = simulated(cluster(), 7, explained=True, beyond=True, percentage=percentage)
        assert explained == without
        assert any(len(each.tied) > 1 for each in found)

    def test_asking_what_if_it_were_a_pods_turn_leaves_all_later_draws_as_they_are(self) -> None:
        assert placements(asking=True) == placements(asking=False)


def placements(*, asking: bool) -> list[str]:
    """Where 20 equal pods go, on 150 nodes of which a part is searched; between them, another one is asked about."""
    pods = [make_pod(f"pod-{index:02}").requests(cpu="1").build() for index in range(20)]
    cluster = InMemoryCluster([*equal_nodes(150), *pods])
    scheduler = Scheduler(cluster, random=Random(3))
    assert isinstance(scheduler.algorithm, GenericScheduler)
    scheduler.algorithm = algorithm = ExplainingScheduler(scheduler.algorithm)
    other = make_pod("other").requests(cpu="100m").build()
    while scheduler.schedule_one():
        if asking:
            explanation = algorithm.explain(scheduler.frameworks["default-scheduler"], other)
            assert explanation.result is Result.PLACED
    scheduler.close()
    return [pod.node_name for pod in cluster.list(Pod)]


class TestWhatItSays:
    @settings(max_examples=examples(10))  # each is a simulation or two
    @given(clusters(most_nodes=6, most_pending=5))
    def test_of_every_pod_it_has_the_outcome_of_the_simulation(self, cluster: DrawnCluster) -> None:
        decisions, found = simulated(in_memory(cluster), explained=True)
        last = {each.pod: each for each in found}
        for decision in decisions:
            explanation = last[decision.pod]
            if decision.node is not None:
                assert (explanation.result, explanation.node) == (Result.PLACED, decision.node)
            else:
                assert explanation.message == decision.message

    @settings(max_examples=examples(10))  # each is a simulation or two
    @given(clusters(most_nodes=6, most_pending=5))
    def test_weighted_scores_sum_up_to_the_total_that_the_scheduler_compared(
        self, cluster: DrawnCluster
    ) -> None:
        _, found = simulated(in_memory(cluster), explained=True)
        for explanation in found:
            if explanation.score is not None:
                assert not explanation.score.extenders.any()
            for row in explanation.rows():
                if row.total is not None:
                    assert row.total == sum(score.weighted for score in row.scores.values())

    @settings(max_examples=examples(10))  # each is a simulation or two
    @given(clusters(most_nodes=6, most_pending=5))
    def test_every_node_has_one_verdict_and_the_chosen_one_is_among_the_tied(
        self, cluster: DrawnCluster
    ) -> None:
        _, found = simulated(in_memory(cluster), explained=True)
        for explanation in found:
            verdicts = [row.verdict for row in explanation.rows()]
            assert verdicts.count(Verdict.CHOSEN) == (explanation.node is not None)
            assert [row.node for row in explanation.rows()] == list(explanation.nodes)
            if explanation.tied:
                assert explanation.node in explanation.tied

    @settings(max_examples=examples(10))  # each is a simulation or two
    @given(clusters(most_nodes=6, most_pending=3))
    def test_what_goes_beyond_the_decision_agrees_with_what_it_came_to(self, cluster: DrawnCluster) -> None:
        _, found = simulated(in_memory(cluster), explained=True, beyond=True)
        for explanation in found:
            if explanation.beyond is None:
                continue
            for row in explanation.rows():
                if row.verdict in (Verdict.CHOSEN, Verdict.FEASIBLE):
                    assert not row.also_refused_by

    def test_nodes_that_the_search_did_not_reach_are_said_to_be_left(self) -> None:
        pods = [make_pod(f"pod-{index}").requests(cpu="100m").build() for index in range(2)]
        cluster = InMemoryCluster([*equal_nodes(300), *pods])
        _, (first, second) = simulated(cluster, explained=True)
        assert first.filter is not None
        assert second.filter is not None
        assert len(first.feasible) == first.filter.wanted == first.filter.looked_at == 144
        assert second.filter.start == 144
        assert [row.verdict for row in first.rows()].count(Verdict.NOT_LOOKED_AT) == 156
        reached = set(second.filter.order[: second.filter.looked_at].tolist())
        assert reached == {*range(144, 288)}

    def test_preemption_tells_its_candidates_and_victims(self) -> None:
        node = make_node("node").capacity(cpu="1", pods=10).build()
        low = make_pod("low").requests(cpu="1").node("node").priority(0).build()
        high = make_pod("high").requests(cpu="1").priority(10).build()
        _, found = simulated(InMemoryCluster([node, low, high]), explained=True)
        first, second = found
        assert (first.result, first.nominated) == (Result.NOMINATED, "node")
        assert first.preemption is not None
        assert first.preemption.chosen is not None
        assert [victim.pod for victim in first.preemption.chosen.victims] == ["default/low"]
        assert (second.result, second.node, second.attempt) == (Result.PLACED, "node", 2)
        assert second.filter is not None
        assert second.filter.nominated

    def test_a_plugin_that_makes_room_by_itself_is_believed(self) -> None:
        class MakesRoom(Plugin):
            """Evicts without a `PreemptionEvaluator`, on another node than the pod's."""

            name = "MakesRoom"

            @hookimpl
            def filter(self, pod: Pod) -> Status | None:
                others = [each for each in self.handle.cluster.list(Pod) if each.uid != pod.uid]
                return Status.unschedulable("there can be only one") if others else None

            @hookimpl
            def post_filter(self, pod: Pod) -> tuple[PostFilterResult, None]:
                victims = [each for each in self.handle.cluster.list(Pod) if each.node_name]
                self.handle.evict(victims, preemptor=pod, node_name="node-001", plugin=self.name)
                return PostFilterResult.nominate("node-001"), None

        registry = Registry()
        registry.register(MakesRoom)
        found: list[Explanation] = []
        low, high = make_pod("low").node("node-000").build(), make_pod("high").priority(10).build()
        simulation = Simulation(
            InMemoryCluster([*equal_nodes(2), low, high]),
            profiles=[Profile(["PrioritySort", "MakesRoom", "DefaultBinder"])],
            registry=registry,
            explaining=Explaining(found.append),
        )
        report = simulation.run()
        assert (report.placed, report.preemptions, report.victims) == (1, 1, 1)
        first, second = found
        assert (first.result, first.nominated) == (Result.NOMINATED, "node-001")
        assert "room was made for node node-001, by a plugin that names no candidates" in [
            line for section in overview(first) for line in section.lines
        ]
        assert second.result is Result.PLACED

    def test_a_single_feasible_node_is_scored_for_the_explanation_only(self) -> None:
        pod = make_pod("pod").requests(cpu="1").build()
        cluster = InMemoryCluster(equal_nodes(1))
        plain, further = explain_pod(cluster, pod, beyond=False), explain_pod(cluster, pod)
        assert plain.score is None
        assert further.score is not None
        assert further.score.beyond
        assert further.tied == ()

    def test_a_gated_pod_is_explained_though_it_is_never_tried(self) -> None:
        pod = make_pod("pod").scheduling_gate("quota").build()
        _, (found,) = simulated(InMemoryCluster([*equal_nodes(1), pod]), explained=True)
        assert (found.result, found.message) == (Result.GATED, "waiting for scheduling gates: [quota]")
        assert headline(found) == "default/pod: gated, so not tried (profile default-scheduler)"

    def test_no_node_is_blamed_for_a_gate(self) -> None:
        pods = [make_pod("free").build(), make_pod("gated").scheduling_gate("quota").build()]
        _, found = simulated(InMemoryCluster([*equal_nodes(3), *pods]), explained=True)
        (gated,) = [each for each in found if each.result is Result.GATED]
        assert len(gated.nodes) == 3
        assert [section.title for section in overview(gated)] == [""]
        assert all("Refused" not in section.title for section in plugin_section(gated, "SchedulingGates"))


def _scenarios(category: str, most: int) -> list[Scenario]:
    suitable = (
        scenario
        for scenario in pod_scenarios(SCENARIOS / f"{category}.jsonl.gz")
        if scenario.error is None and scenario.expected and scenario.pending
    )
    return [scenario for scenario, _ in zip(suitable, range(most), strict=False)]


@pytest.mark.conformance
@pytest.mark.parametrize(
    "category", ["config", "inter_pod", "large", "mixed", "preemption", "spread", "volumes"]
)
def test_it_says_what_was_recorded_from_kube_scheduler(category: str) -> None:
    registry = Registry()
    for scenario in _scenarios(category, 15):
        objects = [
            object_from_manifest(manifest, kind)
            for field, kind in LISTS.items()
            for manifest in scenario.objects.get(field) or ()
        ]
        pod = object_from_manifest(scenario.pending[0], "Pod")
        assert isinstance(pod, Pod)
        explanation = explain_pod(
            InMemoryCluster(objects),
            pod,
            profiles=[attrs.evolve(profile_of(scenario, registry), percentage_of_nodes_to_score=100)],
            registry=registry,
            evaluation=Evaluation.MEMO,
        )
        assert scenario.expected is not None
        agrees_with(explanation, scenario.expected[0])


def agrees_with(explanation: Explanation, recorded: dict[str, Any]) -> None:
    assert sorted(explanation.feasible) == recorded["feasible"]
    refused = {
        row.node: (row.refusal.plugin, sorted(row.refusal.reasons))
        for row in explanation.rows()
        if row.refusal is not None
    }
    for name, verdict in recorded["filter"].items():
        assert refused[name] == (verdict["plugin"], verdict["reasons"])
    if recorded["scores"]:
        assert explanation.score is not None
        assert explanation.score.beyond is recorded["singleNode"]
        for plugin, scores in recorded["scores"].items():
            for name, raw in scores["raw"].items():
                said = explanation.of(name).scores[plugin]
                assert (said.raw, said.normalized) == (raw, scores["normalized"][name])
        totals = dict(zip(explanation.feasible, map(int, np.asarray(explanation.score.totals)), strict=True))
        assert totals == recorded["totals"]
        if not recorded["singleNode"]:
            assert sorted(explanation.tied) == recorded["best"]
    if recorded["fitError"] is not None:
        assert explanation.message == recorded["fitErrorWithPostFilter"]
        assert explanation.preemption is not None
        found = {
            each.node: [victim.pod for victim in each.victims] for each in explanation.preemption.candidates
        }
        assert found == {name: each["victims"] for name, each in recorded["postFilter"]["candidates"].items()}
