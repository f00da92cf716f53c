"""An update that meets others' writes is made again of what they wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import CustomKind, CustomObject, InMemoryCluster, Node, ObjectMeta, make_node, retry_on_conflict
from kschedfw.api.meta import Named
from kschedfw.cluster import ConflictError, NotFoundError, T
from kschedfw.testing.properties import examples
from tests.overtaken import OvertakenCluster, labelled

KIND = CustomKind("example.org/v1", "Thing")


@settings(max_examples=examples(50))
@given(
    st.lists(st.integers(0, 2), max_size=7),
    st.booleans(),
    st.sampled_from((make_node("a").build(), CustomObject(KIND, ObjectMeta("a", "default")))),
)
def test_nobodys_write_is_lost_unless_others_were_faster_five_times(
    turns: list[int], tells: bool, obj: Named
) -> None:
    cluster = OvertakenCluster({type(obj): turns}, tells=tells)
    cluster.add(obj)
    (known,) = cluster.list(type(obj))
    overtaken = len(turns) >= 5 and all(turns[:5])
    if overtaken:
        with pytest.raises(ConflictError):
            retry_on_conflict(cluster, known, lambda each: labelled(each, "mine"))
    else:
        assert "mine" in retry_on_conflict(cluster, known, lambda each: labelled(each, "mine")).labels
    (present,) = cluster.list(type(obj))
    others = {f"other{number + 1}" for number in range(cluster.others)}
    assert {*present.labels} - {*obj.labels} == others | (set() if overtaken else {"mine"})


def test_what_is_so_already_is_not_written() -> None:
    cluster = InMemoryCluster([make_node("a").build()])
    before = cluster.resource_version
    (known,) = cluster.list(Node)
    assert retry_on_conflict(cluster, known, lambda each: each) is known
    assert cluster.resource_version == before


def test_a_change_sees_what_others_wrote_and_may_refuse_it() -> None:
    cluster = OvertakenCluster({Node: [1]})
    cluster.add(make_node("a").build())

    def change(node: Node) -> Node:
        if "other1" in node.labels:
            raise LookupError
        return labelled(node, "mine")

    with pytest.raises(LookupError):
        retry_on_conflict(cluster, cluster.list(Node)[0], change)


def replaced(cluster: InMemoryCluster, node: Node) -> None:
    cluster.delete(node)
    cluster.add(make_node("a").uid("another").build())


@pytest.mark.parametrize(
    ("happens", "error"),
    [(replaced, ConflictError), (lambda cluster, node: cluster.delete(node), NotFoundError)],
    ids=["replaced", "deleted"],
)
def test_another_object_of_that_name_is_left_alone(
    happens: Callable[[InMemoryCluster, Node], None], error: type[Exception]
) -> None:
    cluster = InMemoryCluster([make_node("a").build()])
    (known,) = cluster.list(Node)
    happens(cluster, known)
    with pytest.raises(error):
        retry_on_conflict(cluster, known, lambda each: labelled(each, "mine"))
    assert all("mine" not in node.labels for node in cluster.list(Node))


def test_a_copy_that_lags_behind_is_not_asked_again_and_again() -> None:
    class Lagging(InMemoryCluster):
        attempts = 0

        def update(self, obj: T) -> T:
            self.attempts += 1
            raise ConflictError("somebody else was faster")

    cluster = Lagging([make_node("a").build()])
    with pytest.raises(ConflictError):
        retry_on_conflict(cluster, cluster.list(Node)[0], lambda each: labelled(each, "mine"))
    assert cluster.attempts == 1
