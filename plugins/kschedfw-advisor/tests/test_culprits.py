"""Behind a refusal, the answer names who or what: a holder, a domain, a volume."""

from __future__ import annotations

from typing import Any

import pytest
from kschedfw_advisor.pending import explain_pending
from small_clusters import node, owned, what_if

from kschedfw import Pod, make_pod
from kschedfw.api import object_from_manifest
from kschedfw.api.meta import Named


def told(*objects: Named) -> dict[str, str]:
    """What is told of the only kind of pods without a place, by code."""
    with what_if(*objects) as cluster:
        (why,) = explain_pending(cluster).whys
    (kind,) = why.kinds
    return {each.code: str(each) for each in (*kind.notes, *kind.culprits)}


def with_port(name: str, on: str = "") -> Pod:
    builder = make_pod(name).host_port(443)
    return (builder.node(on) if on else builder).build()


def test_who_holds_the_host_port_is_named_by_workload_with_the_number_of_nodes() -> None:
    holders = [owned(with_port(f"edge-{name}", name), "edge", "DaemonSet") for name in ("n1", "n2")]
    found = told(node("n1").build(), node("n2").build(), *holders, with_port("waf"))
    assert found["port-held"] == "hostPort 443/TCP is held by DaemonSet default/edge on 2 nodes"


def test_whose_pods_keep_a_pod_off_is_named() -> None:
    nodes = [node(name).build() for name in ("n1", "n2")]
    there = [owned(make_pod(f"db-{name}").labels(app="db").node(name), "db") for name in ("n1", "n2")]
    pod = make_pod("web").pod_anti_affinity("kubernetes.io/hostname", {"app": "db"}).build()
    assert told(*nodes, *there, pod)["kept-off-by"] == "kept off by ReplicaSet default/db on 2 nodes"


def test_the_domain_that_a_spread_leaves_is_named_with_its_nodes_and_why_they_take_no_pod() -> None:
    nodes = [node(name).labels(zone=name).build() for name in "ab"]
    old = node("old").labels(zone="c").unschedulable().build()
    there = [make_pod(f"q-{name}").labels(app="q").node(name).build() for name in "ab"]
    pod = make_pod("q").labels(app="q").spread("zone", {"app": "q"}).build()
    assert told(*nodes, old, *there, pod)["emptiest-domain"] == "c would take it, but has only old: cordoned"


def test_the_static_pod_that_overcommits_a_node_is_named() -> None:
    static = owned(make_pod("static").requests(cpu=5).node("n1"), "n1", "Node")
    found = told(node("n1").build(), static, make_pod("web").requests(cpu=1).build())
    assert found["overcommitted"] == (
        "more cpu is requested on node n1 than it has; the largest share is static pod default/static's: 5"
    )


def test_the_static_pod_that_fills_a_node_is_named() -> None:
    static = owned(make_pod("static").requests(cpu=4).node("n1"), "n1", "Node")
    found = told(node("n1").build(), static, make_pod("web").requests(cpu=1).build())
    assert found["static-pods"] == (
        "4 of node n1's cpu are requested by default/static: a static pod, which no scheduler moves"
    )


def volume(**changes: Any) -> Named:
    status = changes.pop("status", {"phase": "Available"})
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "labels": {"tier": "slow"}},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": on_node("n1"),
            **changes,
        },
        "status": status,
    }
    return object_from_manifest(manifest)


def on_node(name: str) -> dict[str, Any]:
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}


def storage_class(**fields: Any) -> Named:
    return object_from_manifest(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
            **fields,
        }
    )


def claim(**spec: Any) -> Named:
    return object_from_manifest(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "storageClassName": "local",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}},
                **spec,
            },
        }
    )


POD = make_pod("db").claim("data").build()


@pytest.mark.parametrize(
    ("offered", "wanted", "lack"),
    [
        ({"capacity": {"storage": "3910Mi"}}, {}, "it has 3910Mi, 10Gi are asked for"),
        ({"volumeMode": "Block"}, {}, "its volumeMode is Block, not Filesystem"),
        ({"storageClassName": "ssd"}, {}, "its class is ssd, not local"),
        ({}, {"accessModes": ["ReadWriteMany"]}, "it isn't ReadWriteMany, only ReadWriteOnce"),
        ({}, {"selector": {"matchLabels": {"tier": "fast"}}}, "its labels don't match the claim's selector"),
        ({"nodeAffinity": on_node("gone")}, {}, "no node has kubernetes.io/hostname=gone, which it requires"),
        (
            {"claimRef": {"namespace": "other", "name": "nb"}, "status": {"phase": "Bound"}},
            {},
            "it is bound to other/nb",
        ),
        (
            {"claimRef": {"namespace": "other", "name": "nb", "uid": "u"}, "status": {"phase": "Released"}},
            {},
            "it is Released, still bound to other/nb: its claimRef has to be removed",
        ),
    ],
)
def test_the_volume_that_comes_closest_to_a_claim_is_named_with_what_it_lacks(
    offered: dict[str, Any], wanted: dict[str, Any], lack: str
) -> None:
    found = told(node("n1").build(), storage_class(), volume(**offered), claim(**wanted), POD)
    assert found["closest-volume"] == f"closest to claim default/data is volume pv: {lack}"


def test_without_any_volume_that_is_said() -> None:
    found = told(node("n1").build(), storage_class(), claim(), POD)
    assert found["no-volume"] == "there is no PersistentVolume that claim default/data could get"


def test_the_zones_of_a_storage_class_are_named() -> None:
    zones = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    made = storage_class(provisioner="csi.example.com", allowedTopologies=zones)
    found = told(node("n1").labels(zone="c").build(), made, claim(), POD)
    assert found["storage-class-zones"] == (
        "StorageClass local makes volumes for claim default/data only in zone=a,b"
    )


def test_the_largest_capacity_of_a_class_is_named_where_the_claim_is_larger() -> None:
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"},
        "spec": {"storageCapacity": True},
    }
    capacity = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "c1", "namespace": "kube-system"},
        "storageClassName": "local",
        "nodeTopology": {},
        "capacity": "5Gi",
    }
    made = storage_class(provisioner="csi.example.com")
    objects = [object_from_manifest(each) for each in (driver, capacity)]
    found = told(node("n1").build(), made, *objects, claim(), POD)
    assert found["largest-capacity"] == (
        "the largest volume that StorageClass local can make is 5Gi (c1), and 10Gi are asked for"
    )
