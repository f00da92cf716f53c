"""`explain` gives the reason that kube-scheduler gave, word for word."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from kschedfw_apiserver.control_plane import ControlPlane, needs_control_plane
from kschedfw_kubernetes.cluster.resources import Resource, resources_of

from kschedfw.api import object_from_manifest
from kschedfw.api.kinds import KINDS
from kschedfw.api.pod import Pod
from kschedfw.cli import app
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import explain_pod
from tests.explain.observed import CASES, Manifest, observed


def test_every_case_was_observed() -> None:
    assert observed().keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_the_reason_is_kube_schedulers(name: str) -> None:
    cluster = InMemoryCluster()
    for manifest in CASES[name].objects:
        cluster.add(object_from_manifest(manifest))
    pod = object_from_manifest(CASES[name].pod)
    assert isinstance(pod, Pod)
    assert explain_pod(cluster, cluster.add(pod)).message == observed()[name]


class Administrator:
    """Makes objects at a real API server, and removes them again."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self._made: list[str] = []

    def make(self, manifest: Manifest) -> None:
        """Make the object with its status, and begin to delete it where the manifest says that it is being deleted."""
        manifest = copy.deepcopy(manifest)
        is_deleted = manifest["metadata"].pop("deletionTimestamp", None) is not None
        resource = _resource(manifest)
        namespace = manifest["metadata"].get("namespace", "")
        self._send("POST", resource.collection(namespace), manifest)
        path = resource.path(namespace, manifest["metadata"]["name"])
        self._made.append(path)
        if (
            resource.kind in ("PersistentVolume", "PersistentVolumeClaim", "ResourceClaim")
            and "status" in manifest
        ):
            self._send("PATCH", f"{path}/status", {"status": manifest["status"]})
        if is_deleted:
            self._send("DELETE", path, None)

    def remove_all(self) -> None:
        for path in reversed(self._made):
            self._send("PATCH", path, {"metadata": {"finalizers": None}}, 404)
            self._send("DELETE", path, {"gracePeriodSeconds": 0}, 404)
        self._made.clear()

    def _send(self, method: str, path: str, content: Manifest | None, accepted: int = 200) -> None:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = self._client.request(method, path, json=content, headers={"content-type": kind})
        assert answer.status_code < 300 or answer.status_code == accepted, f"{method} {path}: {answer.text}"


def _resource(manifest: Manifest) -> Resource:
    if manifest["kind"] == "PriorityClass":  # no plugin reads it: the API server writes its value into pods
        return Resource("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", namespaced=False)
    return resources_of(KINDS[manifest["kind"]].cls)[0]


@pytest.fixture
def administrator(real_server: ControlPlane) -> Iterator[Administrator]:
    with real_server.client() as client:
        made = Administrator(client)
        yield made
        made.remove_all()


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_control_plane) for name in CASES])
def test_the_reason_is_kube_schedulers_when_the_cluster_is_live(
    name: str,
    real_server: ControlPlane,
    administrator: Administrator,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for manifest in (*CASES[name].objects, CASES[name].pod):
        administrator.make(manifest)
    kubeconfig = real_server.kubeconfig(tmp_path / "kubeconfig")
    assert (
        app.run(["explain", "--kubeconfig", str(kubeconfig), "default/waiting", "--attempt", "1", "--json"])
        == 1
    )
    assert json.loads(capsys.readouterr().out)["message"] == observed()[name]
