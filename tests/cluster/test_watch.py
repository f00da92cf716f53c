"""A watch shows the whole truth, once and in order, whoever writes and whatever the handler does."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node, NodeSpec
from kschedfw.api.pod import Pod
from kschedfw.cluster import ClusterError, EventType, InMemoryCluster, WatchEvent
from kschedfw.testing.waiting import PATIENCE


def node(name: str, provider_id: str = "") -> Node:
    return Node(metadata=ObjectMeta(name=name), spec=NodeSpec(provider_id=provider_id))


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default"))


class Replica:
    """Rebuilds the cluster's nodes from events, and doesn't count an event that can't follow the ones before."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.events = 0

    def __call__(self, event: WatchEvent) -> None:
        obj = event.object
        assert isinstance(obj, Node)
        match event.type:
            case EventType.ADDED:
                assert obj.name not in self.nodes
                assert event.old is None
                self.nodes[obj.name] = obj
            case EventType.MODIFIED:
                assert self.nodes[obj.name] == event.old
                self.nodes[obj.name] = obj
            case EventType.DELETED:
                assert self.nodes.pop(obj.name) == obj
        self.events += (
            1  # only here: what fails above is logged by the cluster, and then missing from the count
        )


def apply(cluster: InMemoryCluster, operation: tuple[str, str, str]) -> None:
    verb, name, value = operation
    with suppress(ClusterError):  # adding twice, changing what isn't there: a refused write must not be seen
        match verb:
            case "add":
                cluster.add(node(name, value))
            case "update":
                cluster.update(node(name, value))
            case "delete":
                cluster.delete(node(name, value))


operations = st.lists(
    st.tuples(st.sampled_from(["add", "update", "delete"]), st.sampled_from("abc"), st.sampled_from("12"))
)


@given(before=operations, after=operations)
def test_whoever_watches_knows_the_cluster(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]
) -> None:
    cluster = InMemoryCluster()
    early, late = Replica(), Replica()
    cluster.watch(early)
    for operation in before:
        apply(cluster, operation)
    cluster.watch(late)
    assert late.nodes == early.nodes
    for operation in after:
        apply(cluster, operation)
    expected = {n.name: n for n in cluster.list(Node)}
    assert early.nodes == late.nodes == expected
    assert early.events == cluster.resource_version


def test_existing_objects_come_first_and_in_order() -> None:
    cluster = InMemoryCluster([node("b"), node("a"), pod("p")])
    seen: list[str] = []
    cluster.watch(lambda event: seen.append(f"{event.type} {event.object.key}"))
    assert seen == ["ADDED b", "ADDED a", "ADDED default", "ADDED default/p"]


def test_after_unsubscribing_nothing_comes() -> None:
    cluster = InMemoryCluster()
    replica = Replica()
    unsubscribe = cluster.watch(replica)
    cluster.add(node("a"))
    unsubscribe()
    unsubscribe()
    cluster.add(node("b"))
    assert set(replica.nodes) == {"a"}


def test_a_handler_may_unsubscribe_itself() -> None:
    cluster = InMemoryCluster()
    seen: list[str] = []

    def once(event: WatchEvent) -> None:
        seen.append(event.object.name)
        unsubscribe()

    unsubscribe = cluster.watch(once)
    cluster.add(node("a"))
    cluster.add(node("b"))
    assert seen == ["a"]


def test_what_a_handler_writes_comes_after_what_it_handles() -> None:
    cluster = InMemoryCluster()
    first: list[str] = []
    second: list[str] = []

    def binder(event: WatchEvent) -> None:
        first.append(f"{event.type} {event.object.name}")
        if isinstance(event.object, Pod) and not event.object.node_name:
            cluster.bind(event.object, "n1")
            first.append("bound")

    cluster.watch(binder)
    cluster.watch(lambda event: second.append(f"{event.type} {event.object.name}"))
    cluster.add(pod("p"))
    assert first == ["ADDED default", "ADDED p", "bound", "MODIFIED p"]
    assert second == ["ADDED default", "ADDED p", "MODIFIED p"]


def test_a_failing_handler_stops_neither_the_write_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    cluster = InMemoryCluster()
    replica = Replica()

    def broken(event: WatchEvent) -> None:
        raise RuntimeError(event.object.name)

    cluster.watch(broken)
    cluster.watch(replica)
    with caplog.at_level(logging.ERROR, "kschedfw.cluster"):
        cluster.add(node("a"))
    assert set(replica.nodes) == {"a"}
    assert "ADDED a" in caplog.text


def test_an_interrupted_handler_goes_on_with_the_next_event() -> None:
    cluster = InMemoryCluster()
    seen: list[str] = []

    def handler(event: WatchEvent) -> None:
        seen.append(event.object.name)
        if event.object.name == "a":
            raise KeyboardInterrupt

    cluster.watch(handler)
    with pytest.raises(KeyboardInterrupt):
        cluster.add(node("a"))
    cluster.add(node("b"))
    assert seen == ["a", "b"]


def test_a_handler_may_wait_for_a_lock_that_a_writer_holds() -> None:
    # As a scheduler's cache: its lock is taken by handlers, and held by others while they ask the cluster.
    cluster = InMemoryCluster()
    lock = threading.Lock()

    def handler(event: WatchEvent) -> None:
        with lock:
            pass

    cluster.watch(handler)
    with lock:
        writer = threading.Thread(target=cluster.add, args=(node("a"),))
        writer.start()
        while cluster.get(Node, "a") is None:
            pass
    writer.join(timeout=PATIENCE)
    assert not writer.is_alive()


def test_many_writers_and_late_watchers_agree() -> None:
    cluster = InMemoryCluster()
    replicas = [Replica()]
    cluster.watch(replicas[0])
    start = threading.Barrier(5)

    def write(who: int) -> None:
        start.wait()
        for number in range(100):
            mine = cluster.add(node(f"{who}-{number}"))
            cluster.update(attrs.evolve(mine, spec=NodeSpec(provider_id="x")))
            if number % 2:
                cluster.delete(mine)

    def watch() -> None:
        start.wait()
        for _ in range(20):
            replica = Replica()
            cluster.watch(replica)
            replicas.append(replica)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)] + [
        threading.Thread(target=watch)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE)
    expected = {n.name: n for n in cluster.list(Node)}
    assert len(expected) == 200
    assert all(replica.nodes == expected for replica in replicas)
    assert replicas[0].events == cluster.resource_version
