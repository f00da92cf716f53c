"""A claim that can't be served ends with a remedy, and a scheduler that starts after its edits places the pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from blind import as_list, cluster_of
from edits import edited
from kschedfw_advisor.pending import explain_pending
from kschedfw_advisor.remedies import Remedy

from kschedfw import WhatIf
from kschedfw.api import parse_manifests

Manifest = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
NODE: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {ZONE: "a", "kubernetes.io/hostname": "n1"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def storage_class(
    name: str = "local", provisioner: str = "kubernetes.io/no-provisioner", **more: Any
) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def volume(status: str = "Available", **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "labels": {"tier": "slow"}},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]
                }
            },
            **spec,
        },
        "status": {"phase": status},
    }


def claim(name: str = "data", **spec: Any) -> Manifest:
    wanted = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        **spec,
    }
    metadata = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    given = {key: each for key, each in wanted.items() if each is not None}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": given}


def pod(name: str = "db", *claims: str) -> Manifest:
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": each}}
        for number, each in enumerate(claims or ("data",))
    ]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner]},
        "spec": {
            "containers": [{"name": "main", "image": "app"}],
            "volumes": volumes,
            "terminationGracePeriodSeconds": 30,
        },
    }


CAPACITY: Final[tuple[Manifest, ...]] = (
    storage_class("csi", "csi.example.com"),
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"},
        "spec": {"storageCapacity": True},
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "c1", "namespace": "kube-system"},
        "storageClassName": "csi",
        "nodeTopology": {},
        "capacity": "6Gi",
    },
)
OTHER: Final = {"namespace": "other", "name": "nb", "uid": "u"}
IN_C: Final = [{"matchLabelExpressions": [{"key": ZONE, "values": ["c"]}]}]
NEW: Final = "make a PersistentVolume of 10Gi, ReadWriteOnce, of StorageClass local, for claim default/data"


@pytest.mark.parametrize(
    ("objects", "first"),
    [
        (
            [storage_class(), volume(capacity={"storage": "9Gi"}), claim()],
            "request 9Gi of storage instead of 10Gi in claim default/data",
        ),
        (
            [storage_class(), volume(storageClassName="ssd"), claim()],
            "storageClassName ssd instead of local in claim default/data",
        ),
        (
            [storage_class(), volume(volumeMode="Block"), claim()],
            "volumeMode Block in claim default/data",
        ),
        (
            [storage_class(), volume(), claim(accessModes=["ReadWriteMany"])],
            "accessModes ReadWriteOnce in claim default/data",
        ),
        (
            [storage_class(), volume(), claim(selector={"matchLabels": {"tier": "fast"}})],
            "no selector in claim default/data",
        ),
        (
            [
                storage_class(),
                volume(status="Released", claimRef=OTHER),
                claim(),
            ],
            "remove the claimRef of volume pv, which is Released and keeps its data",
        ),
        (
            [storage_class(), volume(status="Bound", claimRef=OTHER), claim()],
            NEW,
        ),
        ([storage_class(), claim()], NEW),
        (
            [storage_class("fast", "csi.example.com"), claim(storageClassName="fst")],
            "correct fst to fast, a StorageClass, in claim default/data",
        ),
        (
            [storage_class("fast", "csi.example.com"), claim(storageClassName="tape")],
            "storageClassName fast instead of tape in claim default/data",
        ),
        (
            [
                storage_class("fast", "csi.example.com", volumeBindingMode="Immediate"),
                claim(storageClassName=None),
            ],
            "make StorageClass fast the default, which claims without a class get",
        ),
        (
            [*CAPACITY, claim(storageClassName="csi")],
            "request 6Gi of storage instead of 10Gi in claim default/data",
        ),
        (
            [storage_class("csi", "csi.example.com", allowedTopologies=IN_C), claim(storageClassName="csi")],
            f"allow {ZONE}=a in the allowedTopologies of StorageClass csi",
        ),
    ],
)
def test_the_first_remedy_is_the_smallest_change_that_gets_the_claim_a_volume(
    objects: list[Manifest], first: str
) -> None:
    export = [NODE, *objects, pod()]
    (remedy, *_) = remedies(export)
    assert str(remedy) == first
    assert placed_after(export, remedy, "default/db") == 1


def test_the_claims_of_all_pods_of_a_stateful_set_are_changed() -> None:
    claims = [claim(f"data-db-{number}", storageClassName="fst") for number in range(3)]
    pods = [pod(f"db-{number}", f"data-db-{number}") for number in range(3)]
    export = [NODE, storage_class("fast", "csi.example.com"), *claims, *pods]
    (remedy, *_) = remedies(export)
    assert str(remedy) == "correct fst to fast, a StorageClass, in 3 claims such as default/data-db-0"
    assert (
        remedy.placed == placed_after(export, remedy, *(f"default/db-{number}" for number in range(3))) == 3
    )


def test_two_claims_of_one_pod_are_changed_together() -> None:
    claims = [claim("data", storageClassName="fst"), claim("logs", storageClassName="slw")]
    classes = [storage_class("fast", "csi.example.com"), storage_class("slow", "csi.example.com")]
    (remedy, *_) = remedies([NODE, *classes, *claims, pod("db", "data", "logs")])
    assert str(remedy) == (
        "correct fst to fast, a StorageClass, in claim default/data, and "
        "correct slw to slow, a StorageClass, in claim default/logs"
    )


def test_a_claim_whose_provisioner_has_not_made_a_volume_yet_is_left_to_it() -> None:
    waiting = storage_class("csi", "csi.example.com", volumeBindingMode="Immediate")
    assert not remedies([NODE, waiting, claim(storageClassName="csi"), pod()])


def remedies(objects: list[Manifest]) -> tuple[Remedy, ...]:
    """Return what helps the only kind of pods without a place."""
    with WhatIf(parse_manifests(as_list(objects))) as cluster:
        (why,) = explain_pending(cluster).whys
    (kind,) = why.kinds
    return kind.remedies


def placed_after(objects: list[Manifest], remedy: Remedy, *pods: str) -> int:
    """Return how many of the pods a scheduler places that starts after the edits."""
    edits: list[Mapping[str, Any]] = [each.to_json() for each in remedy.edits]
    cluster = cluster_of(edited(objects, edits, list(pods)))
    with cluster.transaction() as trial:
        return len(trial.schedule(cluster.pending).placed)
