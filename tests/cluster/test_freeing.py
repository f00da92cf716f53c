"""Pods that are taken off their nodes are as if they had just been created."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.api.meta import OwnerReference
from kschedfw.api.pod import Pod, PodPhase
from kschedfw.cluster import InMemoryCluster, free_pods
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters

ZONE = "topology.kubernetes.io/zone"


def owned_by(kind: str, pod: Pod) -> Pod:
    owner = OwnerReference(kind=kind, name="x", uid="u", api_version="apps/v1", controller=True)
    return attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, owner_references=(owner,)))


def freed(*pods: Pod) -> tuple[dict[str, str], tuple[str, ...]]:
    found = free_pods(InMemoryCluster(pods), lambda _: True)
    return dict(found.nodes), found.kept


def test_all_but_daemon_pods_and_mirror_pods() -> None:
    web = make_pod("web").node("n1").build()
    daemon = owned_by("DaemonSet", make_pod("daemon").node("n1").build())
    static = owned_by("Node", make_pod("static").node("n1").build())
    mirror = make_pod("mirror").annotations({"kubernetes.io/config.mirror": "x"}).node("n2").build()
    assert freed(web, daemon, static, mirror) == (
        {"default/web": "n1"},
        ("default/daemon", "default/static", "default/mirror"),
    )


def test_not_those_that_have_ended_or_are_being_deleted_or_are_pending() -> None:
    base = {"containers": [{"name": "main", "image": "app"}], "nodeName": "n1"}

    def pod(name: str, **more: object) -> Pod:
        metadata = {"name": name, **({"deletionTimestamp": more.pop("deleted")} if "deleted" in more else {})}
        return pod_from_manifest(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": base, **more}
        )

    ended = pod("ended", status={"phase": "Succeeded"})
    going = pod("going", deleted="2026-01-01T00:00:00Z")
    assert freed(ended, going, make_pod("pending").build()) == ({}, ())


def test_nothing_of_the_former_place_is_left() -> None:
    node = make_node("n1").zone("a").build()
    cluster = InMemoryCluster([node, make_pod("web").labels(app="web").build()])
    (pod,) = cluster.list(Pod)
    cluster.bind(pod, "n1")
    assert cluster.list(Pod)[0].labels == {"app": "web", ZONE: "a"}
    free_pods(cluster, lambda _: True)
    (again,) = cluster.list(Pod)
    assert (again.node_name, again.labels, again.uid) == ("", {"app": "web"}, pod.uid)
    assert (again.status.phase, again.status.conditions) == (PodPhase.PENDING, ())


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(clusters(most_nodes=4, most_bound=6, most_pending=3), st.sets(st.integers(0, 5)))
def test_only_what_is_wanted_and_the_order_of_pods_stays(cluster: DrawnCluster, chosen: set[int]) -> None:
    filled = InMemoryCluster([*cluster.nodes, *cluster.bound, *cluster.pending])
    before = filled.list(Pod)
    names = {pod.key for index, pod in enumerate(cluster.bound) if index in chosen}
    found = free_pods(filled, lambda pod: pod.key in names)
    assert found.nodes.keys() | set(found.kept) <= names
    after = filled.list(Pod)
    assert [pod.key for pod in after] == [pod.key for pod in before]
    for old, new in zip(before, after, strict=True):
        assert new == old if old.key not in found.nodes else not new.node_name
