"""Node selector terms for many nodes at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import make_node
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import NodeSelectorTerm, Operator, Requirement
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.plugins._node_terms import RequiredNodeAffinity, term_mask
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters, nodes, pods
from tests.plugins.batches import some_rows

NODES = (
    make_node("ssd").labels(disk="ssd", cores="16").build(),
    make_node("hdd").labels(disk="hdd", cores="four").build(),
    make_node("empty").labels(disk="").build(),
    make_node("bare").build(),
)
EVERY_ROW = np.arange(len(NODES))


def requirements() -> st.SearchStrategy[Requirement]:
    """Of any kind, also such as the API server would refuse."""
    keys = st.sampled_from(["disk", "cores", "metadata.name", "nobody-has-it"])
    values = st.lists(st.sampled_from(["ssd", "hdd", "nvme", "", "5", "16", "four"]), max_size=3)
    return st.builds(Requirement, keys, st.sampled_from(Operator), values.map(tuple))


@given(
    st.builds(
        NodeSelectorTerm,
        st.lists(requirements(), max_size=2).map(tuple),
        st.lists(requirements(), max_size=2).map(tuple),
    )
)
def test_a_term_matches_the_same_nodes_at_once_as_one_by_one(term: NodeSelectorTerm) -> None:
    mask = term_mask(term, Snapshot.of(NODES).table, EVERY_ROW)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [term.matches(node.labels, node.name) for node in NODES]


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(clusters(most_nodes=6, most_bound=0), pods(), st.data())
def test_required_affinity_allows_the_same_nodes_at_once_as_one_by_one(
    cluster: DrawnCluster, pod: Pod, data: st.DataObject
) -> None:
    snapshot = Snapshot.of(cluster.nodes)
    affinity = RequiredNodeAffinity.of(pod)
    affinity.mask(snapshot.table, np.arange(len(snapshot)))  # so that there are columns to be kept in step
    for changed in data.draw(st.lists(st.sampled_from(cluster.nodes).flatmap(lambda n: nodes(n.name)))):
        snapshot.update([NodeInfo.of(changed)])
    rows = data.draw(some_rows(len(snapshot)))
    expected = [affinity.allows(snapshot.node_infos[row].node) for row in rows]
    assert affinity.mask(snapshot.table, rows).tolist() == expected


def test_no_term_at_all_allows_no_node() -> None:
    table = Snapshot.of(NODES).table
    assert not RequiredNodeAffinity(terms=()).mask(table, EVERY_ROW).any()
    assert RequiredNodeAffinity().mask(table, EVERY_ROW).all()


@pytest.mark.parametrize("value", ["nvme", ""])
def test_a_label_that_no_node_has_is_not_taken_for_an_absent_one(value: str) -> None:
    table = Snapshot.of([make_node("a").labels(disk="ssd").build(), make_node("b").build()]).table
    affinity = RequiredNodeAffinity(selector=(Requirement("disk", Operator.IN, (value,)),))
    assert affinity.mask(table, np.arange(2)).tolist() == [False, False]
