"""The cause on which a card begins: its code, and the sentence that names the obstacle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from kschedfw_advisor.causes import Cause, cause_of
from kschedfw_advisor.pending import explain_pending
from small_clusters import node, what_if

from kschedfw import Node, Pod, WhatIf, make_node, make_pod
from kschedfw.api.builders import PodBuilder
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters

LABELLED = make_node("n1").capacity(cpu=4, memory="8Gi", pods=10).labels(disk="ssd").build()
TAINTED = make_node("n2").capacity(cpu=4, memory="8Gi", pods=10).taint("spot").build()
CORDONED = make_node("n3").capacity(cpu=4, memory="8Gi", pods=10).unschedulable().build()

PLACES = (("n1", "arm", "a"), ("n2", "arm", "b"), ("n3", "amd", "c"))


def causes(cluster: WhatIf) -> list[Cause]:
    found = explain_pending(cluster)
    return [cause_of(kind, why.reasons, cluster.cluster) for why in found.whys for kind in why.kinds]


@pytest.mark.parametrize(
    ("nodes", "pod", "code", "text"),
    [
        (
            [LABELLED],
            make_pod("p").node_selector(disk="sdd"),
            "node-labels",
            "No node has disk=sdd.",
        ),
        (
            [LABELLED],
            make_pod("p").node_selector(zone="a"),
            "node-labels",
            "No node has zone=a.",
        ),
        (
            [TAINTED],
            make_pod("p"),
            "taint",
            "The nodes that would do have the taint spot:NoSchedule.",
        ),
        (
            [CORDONED],
            make_pod("p"),
            "node-state",
            "The nodes that would do are cordoned, such as n3.",
        ),
        (
            [LABELLED],
            make_pod("p").requests(cpu="250"),
            "resources",
            "It requests 250 of cpu, more than any node has: the largest has 4.",
        ),
        (
            [LABELLED],
            make_pod("p").requests({"example.com/gpu": 1}),
            "resources",
            "It requests 1 of example.com/gpu, more than any node has: none offers it.",
        ),
        (
            [LABELLED],
            make_pod("p").claim("data"),
            "volume",
            "claim default/data doesn't exist",
        ),
        (
            [LABELLED],
            make_pod("p").scheduling_gate("example.com/quota"),
            "gate",
            "It waits until its scheduling gate example.com/quota is removed.",
        ),
        (
            [LABELLED],
            make_pod("p").scheduler_name("default-schedulr"),
            "scheduler-name",
            "No scheduler here is called default-schedulr.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_the_cause_is_the_obstacle_that_the_first_remedy_removes(
    nodes: list[Node], pod: PodBuilder, code: str, text: str
) -> None:
    assert causes(what_if(nodes, pod.build())) == [Cause(code, text)]


def test_what_is_requested_is_told_as_taken_where_an_empty_node_has_so_much() -> None:
    busy = make_pod("busy").requests(cpu="3").node("n1").build()
    found = causes(what_if([LABELLED, busy], make_pod("p").requests(cpu="3500m").build()))
    assert found == [Cause("resources", "It requests 3.5 of cpu; of the nodes that would do, n1 has 1 left.")]


def test_entries_of_a_selector_that_no_node_has_together_are_told_together() -> None:
    nodes = [node(name).labels(arch=arch, zone=zone).build() for name, arch, zone in PLACES]
    found = causes(what_if(nodes, make_pod("p").node_selector(arch="arm", zone="c").build()))
    assert found == [Cause("node-labels", "The 2 nodes with arch=arm don't have zone=c.")]


def test_all_taints_that_the_first_remedy_tolerates_are_told() -> None:
    kept = make_node("n").capacity(cpu=4, memory="8Gi", pods=10).taint("a").taint("b", value="x").build()
    (found,) = causes(what_if([kept], make_pod("p").build()))
    assert found.text == "The nodes that would do have the taints a:NoSchedule and b=x:NoSchedule."


def test_where_another_pod_is_in_the_way_the_cause_is_why_it_is() -> None:
    taken = make_pod("first").host_port(80).node("n1").build()
    found = causes(what_if([node("n1").build(), taken], make_pod("p").host_port(80).build()))
    assert found == [Cause("host-port", "Its host port is taken on every node that would do.")]


@settings(max_examples=examples(20))
@given(clusters(most_nodes=3, most_bound=3, most_pending=3))
def test_each_kind_has_a_code_and_one_sentence(given: DrawnCluster) -> None:
    pods: list[Node | Pod] = [*given.nodes, *given.bound]
    for cause in causes(what_if(pods, *given.pending)):
        assert cause.code
        assert cause.text
        assert "\n" not in cause.text
