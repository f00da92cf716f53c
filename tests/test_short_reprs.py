"""Objects and results are shown in a line, in a console, in a notebook and in the output of a failed test."""

from __future__ import annotations

import pytest

from kschedfw import InMemoryCluster, NodeInfo, Pod, PodInfo, Snapshot, WhatIf, make_node, make_pod
from kschedfw.explain import explain_pod
from kschedfw.simulator import Simulation

NODES = [make_node(name).capacity(cpu=1, memory="1Gi").build() for name in ("a", "b")]
ON_A = make_pod("on-a").requests(cpu=1).node("a").build()
LARGE = make_pod("large").requests(cpu=4).build()


def test_a_pod_is_its_key_and_its_node() -> None:
    assert repr(LARGE) == "<Pod default/large>"
    assert repr(ON_A) == "<Pod default/on-a on a>"
    assert repr(make_pod("p").nominated_node("b").build()) == "<Pod default/p nominated to b>"
    assert repr(NODES[0]) == "<Node a>"


def test_the_state_that_plugins_see_is_counted() -> None:
    snapshot = Snapshot.of(NODES, [ON_A])
    assert repr(snapshot) == "<Snapshot of 2 nodes>"
    assert repr(snapshot.node_infos[0]) == "<NodeInfo a: 1 pod>"
    assert repr(NodeInfo.of(NODES[1])) == "<NodeInfo b: 0 pods>"
    assert repr(PodInfo.of(ON_A)) == "<PodInfo of <Pod default/on-a on a>>"


def cluster() -> InMemoryCluster:
    return InMemoryCluster([*NODES, ON_A, LARGE])


def test_a_cluster_tells_how_many_objects_of_each_kind_it_has() -> None:
    assert repr(cluster()) == "<InMemoryCluster with 2 Node, 1 Namespace, 2 Pod>"
    assert repr(InMemoryCluster()) == "<InMemoryCluster with no objects>"


def test_results_tell_how_it_went() -> None:
    report = Simulation(cluster()).run()
    assert repr(report) == "<Report: 0 of 1 pod placed, 1 unschedulable>"
    explanation = explain_pod(cluster(), LARGE)
    assert repr(explanation).startswith(
        "<Explanation of default/large: unschedulable: 0/2 nodes are available: "
    )
    assert "\n" not in repr(explanation)


@pytest.mark.parametrize("pod", [LARGE, make_pod("small").requests(cpu=1).build()], ids=lambda pod: pod.name)
def test_answers_about_what_would_be_fit_on_a_few_lines(pod: Pod) -> None:
    what_if = WhatIf(InMemoryCluster([*NODES, ON_A]))
    with what_if.transaction() as trial:
        assert len(repr(trial.can_schedule(pod))) < 600
        schedule = trial.schedule([pod])
        assert len(repr(schedule)) < 600
        assert f"<Pod default/{pod.name}>" in repr(schedule)
