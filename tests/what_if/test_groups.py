"""Members of a PodGroup get their places together in a transaction, as in a scheduler's own cycle."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import (
    FeatureGates,
    InMemoryCluster,
    Node,
    Pod,
    Scheduler,
    WhatIf,
    make_node,
    make_pod,
    make_pod_group,
)
from kschedfw.api.meta import Named
from kschedfw.explain import GroupStage, Result
from kschedfw.scheduler.select import FirstByNameSelector
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.properties import examples
from kschedfw.what_if import WhatIfError
from tests.what_if.builders import REGISTRY

GATES = FeatureGates.of(
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
)


def node(name: str, cpu: int = 4, rack: str = "a") -> Node:
    return make_node(name).labels(rack=rack).capacity(cpu=cpu, memory="64Gi", pods=20).build()


def members(count: int, cpu: int = 1, group: str = "g", priority: int = 0) -> list[Pod]:
    names = (f"{group}-{number}" for number in range(count))
    return [make_pod(name).requests(cpu=cpu).group(group).priority(priority).build() for name in names]


def gang(least: int, name: str = "g", rack: bool = False, priority: int = 0) -> Named:
    made = make_pod_group(name).gang(min_count=least).priority(priority)
    return (made.topology("rack") if rack else made).build()


def asked(*objects: Named) -> WhatIf:
    return WhatIf(objects, feature_gates=GATES, selector=FirstByNameSelector(), registry=REGISTRY)


def placed(what_if: WhatIf, *, preempt: bool = False) -> dict[str, str]:
    with what_if.transaction() as trial:
        return {
            each.pod.name: each.node_name for each in trial.schedule(what_if.pending, preempt=preempt).placed
        }


def test_a_gang_that_fits_is_placed_and_one_that_does_not_leaves_nothing() -> None:
    assert len(placed(asked(node("n"), gang(4), *members(4)))) == 4
    assert not placed(asked(node("n"), gang(5), *members(5)))


def test_members_that_would_fit_say_where_and_what_they_wait_for() -> None:
    what_if = asked(node("n"), gang(5), *members(5))
    with what_if.transaction() as trial:
        *fitting, last = trial.schedule(what_if.pending).refused
    assert {each.node_name for each in fitting} == {"n"}
    assert all("waiting for minCount pods from a gang to be scheduled" in each.message for each in fitting)
    assert (last.node_name, last.reasons) == ("", ("Insufficient cpu",))


def test_members_that_are_too_few_are_held_back() -> None:
    what_if = asked(node("n"), gang(3), *members(2))
    with what_if.transaction() as trial:
        refused = trial.schedule(what_if.pending).refused
    text = "waiting for minCount pods from a gang to appear in scheduling queue"
    assert [each.message for each in refused] == [text, text]


def test_a_group_with_a_topology_goes_to_one_rack() -> None:
    nodes = [node("a1", 2), node("b1", 2, "b"), node("b2", 2, "b")]
    assert set(placed(asked(*nodes, gang(4, rack=True), *members(4))).values()) == {"b1", "b2"}
    assert not placed(asked(*nodes, gang(5, rack=True), *members(5)))


def test_a_group_preempts_as_a_whole() -> None:
    low = [make_pod(f"low-{number}").requests(cpu=2).node("n").build() for number in range(2)]
    what_if = asked(node("n"), *low, gang(3, priority=10), *members(3, priority=10))
    assert not placed(what_if)
    with what_if.transaction() as trial:
        found = trial.schedule(what_if.pending, preempt=True)
        assert [each.pod.name for each in found.placed] == ["g-0", "g-1", "g-2"]
        assert {pod.name for pod in found.placed[0].victims} == {"low-0", "low-1"}
    assert len([pod for pod in what_if.pods if pod.node_name]) == 2  # it is all undone


def test_members_that_were_asked_about_before_are_placed() -> None:
    what_if = asked(node("n"), gang(4), *members(4))
    with what_if.transaction() as trial:
        assert all(trial.can_schedule(pod) for pod in what_if.pending)
        assert len(trial.schedule(what_if.pending).placed) == 4


def test_a_member_is_explained_after_the_others_of_its_group() -> None:
    what_if = asked(node("n"), gang(5), *members(5))
    *others, last = what_if.pending
    with what_if.transaction() as trial:
        assert trial.explain(last).node == "n"
        assert trial.explain(last, others).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_group_is_explained_as_it_would_be_scheduled_and_nothing_changes() -> None:
    nodes = [node("a1", 2), node("b1", 2, "b"), node("b2", 2, "b")]
    what_if = asked(*nodes, gang(4, rack=True), *members(4))
    with what_if.transaction() as trial:
        step = trial.explain_group(what_if.pending)
        placed = {each.pod.key: each.node_name for each in trial.schedule(what_if.pending).placed}
    assert step.taken == "b"
    assert step.nearest is not None
    assert {each.pod: each.node for each in step.nearest.members} == placed


def test_a_group_is_explained_at_its_turn_in_the_queue() -> None:
    first = make_pod("first").requests(cpu=2).priority(1).build()
    last = make_pod("last").requests(cpu=2).priority(-1).build()
    what_if = asked(node("n"), first, last, gang(3), *members(3))
    group = [pod for pod in what_if.pending if pod.spec.scheduling_group]
    with what_if.transaction() as trial:
        assert trial.explain_group(group).result is Result.PLACED
        assert trial.explain_group(group, [last]).result is Result.PLACED
        step = trial.explain_group(group, [first, last])
    assert (step.result, step.ended_by) == (Result.UNSCHEDULABLE, GroupStage.MEMBERS)
    assert step.nearest is not None
    assert (step.nearest.placed, [each.pod for each in step.nearest.refused]) == (2, ["default/g-2"])


def test_a_group_whose_members_are_held_back_says_by_which_gate() -> None:
    what_if = asked(node("n"), gang(3), *members(2))
    with what_if.transaction() as trial:
        step = trial.explain_group(what_if.pending)
    assert (step.result, step.ended_by, step.placements) == (Result.GATED, GroupStage.GATE, ())


def test_a_preemption_for_a_group_is_explained_by_the_places_that_it_makes() -> None:
    low = [make_pod(f"low-{number}").requests(cpu=2).node("n").build() for number in range(2)]
    what_if = asked(node("n"), *low, gang(3, priority=10), *members(3, priority=10))
    with what_if.transaction() as trial:
        assert trial.explain_group(what_if.pending).result is Result.UNSCHEDULABLE
        assert trial.explain_group(what_if.pending, preempt=True).result is Result.PLACED
    assert len([pod for pod in what_if.pods if pod.node_name]) == 2


def test_pods_that_are_not_scheduled_together_are_no_group() -> None:
    pods = [*members(1), *members(1, group="h")]
    with asked(node("n"), *pods).transaction() as trial, pytest.raises(WhatIfError, match="one PodGroup"):
        trial.explain_group(pods)
    without = WhatIf([node("n"), gang(1), *members(1)])
    with (
        without.transaction() as trial,
        pytest.raises(WhatIfError, match="g-0 isn't scheduled together with others"),
    ):
        trial.explain_group(without.pending)


def test_what_is_committed_is_bound() -> None:
    what_if = asked(node("n"), gang(4), *members(4))
    with what_if.transaction() as trial:
        trial.schedule(what_if.pending)
        trial.commit()
    assert {pod.node_name for pod in what_if.pods} == {"n"}


@st.composite
def worlds(draw: st.DrawFn) -> list[Named]:
    """Racks with little room, groups with and without a topology, and pods of their own."""
    racks = st.sampled_from("ab")
    found: list[Named] = [
        node(f"n{number}", draw(st.integers(1, 4)), draw(racks)) for number in range(draw(st.integers(1, 5)))
    ]
    for number in range(draw(st.integers(1, 3))):
        name, priority = f"g{number}", draw(st.integers(0, 2))
        found.append(gang(draw(st.integers(1, 4)), name, draw(st.booleans()), priority))
        found += members(draw(st.integers(1, 5)), draw(st.integers(1, 2)), name, priority)
    for number in range(draw(st.integers(0, 3))):
        found.append(make_pod(f"p{number}").requests(cpu=draw(st.integers(1, 2))).build())
    return found


@settings(max_examples=examples(100))
@given(worlds())
def test_a_transaction_places_what_a_scheduler_that_has_just_started_places(world: list[Named]) -> None:
    cluster = InMemoryCluster(world)
    scheduler = Scheduler(
        cluster, feature_gates=GATES, selector=FirstByNameSelector(), registry=REGISTRY, clock=FakeClock()
    )
    scheduler.run_until_idle()
    bound = by_group({pod.name: pod.node_name for pod in cluster.list(Pod) if pod.node_name})
    scheduler.close()
    what_if = asked(*world)
    assert by_group(placed(what_if)) == bound
    assert not [pod for pod in what_if.pods if pod.node_name]
    assert by_group(placed(what_if)) == bound  # undone, it is as before


def by_group(places: dict[str, str]) -> Counter[tuple[str, str]]:
    """How many members of each group are on each node. Members are alike, and gates tell which of them comes first."""
    return Counter((pod.partition("-")[0], node_name) for pod, node_name in places.items())
