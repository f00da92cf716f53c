"""A change of a snapshot that raises half-way leaves nothing stale: not in the table, and not in its listeners."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kschedfw import Node, NodeInfo, PodInfo, Reads, Snapshot, make_node, make_pod
from kschedfw.plugins.image_locality import ImageIndex
from kschedfw.testing.properties import examples
from tests.framework.nodes.columns import assert_rows_are_nodes, interrupted
from tests.framework.nodes.test_table import histories as histories_of_states
from tests.framework.nodes.test_topology import assert_right
from tests.topologies import Step, histories

GPU = "example.com/gpu"
LINES = st.integers(1, 30) | st.integers(1, 400)
"""Where a change of a small snapshot is interrupted; most take 50 to 300 lines."""


def with_pods(info: NodeInfo, *requests: dict[str, int]) -> NodeInfo:
    changed = info.clone()
    for each in requests:
        changed.add_pod(PodInfo.of(make_pod("p").requests(each).build()))
    return changed


def without_pods(info: NodeInfo) -> NodeInfo:
    changed = info.clone()
    for each in info.pods:
        changed.remove_pod(each.pod)
    return changed


class TestResourcesThatCameAndWent:
    def test_of_a_pod_that_the_snapshot_never_saw_have_a_column_when_the_node_changes(self) -> None:
        snapshot = Snapshot.of([make_node("a").build()])
        _ = snapshot.table
        changed = without_pods(with_pods(snapshot.get("a"), {GPU: 1}))
        changed.set_node(make_node("a").taint("new").build())
        snapshot.update([changed])
        assert changed.requested.scalar_resources == {GPU: 0}
        assert_rows_are_nodes(snapshot)

    def test_have_a_column_before_a_state_that_no_longer_names_them(self) -> None:
        snapshot = Snapshot.of([make_node("a").build()])
        _ = snapshot.table
        snapshot.update([without_pods(with_pods(snapshot.get("a"), {GPU: 1}))])
        snapshot.update([with_pods(NodeInfo.of(make_node("a").build()), {"cpu": 1})])
        assert_rows_are_nodes(snapshot)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(histories(), st.data())
def test_a_change_that_is_interrupted_anywhere_leaves_no_count_of_pods_stale(
    steps: list[Step], data: st.DataObject
) -> None:
    snapshot = Snapshot()
    for step in steps:
        assert_right(snapshot)
        with interrupted(data.draw(LINES)):
            step.apply(snapshot)
            event("not interrupted")
        if data.draw(st.booleans()):
            # As nobody should: while some nodes may be of the new state and some of the old one.
            assert_rows_are_nodes(snapshot)
            assert_right(snapshot)
        snapshot.replace(step.node_infos)
        assert_rows_are_nodes(snapshot)
    assert_right(snapshot)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(histories_of_states(), st.data())
def test_a_change_that_is_interrupted_anywhere_leaves_no_column_stale(
    states: list[list[NodeInfo]], data: st.DataObject
) -> None:
    snapshot = Snapshot(states[0])
    column = snapshot.table.encoded("pods", lambda info: len(info.pods) or None, Reads.PODS)
    images = ImageIndex(snapshot.table)
    for infos in states[1:]:
        with interrupted(data.draw(LINES)):
            snapshot.replace(infos)
        snapshot.replace(infos)
        assert_rows_are_nodes(snapshot)
        assert [column.values[code] for code in column.codes] == [len(info.pods) or None for info in infos]
        assert images.names == {name for info in infos for name in info.image_states}
        claims = {f"{each.pod.namespace}/c" for info in infos for each in info.pods}
        assert not any(map(snapshot.claims.is_used, claims))


class Failing:
    """A listener that raises at the next change, and hears of the rebuilding."""

    rebuilt = 0

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:
        raise ValueError("a listener failed")

    def rows_moved(self, moved_from: object, gone: Sequence[NodeInfo], added: Sequence[NodeInfo]) -> None:
        raise ValueError("a listener failed")

    def table_rebuilt(self) -> None:
        self.rebuilt += 1


@pytest.mark.parametrize("nodes", [("a", "b"), ("b", "a")])
def test_a_listener_that_fails_keeps_no_other_one_from_hearing_of_the_change(nodes: Sequence[str]) -> None:
    snapshot = Snapshot.of([make_node("a").build(), make_node("b").build()])
    failing = Failing()
    snapshot.table.listen(failing)
    images = ImageIndex(snapshot.table)
    table, layout, versions = snapshot.table, snapshot.table.layout, snapshot.table.version
    changed = {
        name: NodeInfo.of(make_node(name).taint("new").image("web:1", size=1).build()) for name in nodes
    }
    with pytest.raises(ValueError, match="a listener failed"):
        snapshot.rearrange(nodes, changed)
    snapshot.replace([changed[name] for name in nodes])
    assert snapshot.table is table
    assert failing.rebuilt == 1
    assert images.names == set()
    assert_rows_are_nodes(snapshot)
    assert table.moved_since(layout) is None
    assert table.changed_since(versions.nodes, table.pod_changes.version) is None
    assert table.changed_since(table.node_changes.version, versions.pods) is None


def test_a_column_whose_function_fails_is_forgotten_and_the_others_stay() -> None:
    def version(info: NodeInfo) -> int | None:
        return int(info.node.labels["version"])

    def node(version: str) -> Node:
        return make_node("a").labels(version=version).build()

    snapshot = Snapshot.of([node("1")])
    numbers, texts = snapshot.table.encoded("number", version), snapshot.table.label("version")
    with pytest.raises(ValueError, match="invalid literal"):
        snapshot.update([NodeInfo.of(node("two"))])
    assert snapshot.table.label("version") is texts
    assert texts.values[texts.codes[0]] == "two"
    with pytest.raises(ValueError, match="invalid literal"):
        snapshot.table.encoded("number", version)
    snapshot.update([NodeInfo.of(node("3"))])
    again = snapshot.table.encoded("number", version)
    assert again is not numbers
    assert again.values[again.codes[0]] == 3
