"""A StatefulSet with claim templates is decided on as its pods and claims are that somebody writes out."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import InMemoryCluster
from kschedfw.api import PersistentVolumeClaim, parse_manifests
from kschedfw.simulator import Simulation
from kschedfw.testing.properties import examples

Manifest = dict[str, Any]

_ZONE: Final = "topology.kubernetes.io/zone"
_ZONES: Final = st.sampled_from(["a", "b"])
_CLASSES: Final[dict[str, Manifest]] = {
    "dynamic": {"provisioner": "example.org/disks", "volumeBindingMode": "WaitForFirstConsumer"},
    "here": {
        "provisioner": "example.org/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": _ZONE, "values": ["b"]}]}],
    },
    "static": {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
}


def _object(kind: str, name: str, version: str = "v1", **content: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}


def _volume(name: str, zone: str, storage_class: str, claim: str = "") -> Manifest:
    term = {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}
    spec: Manifest = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "csi": {"driver": "example.org", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim}
    return _object("PersistentVolume", name, spec=spec)


def _claim_spec(storage_class: str) -> Manifest:
    return {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "5Gi"}},
    }


@st.composite
def clusters(draw: st.DrawFn) -> list[Manifest]:
    """Draw nodes in zones with limits of attached volumes, classes, free volumes and claims that are bound already."""
    found: list[Manifest] = []
    for index in range(draw(st.integers(1, 3))):
        name = f"n{index}"
        amounts = {"cpu": draw(st.sampled_from(["1", "3"])), "memory": "8Gi", "pods": "10"}
        node = _object("Node", name, status={"allocatable": amounts})
        node["metadata"]["labels"] = {_ZONE: draw(_ZONES)}
        drivers = [{"name": "example.org", "nodeID": name, "allocatable": {"count": draw(st.integers(1, 2))}}]
        found += [node, _object("CSINode", name, "storage.k8s.io/v1", spec={"drivers": drivers})]
    for name in draw(st.sets(st.sampled_from(sorted(_CLASSES)))):
        found.append(_object("StorageClass", name, "storage.k8s.io/v1", **_CLASSES[name]))
    for index in range(draw(st.integers(0, 2))):
        found.append(_volume(f"free-{index}", draw(_ZONES), draw(st.sampled_from(sorted(_CLASSES)))))
    for ordinal in draw(st.sets(st.integers(0, 2))):
        # What an earlier pod of this ordinal has left.
        name = f"data-db-{ordinal}"
        claim = _object(
            "PersistentVolumeClaim", name, spec={**_claim_spec("static"), "volumeName": f"of-{ordinal}"}
        )
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        found += [_volume(f"of-{ordinal}", draw(_ZONES), "static", name), claim]
    return found


def _pod_spec(*volumes: Manifest) -> Manifest:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    return {"containers": [container], **({"volumes": list(volumes)} if volumes else {})}


def as_stateful_set(replicas: int, storage_class: str) -> list[Manifest]:
    labels = {"app": "db"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod_spec()},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _claim_spec(storage_class)}],
    }
    return [_object("StatefulSet", "db", "apps/v1", spec=spec)]


def written_out(replicas: int, storage_class: str, there: set[str]) -> list[Manifest]:
    """Return the pods and claims beside their StatefulSet, whose selector PodTopologySpread reads."""
    found = as_stateful_set(replicas, storage_class)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    found[0]["metadata"]["uid"] = "u"
    for ordinal in range(replicas):
        name = f"data-db-{ordinal}"
        if name not in there:
            found.append(_object("PersistentVolumeClaim", name, spec=_claim_spec(storage_class)))
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        pod = _object("Pod", f"db-{ordinal}", spec=_pod_spec(volume))
        pod["metadata"] |= {"labels": {"app": "db"}, "ownerReferences": [reference]}
        found.append(pod)
    return found


def decisions(manifests: list[Manifest]) -> dict[str, tuple[str, str]]:
    """Return the node of each pod, and the message of those without one."""
    loaded = parse_manifests("\n---\n".join(map(json.dumps, manifests)))
    assert not loaded.problems
    cluster = InMemoryCluster(loaded.objects())
    report = Simulation(cluster).run()
    return {each.pod: (each.node or "", each.message) for each in report.decisions}


@pytest.mark.slow
@settings(max_examples=examples(150, usual=20))
@given(clusters(), st.integers(1, 3), st.sampled_from([*sorted(_CLASSES), "missing"]))
def test_the_pods_of_a_stateful_set_are_decided_on_as_if_written_out(
    cluster: list[Manifest], replicas: int, storage_class: str
) -> None:
    there = {each["metadata"]["name"] for each in cluster if each["kind"] == PersistentVolumeClaim.__name__}
    explicit = decisions([*cluster, *written_out(replicas, storage_class, there)])
    assert decisions([*cluster, *as_stateful_set(replicas, storage_class)]) == explicit


@pytest.mark.parametrize(("zone", "node_name"), [("a", ""), ("b", "n1")])
def test_a_pod_follows_the_claim_that_is_there(zone: str, node_name: str) -> None:
    """The node in zone a is full."""
    nodes = [
        _object("Node", "n0", status={"allocatable": {"cpu": "500m", "pods": "10"}}),
        _object("Node", "n1", status={"allocatable": {"cpu": "4", "pods": "10"}}),
    ]
    for node, place in zip(nodes, "ab", strict=True):
        node["metadata"]["labels"] = {_ZONE: place}
    claim = _object("PersistentVolumeClaim", "data-db-0", spec={**_claim_spec("static"), "volumeName": "v"})
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    bound = [_volume("v", zone, "static", "data-db-0"), claim]
    assert decisions([*nodes, *bound, *as_stateful_set(1, "static")])["default/db-0"][0] == node_name
