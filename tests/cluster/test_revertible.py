"""A cluster that goes back: everything is as it was, and who watches it knows."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import Node, Pod, make_node, make_pod
from kschedfw.api import Named
from kschedfw.cluster import ConflictError, EventType, RevertibleCluster, WatchEvent
from kschedfw.testing.cluster_contract import ClusterContract


class TestContract(ClusterContract):
    """It is an in-memory cluster in all else."""

    @pytest.fixture
    def cluster(self) -> RevertibleCluster:
        return RevertibleCluster()


def labelled(node: Node, value: str) -> Node:
    return node.with_metadata(attrs.evolve(node.metadata, labels={"x": value}, resource_version=""))


_WRITES = st.lists(
    st.tuples(st.sampled_from(["add", "update", "delete"]), st.sampled_from("abcd"), st.sampled_from("xyz")),
    max_size=12,
)


def write(cluster: RevertibleCluster, what: str, name: str, value: str) -> None:
    present = cluster.get(Node, name)
    node = labelled(make_node(name).build(), value)
    node = node.with_metadata(attrs.evolve(node.metadata, uid=""))
    if what == "add" and present is None:
        cluster.add(node)
    elif what == "update" and present is not None:
        cluster.update(labelled(present, value))
    elif what == "delete" and present is not None:
        cluster.delete(present)


@given(_WRITES, _WRITES, _WRITES)
def test_objects_come_back_as_they_were_and_where_they_were_and_watchers_follow(
    first: list[tuple[str, str, str]],
    second: list[tuple[str, str, str]],
    third: list[tuple[str, str, str]],
) -> None:
    cluster = RevertibleCluster()
    seen: dict[str, Named] = {}

    def watch(event: WatchEvent) -> None:
        obj = event.object
        assert event.old is seen.get(obj.key) or event.type is not EventType.MODIFIED
        if event.type is EventType.DELETED:
            assert seen.pop(obj.key).uid == obj.uid
        else:
            assert (event.type is EventType.ADDED) is (obj.key not in seen)
            seen[obj.key] = obj

    cluster.watch(watch)
    states: list[tuple[int, tuple[Node, ...]]] = []
    for writes in (first, second, third):
        for each in writes:
            write(cluster, *each)
        states.append((cluster.position, tuple(cluster.list(Node))))
    for position, nodes in reversed(states):
        cluster.revert_to(position)
        assert tuple(map(id, cluster.list(Node))) == tuple(map(id, nodes))
        assert {key: id(obj) for key, obj in seen.items()} == {node.key: id(node) for node in nodes}


@given(_WRITES, _WRITES, _WRITES)
def test_an_undo_is_a_write_that_can_be_undone(
    first: list[tuple[str, str, str]],
    second: list[tuple[str, str, str]],
    third: list[tuple[str, str, str]],
) -> None:
    cluster = RevertibleCluster()
    for each in first:
        write(cluster, *each)
    before, position = list(cluster.list(Node)), cluster.position
    for each in second:
        write(cluster, *each)
    after, middle = list(cluster.list(Node)), cluster.position
    cluster.undo(cluster.changes_since(position))
    assert list(cluster.list(Node)) == before
    for each in third:
        write(cluster, *each)
    cluster.revert_to(middle)
    assert list(cluster.list(Node)) == after
    cluster.revert_to(position)
    assert list(cluster.list(Node)) == before


def test_what_has_been_written_since_is_not_undone() -> None:
    cluster = RevertibleCluster([make_pod("p").build()])
    pod = cluster.list(Pod)[0]
    cluster.delete(pod)
    changes = cluster.changes_since(0)
    cluster.add(make_pod("p").build())
    with pytest.raises(ConflictError, match="Pod default/p has been changed since"):
        cluster.undo(changes)
    assert len(cluster.list(Pod)) == 1


def test_what_is_final_stays() -> None:
    cluster = RevertibleCluster([make_node("a").build()])
    cluster.add(make_node("b").build())
    cluster.forget_log()
    assert cluster.position == 0
    cluster.revert_to(0)
    assert [node.name for node in cluster.list(Node)] == ["a", "b"]
