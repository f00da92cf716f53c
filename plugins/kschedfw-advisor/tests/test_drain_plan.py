"""What becomes of the pods of drained nodes, and in which order."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_advisor.drain_plan import DrainPlan, Move, plan_drain
from small_clusters import budget, ending, node, owned, running, what_if

from kschedfw import make_pod
from kschedfw.api import PodCondition, PodPhase, PodStatus
from kschedfw.api.workloads import PodDisruptionBudgetStatus
from kschedfw.what_if import WhatIfError
from kschedfw.what_if.what_if import WhatIf


def plan(cluster: WhatIf, *nodes: str) -> DrainPlan:
    with cluster.transaction() as trial:
        return plan_drain(cluster, trial, nodes)


def told(found: DrainPlan) -> list[tuple[int, str, str | None]]:
    return [(step.round, step.pod.name, step.to_node) for step in found.steps]


def test_every_pod_moves_where_there_is_a_place() -> None:
    found = plan(what_if(node("n1").build(), node("n2").build(), running("web-1", "n1")), "n1")
    assert found.succeeds
    assert told(found) == [(1, "web-1", "n2")]


def test_a_pod_without_another_place_stands_in_the_way_with_the_reason() -> None:
    cluster = what_if(node("n1").build(), node("n2", cpu=1).build(), running("web-1", "n1", cpu=2))
    found = plan(cluster, "n1")
    assert not found.succeeds
    (step,) = found.steps
    assert (step.move, step.to_node) == (Move.NO_PLACE, None)
    assert "1 Insufficient cpu, 1 node(s) were unschedulable" in step.message


def test_the_pods_of_a_budget_move_one_after_the_other() -> None:
    """As many at a time as the budget lets be missing; the next ones once these have another place."""
    pods = [running(f"web-{number}", "n1") for number in (1, 2, 3)]
    cluster = what_if(node("n1").build(), node("n2").build(), pods, budget("web", maxUnavailable=1))
    found = plan(cluster, "n1")
    assert found.succeeds
    assert [number for number, _, _ in told(found)] == [1, 2, 3]
    assert found.rounds == 3


def test_a_budget_that_allows_nothing_stands_in_the_way_by_name() -> None:
    cluster = what_if(
        node("n1").build(), node("n2").build(), running("web-1", "n1"), budget("web", minAvailable=1)
    )
    found = plan(cluster, "n1")
    assert not found.steps
    assert [(each.pod.name, each.reason) for each in found.blocked] == [
        ("web-1", "its eviction would violate PodDisruptionBudget web")
    ]


def test_a_pod_that_finds_no_place_uses_its_budget_up() -> None:
    pods = [running(f"web-{number}", "n1", cpu=2) for number in (1, 2)]
    cluster = what_if(node("n1").build(), node("n2", cpu=1).build(), pods, budget("web", maxUnavailable=1))
    found = plan(cluster, "n1")
    assert [step.move for step in found.steps] == [Move.NO_PLACE]
    assert len(found.blocked) == 1


def test_what_the_status_of_a_budget_says_counts_if_a_controller_wrote_it() -> None:
    status = PodDisruptionBudgetStatus(disruptions_allowed=0, expected_pods=3)
    told_none = attrs.evolve(budget("web", maxUnavailable=3), status=status)
    cluster = what_if(node("n1").build(), node("n2").build(), running("web-1", "n1"), told_none)
    assert [each.pod.name for each in plan(cluster, "n1").blocked] == ["web-1"]


def test_a_pod_without_a_controller_is_lost() -> None:
    alone = make_pod("alone").node("n1").build()
    found = plan(what_if(node("n1").build(), node("n2").build(), alone), "n1")
    assert [(step.move, step.to_node) for step in found.steps] == [(Move.LOST, None)]
    assert not found.succeeds


def test_a_pod_with_an_empty_dir_is_held_back_unless_its_data_may_go() -> None:
    pod = owned(make_pod("cache").node("n1").volume("tmp", {"emptyDir": {}}))
    cluster = what_if(node("n1").build(), node("n2").build(), pod, running("web-1", "n1"))
    found = plan(cluster, "n1")
    assert told(found) == [(1, "web-1", "n2")]
    assert [each.reason for each in found.blocked] == [
        "has data in emptyDir volumes (tmp); kubectl drain wants --delete-emptydir-data"
    ]
    with cluster.transaction() as trial:
        assert plan_drain(cluster, trial, ["n1"], held_back=lambda _: None).succeeds


def test_unready_pods_take_nothing_from_a_budget_and_go_while_it_is_healthy() -> None:
    broken = running("web-0", "n1").with_status(PodStatus(conditions=(PodCondition("Ready", "False"),)))
    broken = attrs.evolve(broken, status=attrs.evolve(broken.status, phase=PodPhase.RUNNING))
    nodes = [node(name).build() for name in ("n1", "n2", "n3")]
    healthy = plan(what_if(nodes, broken, running("web-1", "n2"), budget("web", minAvailable=1)), "n1")
    assert healthy.succeeds
    assert [
        each.pod.name for each in plan(what_if(nodes, broken, budget("web", minAvailable=1)), "n1").blocked
    ] == ["web-0"]


def test_a_pod_that_tolerates_the_cordon_is_in_the_way_where_it_comes_back() -> None:
    pod = owned(make_pod("stubborn").node("n1").node_selector(disk="ssd").toleration(operator="Exists"))
    found = plan(what_if(node("n1").labels(disk="ssd").build(), node("n2").build(), pod), "n1")
    (step,) = found.steps
    assert (step.move, step.to_node) == (Move.RETURNS, "n1")
    assert step.trouble.startswith("comes back to a drained node")
    assert not found.succeeds


def test_pods_of_daemon_sets_stay() -> None:
    daemon = owned(make_pod("agent").node("n1"), "agent", "DaemonSet")
    found = plan(what_if(node("n1").build(), node("n2").build(), daemon), "n1")
    assert found.succeeds
    assert [pod.name for pod in found.staying] == ["agent"]


def test_pods_that_are_being_deleted_are_counted_apart() -> None:
    old = ending(running("old", "n1"))
    found = plan(what_if(node("n1").build(), old), "n1")
    assert found.succeeds
    assert (found.steps, found.staying, [pod.name for pod in found.ending]) == ((), (), ["old"])


def test_a_pod_of_lower_priority_may_lose_its_place_on_another_node() -> None:
    important = owned(make_pod("important").requests(cpu=4).priority(10).node("n1"), "important")
    cluster = what_if(node("n1").build(), node("n2").build(), important, running("web-1", "n2"))
    found = plan(cluster, "n1")
    assert not found.succeeds
    assert [(step.pod.name, step.move, step.from_node, step.to_node) for step in found.steps] == [
        ("important", Move.MOVES, "n1", "n2"),
        ("web-1", Move.DISPLACED, "n2", None),
    ]


def test_no_pod_moves_to_another_drained_node() -> None:
    cluster = what_if(
        (node(name).build() for name in ("n1", "n2", "n3")), running("web-1", "n1"), running("b", "n2")
    )
    found = plan(cluster, "n1", "n2")
    assert {step.to_node for step in found.steps} == {"n3"}


def test_an_unknown_node_is_an_error() -> None:
    with pytest.raises(WhatIfError, match="there is no node 'n2'; there is n1"):
        plan(what_if(node("n1").build()), "n2")
