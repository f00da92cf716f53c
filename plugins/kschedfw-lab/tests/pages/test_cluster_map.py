"""The columns from which the page draws the map."""

from __future__ import annotations

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab.pages.cluster_map import ABSENT, cluster_map
from kschedfw_lab.pages.columns import NONE, Coded, Column, column
from pages.clusters import HOSTILE, nodes, pods

from kschedfw import Node, make_node, make_pod
from kschedfw.api.node import NodeCondition
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


def listed(given: Column, length: int) -> list[int]:
    return [given] * length if isinstance(given, int) else given


@given(st.lists(st.integers(-3, 3)))
def test_a_column_has_all_its_numbers(values: list[int]) -> None:
    assert listed(column(values), len(values)) == values


@given(st.lists(st.none() | st.sampled_from(["a", "b", ""])))
def test_a_coded_column_has_all_its_texts(texts: list[str | None]) -> None:
    coded = Coded.of(texts)
    assert len(set(coded.values)) == len(coded.values)
    codes = listed(coded.codes, len(texts))
    assert [None if code == NONE else coded.values[code] for code in codes] == texts


@settings(max_examples=examples(30))
@given(clusters(most_nodes=4, most_bound=6, most_pending=3))
def test_the_map_adds_up_to_what_plugins_see(cluster: DrawnCluster) -> None:
    every = [*cluster.bound, *cluster.pending]
    shown = cluster_map(cluster.nodes, every)
    rows = listed(shown.pods.nodes, len(every))
    for row, info in enumerate(Snapshot.of(cluster.nodes, cluster.bound).node_infos):
        here = [place for place, at in enumerate(rows) if at == row]
        assert shown.nodes.names[row] == info.name
        assert len(here) == len(info.pods)
        for resource in shown.resources:
            allocatable = listed(shown.nodes.allocatable[resource], len(cluster.nodes))
            assert allocatable[row] == info.allocatable.get(resource)
            if resource in shown.pods.requests and resource != "pods":
                requests = listed(shown.pods.requests[resource], len(every))
                assert sum(requests[place] for place in here) == info.requested.get(resource)


def test_labels_taints_and_cordons_are_columns() -> None:
    shown = cluster_map(nodes(), pods())
    assert shown.nodes.labels["zone"] == Coded(["a", "b"], [0, 1, 1])
    assert shown.nodes.labels["note"] == Coded([HOSTILE], [0, NONE, NONE]), "texts stay as they are"
    assert shown.nodes.cordoned == [2]
    tainted = make_node("t").taint("gpu", value="yes").taint("old", effect="NoExecute").build()
    assert cluster_map([tainted], []).nodes.taints.values == ["gpu=yes:NoSchedule, old:NoExecute"]


def test_the_states_of_nodes_are_read_from_conditions_and_from_the_node_controllers_taints() -> None:
    def node(name: str, *conditions: tuple[str, str], taint: str = "") -> Node:
        made = make_node(name)
        built = (made.taint(taint) if taint else made).build()
        told = tuple(NodeCondition(kind, status) for kind, status in conditions)
        return attrs.evolve(built, status=attrs.evolve(built.status, conditions=told))

    shown = cluster_map(
        [
            node("plain"),
            node("ready", ("Ready", "True"), ("MemoryPressure", "False")),
            node("unknown", ("Ready", "Unknown")),
            node("gone", taint="node.kubernetes.io/unreachable"),
            node(
                "full",
                ("Ready", "True"),
                ("DiskPressure", "True"),
                taint="node.kubernetes.io/memory-pressure",
            ),
            node("gpu", ("Ready", "True"), taint="gpu"),
        ],
        [],
    ).nodes
    assert shown.unready == [2, 3]
    assert shown.pressures == Coded(["memory pressure, disk pressure"], [NONE, NONE, NONE, NONE, 0, NONE])
    assert shown.tainted == [5], "the others' taints say what their conditions say"


def test_pods_can_be_shown_elsewhere_than_they_are() -> None:
    places = {"default/web": "memory-taken", "default/busy": "", "default/cache": None}
    shown = cluster_map(nodes(), pods(), places)
    assert shown.pods.nodes == [NONE, ABSENT, 1, NONE, NONE]


def test_a_pod_on_a_node_that_is_missing_is_on_none() -> None:
    assert cluster_map([], [make_pod("lost").node("nowhere").build()]).pods.nodes == NONE
