"""An autoscaler's plan beside kube-scheduler's decisions: agreement, and each way in which they differ."""

from __future__ import annotations

import pytest

from kschedfw import WhatIf, WhatIfError, make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.what_if import DeviationKind, PlanCheck, ScalingPlan
from tests.what_if.builders import budget, node, running, what_if


def pending(name: str, cpu: str | int = 1, priority: int = 0, **selector: str) -> Pod:
    return make_pod(name).requests(cpu=cpu).priority(priority).node_selector(selector).build()


def checked(cluster: WhatIf, plan: ScalingPlan) -> PlanCheck:
    before = list(cluster.objects())
    with cluster.transaction() as trial:
        found = trial.check(plan)
        assert list(trial.objects()) == before, "a check changes nothing"
    return found


def new_node(name: str = "new", cpu: int = 8, **labels: str) -> Node:
    return make_node(name).labels(labels).capacity(cpu=cpu, memory="32Gi", pods=10).build()


def deviations(found: PlanCheck) -> list[tuple[str, str, str, str]]:
    return [(each.kind, each.pod, each.planned, each.node) for each in found.deviations]


def test_a_node_for_a_pod_that_fits_only_there_is_agreed_with() -> None:
    cluster = what_if(node("a", cpu=1).build(), pending("large", cpu=4))
    found = checked(cluster, ScalingPlan(add=(new_node(),), pods={"default/large": "new"}))
    assert found
    assert [(each.pod.name, each.node_name) for each in found.schedule.placed] == [("large", "new")]


def test_a_node_is_removed_if_its_pods_have_room_elsewhere() -> None:
    cluster = what_if(node("a").build(), node("b").build(), running("web", "b"))
    found = checked(cluster, ScalingPlan(remove=("b",)))
    assert found
    assert [(each.pod.name, each.node_name) for each in found.schedule.placed] == [("web", "a")]


def test_a_pod_that_fits_nowhere_is_told_in_kube_schedulers_words() -> None:
    cluster = what_if(node("a", cpu=1).build(), node("b").build(), running("web", "b", cpu=2))
    found = checked(cluster, ScalingPlan(remove=("b",), pods={"default/web": "a"}))
    assert not found
    assert not found.works
    assert deviations(found) == [(DeviationKind.STAYS_PENDING, "default/web", "a", "")]
    assert found.deviations[0].message.startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )


def test_a_planned_node_that_refuses_the_pod_is_told_with_plugin_and_reason() -> None:
    cluster = what_if(node("a").build(), node("b").build(), pending("web", disk="ssd"))
    added = new_node(disk="ssd")
    found = checked(cluster, ScalingPlan(add=(added,), pods={"default/web": "b"}))
    assert deviations(found) == [(DeviationKind.NODE_REFUSES, "default/web", "b", "new")]
    assert found.deviations[0].message == (
        "b is refused by NodeAffinity: node(s) didn't match Pod's node affinity/selector"
    )
    assert found.works


def test_a_node_that_kube_scheduler_prefers_is_told_with_both_scores() -> None:
    cluster = what_if(
        node("full").build(), running("other", "full", cpu=2), node("free").build(), pending("web")
    )
    found = checked(cluster, ScalingPlan(pods={"default/web": "full"}))
    assert deviations(found) == [(DeviationKind.OTHER_NODE, "default/web", "full", "free")]
    assert found.works
    text = found.deviations[0].message
    higher, lower = (int(word) for word in text.replace(",", " ").split() if word.isdigit())
    assert (higher > lower, text) == (True, f"free scores {higher}, full only {lower}")


def test_of_nodes_that_score_alike_either_may_be_drawn() -> None:
    names = ("a", "b")
    cluster = what_if([node(name).build() for name in names], pending("web"))
    found = [checked(cluster, ScalingPlan(pods={"default/web": name})) for name in names]
    (told,) = (each.deviations[0] for each in found if each.deviations)
    assert told.kind is DeviationKind.OTHER_NODE
    assert told.message.endswith("; which of them is drawn by lot")


def test_pods_that_would_be_preempted_are_named() -> None:
    low, high = running("low", "a", cpu=3), pending("high", cpu=3, priority=10)
    found = checked(what_if(node("a").build(), low, high), ScalingPlan(pods={"default/high": "a"}))
    assert deviations(found) == [(DeviationKind.PREEMPTS, "default/high", "a", "a")]
    assert found.deviations[0].message == "it preempts default/low"
    assert not found.works


def test_an_eviction_that_a_budget_blocks_is_told() -> None:
    cluster = what_if(node("a").build(), node("b").build(), running("web", "b"), budget(allowed=0))
    found = checked(cluster, ScalingPlan(remove=("b",)))
    assert deviations(found) == [(DeviationKind.EVICTION_BLOCKED, "default/web", "", "b")]
    assert found.deviations[0].message == "its eviction would violate PodDisruptionBudget budget"


def test_a_pod_is_moved_from_a_node_that_stays() -> None:
    cluster = what_if(node("a").build(), node("b", cpu=8).build(), running("web", "a"))
    found = checked(cluster, ScalingPlan(pods={"default/web": "b"}))
    assert [(each.pod.name, each.node_name) for each in found.schedule.placed] == [("web", "b")]
    assert found


def test_an_added_node_that_gets_no_pod_is_told() -> None:
    cluster = what_if(node("a").build(), pending("web"))
    found = checked(cluster, ScalingPlan(add=(new_node(cpu=1),), pods={"default/web": ""}))
    assert deviations(found) == [(DeviationKind.NODE_UNUSED, "", "new", "")]
    assert found.works


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (ScalingPlan(remove=("x",)), "plan: nodes to remove that aren't there: x"),
        (ScalingPlan(pods={"default/x": ""}), "plan: pods that aren't there: default/x"),
        (
            ScalingPlan(pods={"web": ""}),
            "plan: pods that aren't there: web; a pod's key is NAMESPACE/NAME",
        ),
        (ScalingPlan(pods={"default/web": "x"}), "plan: nodes for pods that aren't there: x"),
        (ScalingPlan(add=(new_node("a"),)), "plan: nodes to add that are there already, or added twice: a"),
        (
            ScalingPlan(add=(new_node("b"),) * 2),
            "plan: nodes to add that are there already, or added twice: b",
        ),
    ],
)
def test_names_of_nobody_are_refused(plan: ScalingPlan, message: str) -> None:
    with (
        what_if(node("a").build(), pending("web")).transaction() as trial,
        pytest.raises(WhatIfError) as found,
    ):
        trial.check(plan)
    assert message in str(found.value)
