"""The nodes in columns say what the NodeInfos say."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import NodeTable, Snapshot
from kschedfw.framework.node_table import NO_LABEL
from kschedfw.testing import make_node
from tests.strategies import clusters


def snapshots() -> st.SearchStrategy[Snapshot]:
    return clusters(most_pending=0).map(lambda cluster: Snapshot.of(cluster.nodes, cluster.bound))


def assert_columns_fit(table: NodeTable) -> None:
    """Shapes, types and names are the documented ones."""
    n, r = len(table.names), len(table.resources)
    for array, shape in (
        (table.allocatable, (n, r)),
        (table.requested, (n, r)),
        (table.non_zero_requested, (n, 2)),
        (table.pod_counts, (n,)),
    ):
        assert array.shape == shape
        assert array.dtype == np.int64
    assert table.unschedulable.shape == (n,)
    assert table.unschedulable.dtype == np.bool_
    assert table.resources[:4] == ("cpu", "memory", "ephemeral-storage", "pods")
    assert list(table.resources[4:]) == sorted(set(table.resources[4:]))
    assert [table.columns[name] for name in table.resources] == list(range(r))


def test_a_table_without_nodes_has_its_columns() -> None:
    table = NodeTable.of(())
    assert_columns_fit(table)
    assert table.resources == ("cpu", "memory", "ephemeral-storage", "pods")
    assert table.label("zone").codes.shape == (0,)
    assert table.taint_sets[0].shape == (0,)


@settings(max_examples=25, deadline=None)
@given(snapshots())
def test_each_row_is_its_node(snapshot: Snapshot) -> None:
    table = snapshot.table
    assert_columns_fit(table)
    assert len(table) == len(snapshot)
    assert table.names == tuple(info.name for info in snapshot.node_infos)
    for row, info in enumerate(snapshot.node_infos):
        assert table.rows[info.name] == row
        for name, column in table.columns.items():
            assert table.allocatable[row, column] == info.allocatable.get(name)
            expected = len(info.pods) if name == "pods" else info.requested.get(name)
            assert table.requested[row, column] == expected
        assert {*info.allocatable.scalar_resources, *info.requested.scalar_resources} <= set(table.resources)
        non_zero = info.non_zero_requested
        assert tuple(table.non_zero_requested[row]) == (non_zero.milli_cpu, non_zero.memory)
        assert table.pod_counts[row] == len(info.pods)
        assert table.unschedulable[row] == info.node.spec.unschedulable


@settings(max_examples=25, deadline=None)
@given(snapshots())
def test_labels_and_taints_decode_to_the_nodes(snapshot: Snapshot) -> None:
    for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "app", "nobody/has-it"):
        column = snapshot.table.label(key)
        assert column.codes.shape == (len(snapshot),)
        assert column.codes.dtype == np.int32
        decoded = [None if code == NO_LABEL else column.values[code] for code in column.codes]
        assert decoded == [info.node.labels.get(key) for info in snapshot.node_infos]
        assert len(set(column.values)) == len(column.values)
    codes, sets = snapshot.table.taint_sets
    assert [sets[code] for code in codes] == [info.node.spec.taints for info in snapshot.node_infos]
    assert len(set(sets)) == len(sets)


def test_labels_and_taints_are_encoded_once() -> None:
    table = NodeTable.of(Snapshot.of([make_node("a").taint("t").build()]).node_infos)
    assert table.label("zone") is table.label("zone")
    assert table.taint_sets is table.taint_sets
