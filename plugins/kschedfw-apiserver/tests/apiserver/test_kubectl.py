"""kubectl takes the server for a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from apiserver.calling import PODS, Client, pod
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import KubernetesCluster, connect

from kschedfw.api.builders import make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.scheduler import Scheduler
from kschedfw.testing.waiting import PATIENCE

KUBECTL = shutil.which("kubectl")

pytestmark = pytest.mark.skipif(
    KUBECTL is None, reason="NOT TESTED with a real client: there is no kubectl (Debian: kubernetes-client)"
)

Kubectl = Callable[..., str]


@pytest.fixture
def kubectl(server: ApiServer, tmp_path: Path) -> Kubectl:
    config = server.kubeconfig(tmp_path / "kubeconfig")

    def run(*arguments: str, given: str = "") -> str:
        environment = {"HOME": str(tmp_path), "PATH": os.environ.get("PATH", os.defpath)}
        done = subprocess.run(
            [str(KUBECTL), "--kubeconfig", str(config), *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: main, image: "app:1"}]}
"""


def rows(text: str) -> list[list[str]]:
    """The words of a table, without its head."""
    return [line.split() for line in text.splitlines()[1:]]


def test_get_pods_wide(server: ApiServer, call: Client, kubectl: Kubectl) -> None:
    for name in ("bound", "pending"):
        call("POST", PODS, pod(name))
    bound = server.cluster.get(Pod, "default/bound")
    assert bound is not None
    server.cluster.bind(bound, "n1")
    said = kubectl("get", "pods", "-o", "wide")
    assert said.split()[:6] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"]
    assert [(row[0], row[1], row[2], row[6]) for row in rows(said)] == [
        ("bound", "0/1", "Pending", "n1"),
        ("pending", "0/1", "Pending", "<none>"),
    ]


def test_get_nodes(server: ApiServer, call: Client, kubectl: Kubectl) -> None:
    server.cluster.add(make_node("n1").labels({"node-role.kubernetes.io/worker": ""}).build())
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    call("PATCH", "/api/v1/nodes/n1/status", ready, patch="strategic-merge-patch")
    kubectl("cordon", "n1")
    (row,) = rows(kubectl("get", "nodes"))
    assert row[:3] == ["n1", "Ready,SchedulingDisabled", "worker"]


@pytest.mark.parametrize(
    ("path", "event"),
    [
        (
            "/apis/events.k8s.io/v1/namespaces/default/events",
            {
                "note": "0/3 nodes are available",
                "regarding": "",
                "reportingController": "default-scheduler",
                "reportingInstance": "default-scheduler-1",
            },
        ),
        (
            "/api/v1/namespaces/default/events",
            {
                "message": "0/3 nodes are available",
                "involvedObject": "",
                "source": {"component": "default-scheduler"},
            },
        ),
    ],
    ids=["events.k8s.io", "core"],
)
def test_describe_shows_events(call: Client, kubectl: Kubectl, path: str, event: dict[str, object]) -> None:
    _, made = call("POST", PODS, pod())
    about = {"kind": "Pod", "namespace": "default", "name": "web", "uid": made["metadata"]["uid"]}
    event = {key: about if value == "" else value for key, value in event.items()}
    common = {
        "type": "Warning",
        "reason": "FailedScheduling",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Scheduling",
    }
    call("POST", path, {"metadata": {"name": "web.1"}, **common, **event})
    said = kubectl("describe", "pod", "web")
    assert "FailedScheduling" in said
    assert "default-scheduler  0/3 nodes are available" in said


def test_describe_shows_what_a_scheduler_says(server: ApiServer, kubectl: Kubectl, tmp_path: Path) -> None:
    server.cluster.add(make_node("n1").capacity(cpu=4, memory="8Gi", pods=10).build())
    server.cluster.add(make_pod("web").build())
    server.cluster.add(make_pod("large").requests(cpu="9").build())
    with connect(tmp_path / "kubeconfig", qps=-1) as client, KubernetesCluster(client) as cluster:
        assert cluster.wait_for_sync(PATIENCE)
        scheduler = Scheduler(cluster)
        scheduler.run_until_idle()
        scheduler.close()
    said = kubectl("describe", "pod", "web")
    assert "Successfully assigned default/web to n1" in said
    assert "Scheduled" in said
    assert "0/1 nodes are available: 1 Insufficient cpu." in kubectl("describe", "pod", "large")


def test_create_apply_and_delete(call: Client, kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", "--save-config", given=MANIFEST) == "pod/web created\n"
    changed = MANIFEST.replace("app: web", "tier: front")
    assert kubectl("apply", "-f", "-", given=changed) == "pod/web configured\n"
    assert call("GET", f"{PODS}/web")[1]["metadata"]["labels"] == {"tier": "front"}
    assert kubectl("apply", "-f", "-", given=changed) == "pod/web unchanged\n"
    assert kubectl("delete", "pod", "web") == 'pod "web" deleted\n'
    assert call("GET", f"{PODS}/web")[0] == 404


def test_drain(server: ApiServer, call: Client, kubectl: Kubectl) -> None:
    server.cluster.add(make_node("n1").build())
    call("POST", PODS, pod(nodeName="n1"))
    assert "evicting pod default/web" in kubectl("drain", "n1", "--force", "--dry-run=server")
    assert call("GET", f"{PODS}/web")[0] == 200
    kubectl("drain", "n1", "--force", "--grace-period=0", "--timeout=10s")
    assert call("GET", f"{PODS}/web")[0] == 404
    assert call("GET", "/api/v1/nodes/n1")[1]["spec"]["unschedulable"] is True


def test_other_kinds_have_names_and_ages(kubectl: Kubectl) -> None:
    kubectl(
        *("create", "-f", "-"),
        given="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n",
    )
    assert kubectl("get", "cm", "-o", "jsonpath={.items[*].data.a}") == "b"
    assert rows(kubectl("get", "configmaps"))[0][0] == "settings"


def test_api_resources_are_all_there(kubectl: Kubectl) -> None:
    listed = {row[-1] for row in rows(kubectl("api-resources"))}
    assert {"Pod", "Node", "Lease", "PodDisruptionBudget", "ResourceClaim", "Event"} <= listed
