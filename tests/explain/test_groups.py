"""Why a group of pods gets its places, or none: the step that ended it, its placements, and its members on each."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from kschedfw import FeatureGates, InMemoryCluster, Pod, make_node, make_pod, make_pod_group
from kschedfw.api.meta import Named
from kschedfw.config import default_profile
from kschedfw.explain import Explaining, Explanation, GroupStage, GroupStep, Result
from kschedfw.scheduler.select import FirstByNameSelector
from kschedfw.simulator import Simulation

GATES = FeatureGates.of(
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
)


def node(name: str, cpu: int, rack: str = "a") -> Named:
    return make_node(name).labels(rack=rack).capacity(cpu=cpu, memory="64Gi", pods=20).build()


def members(count: int, cpu: int = 1, **selector: str) -> list[Pod]:
    pods = (make_pod(f"g-{number}").requests(cpu=cpu).group("g") for number in range(count))
    return [pod.node_selector(selector).build() if selector else pod.build() for pod in pods]


def gang(least: int, *, racks: bool = False, priority: int = 0) -> Named:
    made = make_pod_group("g").gang(min_count=least).priority(priority)
    return (made.topology("rack") if racks else made).build()


def explained(*objects: Named, beyond: bool = True) -> Sequence[Explanation]:
    found: list[Explanation] = []
    Simulation(
        InMemoryCluster(objects),
        feature_gates=GATES,
        selector=FirstByNameSelector(),
        explaining=Explaining(found.append, beyond=beyond),
    ).run()
    return found


def first_cycle(*objects: Named) -> GroupStep:
    step = explained(*objects)[0].group
    assert step is not None
    return step


def test_placement_that_takes_most_members_is_the_nearest_and_says_what_is_short() -> None:
    step = first_cycle(
        node("a1", 1), node("b1", 1, "b"), node("b2", 1, "b"), gang(3, racks=True), *members(3)
    )
    assert (step.result, step.ended_by, step.needed) == (Result.UNSCHEDULABLE, GroupStage.MEMBERS, 3)
    assert [(each.name, each.placed, list(each.nodes)) for each in step.placements] == [
        ("a", 1, ["a1"]),
        ("b", 2, ["b1", "b2"]),
    ]
    assert step.nearest is step.placements[1]
    (refused,) = step.nearest.refused
    assert refused.decision is not None
    assert [str(each.refusal.reasons[0]) for each in refused.decision.rows() if each.refusal] == [
        "Insufficient cpu"
    ] * 2
    (evidence,) = next(refused.decision.closest()).evidence["NodeResourcesFit"]
    assert "1 requested; 0 free" in str(evidence)  # as it was then, with the members before on the nodes


def test_filters_are_asked_about_the_nodes_of_the_placement_alone() -> None:
    step = first_cycle(node("a1", 1), node("b1", 1, "b"), gang(2, racks=True), *members(2))
    for placement in step.placements:
        for member in placement.members:
            assert member.decision is not None
            assert list(member.decision.nodes) == list(placement.nodes)
            assert member.decision.beyond is None or {
                row for by_row in member.decision.beyond.evidence.values() for row in by_row
            } == {0}


def test_of_placements_with_as_many_members_the_one_with_less_missing_is_nearest() -> None:
    step = first_cycle(node("a1", 3), node("b1", 5, "b"), gang(2, racks=True), *members(2, cpu=3))
    assert [each.placed for each in step.placements] == [1, 1]
    assert step.nearest is not None
    assert step.nearest.name == "b"


def test_members_say_what_became_of_them_and_share_the_group() -> None:
    found = explained(node("a1", 2), gang(3), *members(3))[:3]
    assert len({id(each.group) for each in found}) == 1
    assert [(each.pod, each.result, each.node) for each in found] == [
        ("default/g-2", Result.UNSCHEDULABLE, "a1"),
        ("default/g-0", Result.UNSCHEDULABLE, "a1"),
        ("default/g-1", Result.UNSCHEDULABLE, None),
    ]
    assert found[0].message.startswith("pod group is unschedulable, waiting for minCount pods")
    assert found[2].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_group_that_is_placed_has_the_scores_of_its_placements() -> None:
    step = first_cycle(node("a1", 4), node("b1", 2, "b"), gang(2, racks=True), *members(2))
    assert (step.result, step.ended_by, step.taken) == (Result.PLACED, None, "b")
    scores = {each.name: each.total for each in step.placements}
    assert scores["b"] == max(total for total in scores.values() if total is not None)
    assert scores["a"] != scores["b"]


@pytest.mark.parametrize(
    ("objects", "stage"),
    [
        ([node("a1", 4), gang(3), *members(2)], GroupStage.GATE),
        (
            [make_node("a1").capacity(cpu=4).build(), gang(2, racks=True), *members(2)],
            GroupStage.PLACEMENT_GENERATION,
        ),
        ([node("a1", 1), gang(2), *members(2)], GroupStage.MEMBERS),
    ],
    ids=lambda each: str(each) if isinstance(each, GroupStage) else "",
)
def test_step_that_ended_the_cycle_is_named(objects: Sequence[Named], stage: GroupStage) -> None:
    step = first_cycle(*objects)
    assert step.ended_by is stage
    assert step.message


def test_members_with_different_scheduler_names_end_the_cycle_before_any_placement() -> None:
    one = members(1)[0]
    stranger = make_pod("g-1").group("g").scheduler_name("other").build()
    profile = default_profile(feature_gates=GATES)
    found: list[Explanation] = []
    Simulation(
        InMemoryCluster([node("a1", 4), gang(2), one, stranger]),
        profiles=[profile, attrs.evolve(profile, scheduler_name="other")],
        feature_gates=GATES,
        explaining=Explaining(found.append),
    ).run()
    assert {each.group.ended_by for each in found if each.group is not None} == {GroupStage.UNLIKE_MEMBERS}


def test_pre_filter_that_refuses_all_members_is_the_step_that_ended_it() -> None:
    pods = [make_pod(f"g-{number}").group("g").claim("missing").build() for number in range(2)]
    step = first_cycle(node("a1", 4), gang(2), *pods)
    assert step.ended_by is GroupStage.PRE_FILTER


def test_group_that_makes_room_names_its_victims() -> None:
    victim = make_pod("victim").requests(cpu=2).node("a1").build()
    found = explained(node("a1", 2), victim, gang(2, priority=10), *members(2))
    steps = [each.group for each in found if each.group is not None]
    assert steps[0].ended_by is GroupStage.PREEMPTION
    assert steps[0].result is Result.NOMINATED
    assert steps[0].preemption is not None
    assert list(map(list, steps[0].preemption.victims)) == [["default/victim"]]
    assert steps[-1].result is Result.PLACED


def test_decisions_are_the_same_with_and_without_explanations() -> None:
    objects = [node("a1", 2), node("b1", 3, "b"), gang(3, racks=True), *members(3)]
    plain = Simulation(InMemoryCluster(objects), feature_gates=GATES)
    plain.run()
    followed = Simulation(
        InMemoryCluster(objects), feature_gates=GATES, explaining=Explaining(lambda _: None, beyond=True)
    )
    followed.run()
    assert plain.decisions == followed.decisions
