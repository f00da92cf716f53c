"""The snapshot that plugins see is what a new one would be, at the cost of what has changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_kubernetes.extender_server.state import ClusterState

from kschedfw import make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.testing.properties import examples

IMAGES = ("app:1", "db:2", "web:3")


def node(name: str, images: Sequence[str] = (), *, unschedulable: bool = False) -> Node:
    builder = make_node(name).capacity(cpu=4)
    for image in images:
        builder = builder.image(image, size=100)
    return (builder.unschedulable() if unschedulable else builder).build()


def seen(snapshot: Snapshot) -> list[object]:
    """All that plugins may look at, in order."""
    return [
        (info.node, [each.pod.name for each in info.pods], info.requested, info.image_states)
        for info in snapshot.node_infos
    ]


names = st.sampled_from("abcd")
some_nodes = st.builds(
    node, names, st.lists(st.sampled_from(IMAGES), unique=True), unschedulable=st.booleans()
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("node"), some_nodes),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("pod"), names),
        st.tuples(st.just("ask"), st.lists(some_nodes, max_size=3, unique_by=lambda each: each.name)),
    ),
    max_size=15,
)


@settings(max_examples=examples(60))
@given(steps, st.booleans())
def test_it_is_what_a_new_one_would_be(steps: list[tuple[str, object]], with_table: bool) -> None:
    cluster, snapshot = InMemoryCluster(), Snapshot()
    state = ClusterState(cluster, snapshot)
    nodes: dict[str, Node] = {}
    pods = []
    for number, (what, value) in enumerate([*steps, ("ask", [])]):
        if what == "node":
            assert isinstance(value, Node)
            if value.name in nodes:
                cluster.update(value)
            else:
                cluster.add(value)
            nodes[value.name] = value
        elif what == "delete" and value in nodes:
            cluster.delete(nodes.pop(str(value)))
        elif what == "pod":
            pods.append(cluster.add(make_pod(f"p{number}").requests(cpu=1).node(str(value)).build()))
        elif what == "ask":
            assert isinstance(value, list)
            state.show([NodeInfo.of(each) for each in value])
            stored = [cluster.get(Node, name) for name in nodes]
            there = {each.name: each for each in stored if each} | {each.name: each for each in value}
            assert seen(snapshot) == seen(Snapshot.of(there.values(), pods))
            if with_table:
                assert snapshot.table.names == tuple(there)
                assert snapshot.table.pod_counts.tolist() == [len(info.pods) for info in snapshot.node_infos]


class TestCost:
    @pytest.fixture
    def cluster(self) -> InMemoryCluster:
        return InMemoryCluster(node(f"n{i}", IMAGES) for i in range(20))

    def test_of_nothing_new_is_nothing(self, cluster: InMemoryCluster) -> None:
        snapshot = Snapshot()
        state = ClusterState(cluster, snapshot)
        sent = [NodeInfo.of(node("n1", IMAGES)), NodeInfo.of(node("n2", IMAGES))]
        for asked in ((), sent):
            state.show(asked)
            before, version = list(snapshot.node_infos), snapshot.table.version
            state.show(asked)
            assert all(a is b for a, b in zip(before, snapshot.node_infos, strict=True))
            assert snapshot.table.version == version

    def test_of_a_few_sent_nodes_is_theirs(self, cluster: InMemoryCluster) -> None:
        """What they know of images is the same; so the others stay as they are."""
        snapshot = Snapshot()
        state = ClusterState(cluster, snapshot)
        state.show()
        before = {info.name: info for info in snapshot.node_infos}
        state.show([NodeInfo.of(node("n3", IMAGES))])
        changed = [info.name for info in snapshot.node_infos if info is not before[info.name]]
        assert changed == ["n3"]
        assert snapshot.get("n3").image_states is before["n3"].image_states

    def test_what_fails_leaves_nothing_behind(
        self, cluster: InMemoryCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        snapshot = Snapshot()
        state = ClusterState(cluster, snapshot)
        state.show()
        with monkeypatch.context() as patched:
            patched.setattr(snapshot, "update", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                state.show([NodeInfo.of(node("n3", IMAGES))])
        state.show()
        assert seen(snapshot) == seen(Snapshot.of(cluster.list(Node)))
