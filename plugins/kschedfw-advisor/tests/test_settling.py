"""Pods are scheduled until nothing changes any more."""

from __future__ import annotations

from kschedfw_advisor.settling import Settled, settle
from small_clusters import node, owned, running, what_if

from kschedfw import Pod, make_pod
from kschedfw.what_if.what_if import WhatIf


def settled(cluster: WhatIf, *, preempt: bool = False) -> Settled:
    with cluster.transaction() as trial:
        found = settle(cluster, trial, cluster.pending, preempt=preempt)
        trial.commit()
    return found


def places(found: Settled) -> dict[str, str]:
    return {each.pod.name: each.node_name for each in found.placed}


def test_a_pod_that_waits_for_another_one_gets_its_place_after_it() -> None:
    follower = make_pod("a-follower").priority(5).pod_affinity("kubernetes.io/hostname", {"app": "leader"})
    leader = make_pod("leader").labels(app="leader").requests(cpu=1)
    assert places(settled(what_if(node("n1").build(), follower.build(), leader.build()))) == {
        "leader": "n1",
        "a-follower": "n1",
    }


def test_a_pod_that_was_preempted_comes_back_if_a_controller_makes_it_anew() -> None:
    important = make_pod("important").priority(10).requests(cpu=4).node_selector({"disk": "fast"}).build()
    fast, other = node("fast").labels(disk="fast").build(), node("other").build()
    cluster = what_if(fast, other, running("web-1", "fast", cpu=2), important)
    found = settled(cluster, preempt=True)
    assert places(found) == {"important": "fast", "web-1": "other"}
    assert [pod.name for pod in found.evicted] == ["web-1"]
    assert {pod.name: pod.node_name for pod in cluster.cluster.list(Pod)} == {
        "important": "fast",
        "web-1": "other",
    }


def test_a_preempted_pod_without_a_controller_is_gone() -> None:
    important = make_pod("important").priority(10).requests(cpu=4).build()
    alone = make_pod("alone").requests(cpu=2).node("n1").build()
    cluster = what_if(node("n1").build(), alone, important)
    found = settled(cluster, preempt=True)
    assert places(found) == {"important": "n1"}
    assert not found.refused
    assert [pod.name for pod in cluster.cluster.list(Pod)] == ["important"]


def test_without_preemption_nothing_is_evicted() -> None:
    important = make_pod("important").priority(10).requests(cpu=4).build()
    found = settled(what_if(node("n1").build(), running("web-1", "n1"), important))
    assert [each.message for each in found.refused] == ["0/1 nodes are available: 1 Insufficient cpu."]
    assert not found.evicted


def test_pods_of_lower_priority_that_were_placed_at_the_same_time_may_be_preempted() -> None:
    low = owned(make_pod("low").priority(0).requests(cpu=4))
    cluster = what_if(node("n1").build(), low)
    with cluster.transaction() as trial:
        trial.schedule([low])
        high = make_pod("high").priority(9).requests(cpu=4).build()
        found = settle(cluster, trial, [high], preempt=True)
    assert places(found) == {"high": "n1"}
    assert [each.pod.name for each in found.refused] == ["low"]
