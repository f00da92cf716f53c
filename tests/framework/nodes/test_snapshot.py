"""The nodes and pods that one cycle sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import KschedfwError, NodeInfo, Snapshot, make_node, make_pod
from kschedfw.framework.nodes.node_info import ImageStateSummary
from kschedfw.framework.nodes.snapshot import NodeNotFoundError
from tests.framework.support import nodes


def test_an_empty_snapshot_has_no_nodes() -> None:
    snapshot = Snapshot()
    assert not snapshot
    assert len(snapshot) == 0
    assert list(snapshot.node_infos) == []


def test_nodes_are_visited_in_the_order_they_were_given() -> None:
    snapshot = Snapshot.of(nodes("c", "a", "b"))
    assert [info.name for info in snapshot.node_infos] == ["c", "a", "b"]
    assert len(snapshot) == 3


def test_nodes_are_found_by_name() -> None:
    snapshot = Snapshot.of(nodes("a", "b"))
    assert "a" in snapshot
    assert "x" not in snapshot
    assert snapshot.get("b") is snapshot.node_infos[1]


def test_asking_for_an_unknown_node_names_it() -> None:
    with pytest.raises(NodeNotFoundError) as caught:
        Snapshot().get("x")
    assert str(caught.value) == "node 'x' not found in the snapshot"
    assert isinstance(caught.value, KschedfwError)
    assert isinstance(caught.value, KeyError)


def test_bound_pods_lie_on_their_nodes_and_all_others_nowhere() -> None:
    pods = [
        make_pod("here").node("a").build(),
        make_pod("gone").node("x").build(),
        make_pod("pending").build(),
    ]
    snapshot = Snapshot.of(nodes("a", "b"), pods)
    assert [[pod.pod.name for pod in info.pods] for info in snapshot.node_infos] == [["here"], []]


def test_nodes_with_affinity_are_listed_apart() -> None:
    pods = [
        make_pod("near").node("a").pod_affinity("zone", {"x": "y"}).build(),
        make_pod("far").node("b").pod_anti_affinity("zone", {"x": "y"}).build(),
        make_pod("plain").node("c").build(),
    ]
    snapshot = Snapshot.of(nodes("a", "b", "c"), pods)
    assert [info.name for info in snapshot.with_affinity] == ["a", "b"]
    assert [info.name for info in snapshot.with_required_anti_affinity] == ["b"]


def test_every_node_knows_on_how_many_nodes_its_images_are() -> None:
    snapshot = Snapshot.of(
        [
            make_node("a").image("app:1", "app@sha256:1", size=100).build(),
            make_node("b").image("app:1", size=100).image("db:1", size=7).build(),
            make_node("c").build(),
        ]
    )
    assert snapshot.get("a").image_states == {
        "app:1": ImageStateSummary(100, 2),
        "app@sha256:1": ImageStateSummary(100, 1),
    }
    assert snapshot.get("b").image_states == {
        "app:1": ImageStateSummary(100, 2),
        "db:1": ImageStateSummary(7, 1),
    }
    assert snapshot.get("c").image_states == {}


def test_an_image_that_a_node_lists_twice_is_on_one_node() -> None:
    snapshot = Snapshot.of([make_node("a").image("app:1", size=1).image("app:1", size=1).build()])
    assert snapshot.get("a").image_states == {"app:1": ImageStateSummary(1, 1)}


class TestReplace:
    def test_everything_follows(self) -> None:
        snapshot = Snapshot.of(nodes("a"), [make_pod().node("a").pod_affinity("zone", {"x": "y"}).build()])
        table = snapshot.table
        snapshot.replace([NodeInfo.of(node) for node in nodes("b", "c")])
        assert "a" not in snapshot
        assert snapshot.get("c").name == "c"
        assert snapshot.with_affinity == ()
        assert snapshot.table is table
        assert table.names == ("b", "c")

    @given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=6))
    def test_nodes_are_those_given_last_however_they_come_go_and_move(self, orders: list[list[str]]) -> None:
        known = {node.name: NodeInfo.of(node) for node in nodes(*"abcdefgh")}
        snapshot = Snapshot()
        for order in orders:
            snapshot.replace([known[name] for name in order])
            assert list(snapshot.node_infos) == [known[name] for name in order]
            assert [name for name in known if name in snapshot] == sorted(order)
            assert all(snapshot.get(name) is known[name] for name in order)
            assert list(snapshot.table.names) == order
            assert snapshot.table.rows == {name: row for row, name in enumerate(order)}
            assert snapshot.selection.rows.tolist() == list(range(len(order)))


class TestUpdate:
    def test_the_changed_nodes_keep_their_places(self) -> None:
        snapshot = Snapshot.of(nodes("a", "b", "c"))
        before, table = list(snapshot.node_infos), snapshot.table
        changed = NodeInfo.of(nodes("b")[0], [make_pod().build()])
        snapshot.update([changed])
        assert list(snapshot.node_infos) == [before[0], changed, before[2]]
        assert snapshot.get("b") is changed
        assert snapshot.table is table
        assert table.pod_counts.tolist() == [0, 1, 0]

    def test_nodes_with_affinity_come_and_go(self) -> None:
        snapshot = Snapshot.of(nodes("a", "b"))
        far = make_pod("far").node("b").pod_anti_affinity("zone", {"x": "y"}).build()
        snapshot.update([NodeInfo.of(nodes("b")[0], [far])])
        assert [info.name for info in snapshot.with_affinity] == ["b"]
        assert [info.name for info in snapshot.with_required_anti_affinity] == ["b"]
        snapshot.update([NodeInfo.of(nodes("b")[0])])
        assert snapshot.with_affinity == snapshot.with_required_anti_affinity == ()

    def test_an_unknown_node_can_not_be_updated(self) -> None:
        with pytest.raises(NodeNotFoundError, match="node 'b' not found in the snapshot"):
            Snapshot.of(nodes("a")).update([NodeInfo.of(nodes("b")[0])])


def test_the_table_is_made_once_and_has_the_same_rows() -> None:
    snapshot = Snapshot.of(nodes("b", "a"))
    assert snapshot.table is snapshot.table
    assert snapshot.table.names == ("b", "a")
    assert snapshot.table.node_infos == snapshot.node_infos
