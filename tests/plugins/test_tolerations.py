"""Taints and tolerations for many nodes at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.plugins._tolerations import has_untolerated_taint, untolerated_mask
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters, nodes, pods
from tests.plugins.batches import some_rows


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(clusters(most_nodes=6, most_bound=0), pods(), st.data())
def test_the_same_nodes_have_untolerated_taints_at_once_as_one_by_one(
    cluster: DrawnCluster, pod: Pod, data: st.DataObject
) -> None:
    snapshot = Snapshot.of(cluster.nodes)
    assert len(snapshot.table.taints.codes) == len(snapshot)  # a column to be kept in step
    for changed in data.draw(st.lists(st.sampled_from(cluster.nodes).flatmap(lambda n: nodes(n.name)))):
        snapshot.update([NodeInfo.of(changed)])
    rows = data.draw(some_rows(len(snapshot)))
    taints = [snapshot.node_infos[row].node.spec.taints for row in rows]
    assert untolerated_mask(snapshot.table, rows, pod.spec.tolerations).tolist() == [
        has_untolerated_taint(each, pod.spec.tolerations) for each in taints
    ]
