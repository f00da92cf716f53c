"""Causes: coded requirements that keep a pod off nodes, the decisive ones first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from kschedfw import WhatIf, make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.explain import CAUSES, Cause, Evidence, causes_of, code_of_plugin, decided_on, explain_pod
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.status import Status
from kschedfw.testing import decide
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters
from tests.explain.test_faithful import in_memory


def causes(pod: Pod, *nodes: Node) -> tuple[Cause, ...]:
    return causes_of(decide(pod, nodes=nodes))


def small(name: str, cpu: int = 1, **labels: str) -> Node:
    return make_node(name).labels(labels).capacity(cpu=cpu, memory="8Gi").build()


def test_a_cause_names_requirement_nodes_and_the_closest_one() -> None:
    (cause,) = causes(make_pod("p").requests(cpu=3).build(), small("a"), small("b", 2))
    assert (cause.code, cause.nodes, cause.of, cause.node) == ("insufficient-resource", 2, 2, "b")
    assert cause.evidence.values["short"] == 1000
    assert str(cause) == "cpu: 3 requested: keeps it off 2 of 2 nodes; b: 2 free of 2 allocatable, 1 short"


def test_of_equally_close_nodes_the_first_is_named_whatever_pod_was_explained_before() -> None:
    """Both nodes lack the same of the CPU, and the pod before had the second one's status on both."""
    nodes = [make_node(f"n{gib}").capacity(cpu=2, memory=f"{gib}Gi").build() for gib in (8, 4)]
    pod = make_pod("p").requests(cpu=3, memory="6Gi").build()
    what_if = WhatIf(nodes)
    what_if.explain(make_pod("before").requests(cpu=3, memory="9Gi").build())
    after = what_if.explain(pod)
    cpu, memory = causes_of(after)
    assert (cpu.node, memory.node) == ("n8", "n4")
    assert causes_of(after) == causes_of(WhatIf(nodes).explain(pod))


def test_what_the_few_nodes_lack_that_the_pod_is_meant_for_is_decisive() -> None:
    nodes = [small(f"n{number}", 8) for number in range(5)]
    pod = make_pod("p").requests(cpu=3).node_selector(disk="ssd").build()
    found = causes(pod, *nodes, small("ssd", disk="ssd"))
    assert [(each.code, each.nodes, each.decisive) for each in found] == [
        ("insufficient-resource", 1, True),
        ("node-selector", 5, False),
    ]


def test_of_equally_close_nodes_those_of_the_rarer_causes_decide() -> None:
    nodes = [small(f"n{number}", 8) for number in range(5)]
    tainted = make_node("ssd").labels(disk="ssd").capacity(cpu=8).taint("dedicated", value="db").build()
    found = causes(make_pod("p").node_selector(disk="ssd").build(), *nodes, tainted)
    assert [(each.code, each.decisive) for each in found] == [
        ("untolerated-taint", True),
        ("node-selector", False),
    ]


def test_a_resource_that_a_node_has_none_of_is_further_away_than_a_taint() -> None:
    gpu = make_node("gpu").capacity({"cpu": 8, "nvidia.com/gpu": 1}).taint("gpu").build()
    pod = make_pod("p").requests({"nvidia.com/gpu": 1}).build()
    found = causes(pod, *(small(f"n{number}", 8) for number in range(3)), gpu)
    assert [(each.code, each.decisive) for each in found] == [
        ("untolerated-taint", True),
        ("insufficient-resource", False),
    ]


def test_a_node_that_the_pod_may_go_to_is_closer_than_a_larger_one_that_is_kept_for_others() -> None:
    kept = make_node("kept").capacity(cpu=64).taint("dedicated", value="gpu").build()
    found = causes(
        make_pod("p").requests(cpu=32).build(), kept, *(small(f"n{number}", 8) for number in range(3))
    )
    assert [(each.code, each.decisive) for each in found] == [
        ("insufficient-resource", True),
        ("untolerated-taint", False),
    ]


def test_a_selector_that_no_node_meets_is_decisive() -> None:
    found = causes(make_pod("p").requests(cpu=9).node_selector(disk="sdd").build(), small("a", 9), small("b"))
    assert [(each.code, each.nodes, each.decisive) for each in found] == [
        ("node-selector", 2, True),
        ("insufficient-resource", 1, False),
    ]


def test_the_causes_on_the_node_that_decides_are_decisive_with_its_numbers() -> None:
    kept = make_node("kept").capacity(cpu=2).taint("dedicated", value="db").build()
    explanation = decide(make_pod("p").requests(cpu=8).build(), nodes=[small("near", 7), kept])
    causes = causes_of(explanation)
    found = decided_on(causes, explanation, "kept")
    assert [(each.code, each.node, each.decisive) for each in found] == [
        ("insufficient-resource", "kept", True),
        ("untolerated-taint", "kept", True),
    ]
    assert found[0].evidence.values["short"] == 6000
    assert decided_on(causes, explanation, "a node that isn't there") == causes


def test_a_plugin_without_evidence_has_its_name_as_the_code() -> None:
    class RackGuard(Plugin):
        name = "RackGuard"

        @hookimpl
        def filter(self) -> Status:
            return Status.unschedulable("wrong rack")

    (cause,) = causes_of(decide(make_pod("p").build(), RackGuard, nodes=[small("a")]))
    assert (cause.code, cause.evidence.values) == ("rack-guard", {"reason": "wrong rack"})
    assert str(cause) == "wrong rack: keeps it off 1 of 1 nodes"


@pytest.mark.parametrize(
    ("name", "code"),
    [("NodePorts", "node-ports"), ("GPUShare", "gpu-share"), ("", "extender"), ("V2Gate", "v2-gate")],
)
def test_the_code_of_a_plugin_is_its_name_in_kebab_case(name: str, code: str) -> None:
    assert code_of_plugin(name) == code


@pytest.mark.slow
@given(clusters(most_nodes=6, most_bound=8, most_pending=4))
@settings(max_examples=examples(20))
def test_equal_codes_and_parameters_have_equal_texts(cluster: DrawnCluster) -> None:
    """So a program that reads the codes can say all that the text says."""
    texts: dict[object, Evidence] = {}
    for pod in cluster.pending:
        explanation = explain_pod(in_memory(cluster), pod)
        for node in explanation.rows():
            for plugin, found in node.evidence.items():
                for each in found:
                    assert set(each.values) <= set(CAUSES[each.code].parameters), (plugin, each)
                    key = (each.code, each.values)
                    assert texts.setdefault(key, each) == each
        found_causes = causes_of(explanation)
        assert bool(found_causes) >= (explanation.node is None and bool(explanation.nodes))
        assert all(each.decisive for each in found_causes[:1])
