"""The promises of `Cluster`, kept over HTTP with all that goes wrong there."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable
from random import Random

import attrs
import pytest
from cluster.hasty_clock import HastyClock
from cluster.raw_server import reply, serving
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import Client, KubernetesCluster, NotSyncedError, connect

from kschedfw import CustomKind, CustomResource
from kschedfw.api import node_from_manifest, pod_from_manifest
from kschedfw.api.custom import CustomObject, read_custom_object
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodPhase
from kschedfw.api.workloads import Deployment, Namespace
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.testing.waiting import PATIENCE, eventually

pytestmark = pytest.mark.slow


def pod(name: str, **metadata: object) -> Pod:
    manifest = {"metadata": {"name": name, **metadata}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return pod_from_manifest(manifest)


class Watcher:
    """Checks the promises: one call at a time, and each object's changes in order."""

    def __init__(self) -> None:
        self.present: dict[tuple[type[Named], str], Named] = {}
        self.events: list[WatchEvent] = []
        self.broken: list[str] = []
        self._busy = threading.Lock()

    def __call__(self, event: WatchEvent) -> None:
        if not self._busy.acquire(blocking=False):
            self.broken.append("called twice at a time")
            return
        key = (type(event.object), event.object.key)
        old = self.present.get(key)
        if (event.type is EventType.ADDED) != (old is None):
            self.broken.append(f"{event.type} of {key} after {old}")
        if event.type is EventType.MODIFIED and event.old is not old:
            self.broken.append(f"{key} was not {event.old}")
        self.events.append(event)
        if event.type is EventType.DELETED:
            self.present.pop(key, None)
        else:
            self.present[key] = event.object
        self._busy.release()

    def knows(self, server: ApiServer, *kinds: type[Named]) -> bool:
        known = {key for key in self.present if key[0] in kinds}
        return known == {(kind, obj.key) for kind in kinds for obj in server.cluster.list(kind)} and all(
            self.present[type(obj), obj.key].metadata.resource_version == obj.metadata.resource_version
            for kind in kinds
            for obj in server.cluster.list(kind)
        )


def test_what_was_there_is_told_before_watch_returns(server: ApiServer, cluster: KubernetesCluster) -> None:
    server.cluster.add(pod("a"))
    eventually(lambda: cluster.get(Pod, "default/a"))
    watcher = Watcher()
    cluster.watch(watcher)
    assert (Pod, "default/a") in watcher.present
    assert not watcher.broken


def test_after_it_was_ended_nothing_is_told(server: ApiServer, cluster: KubernetesCluster) -> None:
    watcher = Watcher()
    end = cluster.watch(watcher)
    end()
    count = len(watcher.events)
    server.cluster.add(pod("a"))
    eventually(lambda: cluster.get(Pod, "default/a"))
    assert len(watcher.events) == count


def test_wait_for_sync_waits_until_watchers_have_been_told(server: ApiServer, client: Client) -> None:
    for number in range(20):
        server.cluster.add(pod(f"p{number}"))
    cluster = KubernetesCluster(client)
    told: list[str] = []

    def slow(event: WatchEvent) -> None:
        threading.Event().wait(0.005)
        told.append(event.object.key)

    cluster.watch(slow)
    assert not cluster.synced
    with cluster:
        assert cluster.wait_for_sync(PATIENCE)
        assert cluster.synced
        assert {f"default/p{number}" for number in range(20)} <= set(told)
    assert all(status.synced for status in cluster.sync_status().values())


def test_a_server_that_isnt_there_shows_in_the_status(server: ApiServer, client: Client) -> None:
    server.stop()
    with KubernetesCluster(client, [Pod], first_list_seconds=0.05) as cluster:
        assert not cluster.wait_for_sync(0.1)
        eventually(lambda: "can't connect" in cluster.sync_status()["pods"].last_error)
        with pytest.raises(NotSyncedError, match="pods: not listed yet"):
            cluster.get(Pod, "default/a")


# A server that is stopped leaves sockets to the garbage collector.
RESTARTS = pytest.param(
    "restarts", marks=pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
)


@pytest.mark.parametrize("fault", ["cut", "expired", "half_sent", RESTARTS, "throttled"])
def test_whatever_happens_to_connections_each_change_is_told_once(
    server: ApiServer, connected: Callable[..., Client], fault: str
) -> None:
    random = Random(1)
    match fault:
        case "cut":
            server.faults.watch_events = 3
        case "expired":
            server.faults.watch_events, server.faults.expired_watches = 5, 0.5
        case "half_sent":
            server.faults.half_sent, server.faults.watch_seconds = 0.3, 0.05
        case "throttled":
            server.faults.throttled, server.faults.retry_after, server.faults.watch_events = 0.3, 0, 4
    watcher = Watcher()
    with KubernetesCluster(connected(), [Node, Pod], clock=HastyClock(), random=Random(2)) as cluster:
        cluster.watch(watcher)
        names = [f"p{number}" for number in range(6)]
        for step in range(120):
            name = random.choice(names)
            present = server.cluster.get(Pod, f"default/{name}")
            if present is None:
                server.cluster.add(pod(name))
            elif random.random() < 0.3:
                server.cluster.delete(present)
            else:
                labels = FrozenDict({"step": str(step)})
                server.cluster.update(present.with_metadata(attrs.evolve(present.metadata, labels=labels)))
            if step % 40 == 20:
                if fault == "restarts":
                    server.stop()
                    server.start()
                elif fault == "expired":
                    server.compact()
                    server.cut_connections()
        eventually(lambda: watcher.knows(server, Pod))
        assert watcher.broken == []
        assert {obj.key for obj in cluster.list(Pod)} == {key for kind, key in watcher.present if kind is Pod}


def test_lists_are_counted_anew_only_where_changes_may_have_been_missed(
    server: ApiServer, connected: Callable[..., Client]
) -> None:
    with KubernetesCluster(connected(), [Node, Pod], clock=HastyClock(), random=Random(2)) as cluster:
        assert cluster.wait_for_sync(PATIENCE)
        assert {status.lists for status in cluster.sync_status().values()} == {1}
        server.cut_connections()  # from which a watch goes on where it was
        server.cluster.add(pod("a"))
        eventually(lambda: cluster.get(Pod, "default/a"))
        assert cluster.sync_status()["pods"].lists == 1
        server.compact()
        server.cut_connections()
        eventually(lambda: cluster.sync_status()["pods"].lists == 2)


def test_pods_that_have_ended_are_gone(server: ApiServer, cluster: KubernetesCluster) -> None:
    added = server.cluster.add(pod("a"))
    eventually(lambda: cluster.get(Pod, "default/a"))
    server.cluster.update(added.with_status(attrs.evolve(added.status, phase=PodPhase.SUCCEEDED)))
    eventually(lambda: cluster.get(Pod, "default/a") is None)


def test_an_object_that_cant_be_read_is_counted_and_stops_nothing(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(connection: socket.socket, head: bytes) -> None:
        if b"watch=1" in head:
            change = (
                b'{"type":"MODIFIED","object":{"metadata":{"name":"bad","resourceVersion":"8"},"spec":7}}\n'
            )
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.sendall(b"%x\r\n%s\r\n" % (len(change), change))
        else:
            connection.sendall(reply(json.dumps(LISTED).encode()))

    with (
        serving(answer) as raw,
        connect(master=f"http://127.0.0.1:{raw.port}", qps=-1) as other,
        KubernetesCluster(other, [Node]) as cluster,
        caplog.at_level(logging.ERROR),
    ):
        assert cluster.wait_for_sync(PATIENCE)
        eventually(lambda: cluster.sync_status()["nodes"].unreadable == 2)
        assert [node.name for node in cluster.list(Node)] == ["good", "odd"]
        assert "nodes worse can't be read, and is passed over" in caplog.text


LISTED = {
    "metadata": {"resourceVersion": "7"},
    "items": [
        {"metadata": {"name": "good", "resourceVersion": "1"}},
        {"metadata": {"name": "odd", "resourceVersion": "2", "labels": {"not valid!": "but accepted"}}},
        {"metadata": {"name": "worse", "resourceVersion": "3", "labels": ["no", "map"]}},
    ],
}


def definition(plural: str, kind: str) -> dict[str, object]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


@attrs.frozen
class Size:
    height: int = 0


@attrs.frozen
class Gadget(CustomResource):
    kind = CustomKind("example.com/v1", "Gadget")

    metadata: ObjectMeta
    spec: Size = Size()


def test_custom_kinds_are_followed_from_when_they_are_asked_for(client: Client) -> None:
    client.write(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        definition("gadgets", "Gadget"),
    )
    with KubernetesCluster(client, [Pod]) as cluster:
        added = cluster.add(Gadget(ObjectMeta("a", namespace="default"), Size(3)))
        assert added.uid
        eventually(lambda: cluster.get(Gadget, "default/a") == added)
        changed = cluster.update(attrs.evolve(added, spec=Size(4)))
        eventually(lambda: cluster.list(Gadget, "default") == [changed])
        malformed = read_custom_object(
            {
                "apiVersion": "example.com/v1",
                "kind": "Gadget",
                "metadata": {"name": "b"},
                "spec": {"height": "x"},
            }
        )
        cluster.add(malformed)
        eventually(lambda: len(cluster.list(CustomObject)) == 2)
        assert cluster.list(Gadget) == [changed]


def test_a_kind_that_the_server_doesnt_have_is_empty(client: Client) -> None:
    with KubernetesCluster(client, [CustomKind("none.example.com/v1", "Nothing")]) as cluster:
        assert cluster.wait_for_sync(PATIENCE)
        assert cluster.list(CustomObject) == []
        status = cluster.sync_status()["nothings.none.example.com"]
        assert (status.objects, status.last_error) == (0, "the API server doesn't have this kind")


def test_any_other_kind_is_followed_from_when_it_is_asked_for(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    assert cluster.list(Deployment) == ()
    assert cluster.get(Namespace, "default") is not None
    assert "deployments.apps" in cluster.sync_status()


def test_a_handler_may_write_and_read(server: ApiServer, cluster: KubernetesCluster) -> None:
    done: list[str] = []

    def handle(event: WatchEvent) -> None:
        if event.object.name == "a" and event.type is EventType.ADDED:
            cluster.add(pod("b"))
            done.extend(node.name for node in cluster.list(Node))

    server.cluster.add(node_from_manifest({"metadata": {"name": "n"}}))
    eventually(lambda: cluster.get(Node, "n"))
    cluster.watch(handle)
    cluster.add(pod("a"))
    eventually(lambda: cluster.get(Pod, "default/b"))
    assert done == ["n"]
