"""With the example's rights everything works, each of them is used, and what is deployed fits together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from kschedfw_apiserver import ApiServer, User
from kschedfw_apiserver.control_plane import ControlPlane, control_plane, needs_control_plane
from kschedfw_kubernetes import KubernetesCluster, connect
from serve.replicas import Replica, token_of

from kschedfw import load_configuration
from kschedfw.api.builders import make_claim, make_node, make_pod, make_volume
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.api.resource_claims import ResourceClaim
from kschedfw.cluster.volume_controller import VolumeController
from kschedfw.testing.waiting import PATIENCE
from tests.examples.running import REPOSITORY

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "examples" / "10-second-scheduler"
FILES = ("rbac.yaml", "deployment.yaml", "servicemonitor.yaml", "pod.yaml")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/kube-system/roles",
    "RoleBinding": f"{RBAC}/namespaces/kube-system/rolebindings",
}
SCHEDULER = User.service_account("kube-system", "kschedfw")
PROMETHEUS = User.service_account("monitoring", "prometheus-k8s")
ADMIN = "administrators-token"
ALLOCATE = "resourceclaims/binding"
PEBBLES = ("pebble-0", "pebble-1")
REFUSED = '"msg": "Unable to schedule pod; no fit; waiting", "pod": "default/waiting"'

Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    texts = [(EXAMPLE / file).read_text() for file in FILES]
    return [each for text in texts for each in yaml.load_all(text, yaml.CSafeLoader)]


def one(kind: str) -> Manifest:
    (found,) = [each for each in manifests() if each["kind"] == kind]
    return found


def container() -> Manifest:
    (found,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def calling(server: ApiServer, token: str) -> httpx2.Client:
    return httpx2.Client(base_url=server.url, headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server with the example's roles."""
    with ApiServer() as served:
        served.add_user(ADMIN, User("admin", ("system:masters",)))
        with calling(served, ADMIN) as admin:
            for manifest in manifests():
                if (path := PATHS.get(manifest["kind"])) is not None:
                    assert admin.post(path, json=manifest).status_code == 201
        yield served
        served.faults.failed_after = served.faults.failed_before = 0.0


def configuration(server: ApiServer | ControlPlane, folder: Path, token: str) -> Path:
    """The ConfigMap's, with a kubeconfig, since no test runs in a pod."""
    content = yaml.safe_load(one("ConfigMap")["data"]["scheduler.yaml"])
    kubeconfig = server.kubeconfig(folder / "kubeconfig", token=token)
    file = folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump({**content, "clientConnection": {"kubeconfig": str(kubeconfig)}}))
    return file


def pod(name: str, cpu: str, priority: int = 0) -> Any:
    return make_pod(name).requests(cpu=cpu).priority(priority).scheduler_name("kschedfw")


DEVICES = """
kind: DeviceClass
apiVersion: resource.k8s.io/v1
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu}
---
kind: ResourceSlice
apiVersion: resource.k8s.io/v1
metadata: {name: gpus}
spec:
  driver: gpu.example
  allNodes: true
  pool: {name: pool, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]
---
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: gpu, namespace: default}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu}}]
---
kind: StorageClass
apiVersion: storage.k8s.io/v1
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
kind: StorageClass
apiVersion: storage.k8s.io/v1
metadata: {name: made}
provisioner: disks.example
volumeBindingMode: WaitForFirstConsumer
"""


def populate(server: ApiServer) -> None:
    """A cluster in which the scheduler has to do everything that it can do."""
    cluster = server.cluster
    for name in ("n0", "n1"):
        cluster.add(make_node(name).capacity(cpu="8", memory="16Gi", pods="110").build())
    for manifest in yaml.safe_load_all(DEVICES):
        cluster.add(object_from_manifest(manifest, manifest["kind"]))
    cluster.add(
        make_volume("disk")
        .capacity("1Gi")
        .access_modes("ReadWriteOnce")
        .storage_class("local")
        .node_affinity_in("kubernetes.io/hostname", "n0", "n1")
        .build()
    )
    for storage_class in ("local", "made"):
        claim = make_claim(storage_class).requests("1Gi").access_modes("ReadWriteOnce")
        cluster.add(claim.storage_class(storage_class).build())
    VolumeController(cluster)
    cluster.add(pod("victim", "4").node("n0").build())
    cluster.add(pod("rock", "6", 1000).node("n1").build())
    for name in PEBBLES:
        cluster.add(pod(name, "500m", 1000).node("n1").build())


def granted(*roles: Manifest) -> list[tuple[str, str]]:
    rules = [rule for role in roles for rule in role["rules"]]
    return [(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]]


def one_role(kind: str) -> Manifest:
    """The scheduler's own role, or its binding; there are others for whoever reads metrics."""
    return next(
        each for each in manifests() if each["kind"] == kind and each["metadata"]["name"] == "kschedfw"
    )


def test_the_rights_are_enough_and_none_is_superfluous(server: ApiServer, tmp_path: Path) -> None:
    populate(server)
    # The answers to what mustn't be done twice get lost, so that it is read what became of it.
    twice = re.compile("leases|reviews|events|pods/[^/]+/status")
    server.faults.only = lambda method, path: method != "GET" and not twice.search(path)
    server.faults.failed_after = 1.0
    config = configuration(server, tmp_path, token_of("scheduler"))
    command, *arguments = (each for each in container()["args"] if not each.startswith("--config"))
    assert command == "run"
    with Replica(server, tmp_path, "scheduler", f"--config={config}", *arguments, user=SCHEDULER) as replica:
        replica.wait_until_ready()
        waiting = pod("waiting", "5")
        for each in (
            pod("local", "10m").claim("local"),
            pod("made", "10m").claim("made"),
            waiting,
        ):
            server.cluster.add(each.build())
        server.cluster.add(pod("card", "10m").requests({"example.com/gpu": 1}).build())
        manifest = pod("gpu", "10m").manifest()
        manifest["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
        server.cluster.add(object_from_manifest(manifest, "Pod"))

        def node_of(name: str) -> str:
            found = server.cluster.get(Pod, f"default/{name}")
            return "" if found is None else found.node_name

        replica.wait_for(lambda: all(map(node_of, ("local", "made", "card", "gpu"))))
        # The one that waits is tried again, in vain. The first attempt changes its status, and events about one state
        # are a series: so the third one tells what the second one did. An event that isn't sent yet would count both.
        for refusals, name in enumerate(PEBBLES, 1):
            replica.wait_for(partial(has_refused, replica, refusals))
            replica.wait_for(partial(has_told_refusals, server, refusals))
            pebble = server.cluster.get(Pod, f"default/{name}")
            assert pebble is not None
            server.cluster.delete(pebble)
        replica.wait_for(lambda: ("patch", "events") in used(server))
        server.cluster.add(pod("important", "6", 100).build())
        replica.wait_for(lambda: ("delete", "pods") in used(server))
        # A claim that was made for devices is deleted where its pod can't be bound after all.
        server.faults.failed_after, server.faults.failed_before = 0.0, 1.0
        server.faults.only = lambda _method, path: path.endswith("/pods/unbound/binding")
        server.cluster.add(pod("unbound", "10m").requests({"example.com/gpu": 1}).build())
        replica.wait_for(lambda: ("delete", "resourceclaims") in used(server))
        server.faults.failed_before = 0.0
        server.add_user("prometheus", PROMETHEUS)
        server.add_user("somebody", User("somebody"))
        for endpoint in one("ServiceMonitor")["spec"]["endpoints"]:
            path = endpoint["path"]
            assert [
                replica.get(path, token).status for token in ("prometheus", "somebody", "nobody", "")
            ] == [
                200,
                403,
                401,
                403,
            ]
        assert replica.get("/configz", "prometheus").status == 403
        assert replica.ends() == 0
    claim = server.cluster.get(ResourceClaim, "default/gpu")
    assert claim is not None
    assert claim.status.allocation is not None
    refused = {(each.verb, each.resource) for each in server.audit.events if each.code == 403}
    assert refused == set()
    rights = granted(one_role("ClusterRole"), one_role("Role"))
    assert len(rights) == len(set(rights))
    # The last is asked for by the server when devices are allocated, and is no request of its own: see below.
    assert used(server) | {("patch", ALLOCATE)} == set(rights)


def has_refused(replica: Replica, times: int) -> bool:
    return replica.log.count(REFUSED) >= times


def has_told_refusals(server: ApiServer, times: int) -> bool:
    with calling(server, ADMIN) as admin:
        events = admin.get("/apis/events.k8s.io/v1/namespaces/default/events").json()["items"]
    told = [each for each in events if each["reason"] == "FailedScheduling"]
    counted: int = sum(each.get("series", {"count": 1})["count"] for each in told)
    return counted >= times


def test_schedulers_that_share_a_cluster_use_the_rights_of_the_documentation_and_each_of_them(
    server: ApiServer, tmp_path: Path
) -> None:
    text = (REPOSITORY / "docs" / "run.md").read_text()
    (role,) = [
        yaml.safe_load(block)
        for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        if "kind: Role" in block
    ]
    name = role["metadata"]["name"]
    subjects = one_role("ClusterRoleBinding")["subjects"]
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": subjects,
    }
    with calling(server, ADMIN) as admin:
        # What leaders need is of no use here.
        assert admin.delete(f"{PATHS['RoleBinding']}/kschedfw").status_code == 200
        for path, manifest in ((PATHS["Role"], role), (PATHS["RoleBinding"], binding)):
            assert admin.post(path, json=manifest).status_code == 201
    for number in range(2):
        server.cluster.add(make_node(f"n{number}").capacity(cpu="8", memory="16Gi", pods="110").build())
    # The answers to the first claims get lost, so that they are read.
    server.faults.only = lambda method, path: method != "GET" and "/leases" in path
    server.faults.failed_after = 1.0
    config = configuration(server, tmp_path, token_of("sharer"))
    arguments = (f"--config={config}", "--shared-state")
    with Replica(server, tmp_path, "sharer", *arguments, user=SCHEDULER) as replica:
        replica.wait_until_ready()
        server.cluster.add(pod("first", "10m").build())
        replica.wait_for(lambda: ("get", "leases") in used(server))
        server.faults.failed_after = 0.0
        server.cluster.add(pod("second", "10m").build())
        replica.wait_for(lambda: all(each.node_name for each in server.cluster.list(Pod)))
        assert replica.ends() == 0
    assert {(verb, resource) for verb, resource in used(server) if resource == "leases"} == set(granted(role))
    assert used(server) <= set(granted(one_role("ClusterRole"), role))


@needs_control_plane[0]
@needs_control_plane[1]
def test_a_pod_with_devices_as_an_extended_resource_is_bound_with_these_rights_by_a_real_server(
    tmp_path: Path,
) -> None:
    token = token_of("scheduler")
    with (
        control_plane(tmp_path, users={token: SCHEDULER.name}) as server,
        server.client() as admin,
        connect(server.kubeconfig(tmp_path / "admin"), qps=-1) as client,
        KubernetesCluster(client) as cluster,
    ):
        for manifest in manifests():
            if (path := PATHS.get(manifest["kind"])) is not None:
                assert admin.post(path, json=manifest).status_code == 201
        assert cluster.wait_for_sync(PATIENCE)
        cluster.add(make_node("n0").capacity(cpu="8", memory="16Gi", pods="110").build())
        for manifest in yaml.safe_load_all(DEVICES):
            cluster.add(object_from_manifest(manifest, manifest["kind"]))
        config = configuration(server, tmp_path, token)
        with Replica(server, tmp_path, "scheduler", f"--config={config}", "--v=2") as replica:
            replica.wait_until_ready()
            cluster.add(pod("card", "10m").requests({"example.com/gpu": 1}).build())

            def card() -> Pod:
                found = cluster.get(Pod, "default/card")
                assert found is not None
                return found

            # This client's copy may lag behind: at first it may not know the pod.
            replica.wait_for(
                lambda: (seen := cluster.get(Pod, "default/card")) is not None and seen.node_name
            )
            made = card().status.extended_resource_claim_status
            assert made is not None
            claim = cluster.get(ResourceClaim, f"default/{made.resource_claim_name}")
            assert claim is not None
            assert claim.is_reserved_for(card())
            assert replica.ends() == 0


def test_devices_are_allocated_by_a_right_of_its_own(server: ApiServer) -> None:
    populate(server)
    token = token_of("scheduler")
    server.add_user(token, SCHEDULER)
    role = one_role("ClusterRole")
    for rule in role["rules"]:
        rule["resources"] = [each for each in rule["resources"] if each != ALLOCATE]
    with calling(server, ADMIN) as admin:
        assert admin.put(f"{PATHS['ClusterRole']}/kschedfw", json=role).status_code == 200
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu/status"
    allocation = {"status": {"reservedFor": [{"resource": "pods", "name": "web", "uid": "1"}]}}
    label = {"metadata": {"labels": {"a": "b"}}}
    with calling(server, token) as scheduler:
        headers = {"content-type": "application/merge-patch+json"}
        refused = scheduler.patch(path, json=allocation, headers=headers)
        assert refused.status_code == 422
        assert f'requires resource="{ALLOCATE}", verb="patch" permission' in refused.json()["message"]
        assert scheduler.patch(path, json=label, headers=headers).status_code == 200


def used(server: ApiServer) -> set[tuple[str, str]]:
    events = [each for each in server.audit.events if each.user == SCHEDULER.name]
    return {(each.verb, each.resource) for each in events}


def test_the_lease_is_the_one_that_the_rights_are_for() -> None:
    (rule,) = [each for each in one_role("Role")["rules"] if "resourceNames" in each]
    content = yaml.safe_load(one("ConfigMap")["data"]["scheduler.yaml"])
    assert rule["resourceNames"] == [content["leaderElection"]["resourceName"]]
    assert one_role("Role")["metadata"]["namespace"] == "kube-system"


def test_the_configuration_is_valid_and_its_profile_the_pod_s(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(one("ConfigMap")["data"]["scheduler.yaml"])
    loaded = load_configuration(file)
    assert loaded.warnings == ()
    assert [profile.scheduler_name for profile in loaded.profiles] == [one("Pod")["spec"]["schedulerName"]]


def test_the_parts_name_each_other_rightly() -> None:
    spec = one("Deployment")["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]
    assert [volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume] == [
        "kschedfw"
    ]
    (mount,) = [each for each in container()["volumeMounts"] if each["name"] == "config"]
    (config,) = [each for each in container()["args"] if each.startswith("--config=")]
    assert config == f"--config={mount['mountPath']}/{next(iter(one('ConfigMap')['data']))}"
    labels = one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert one("Service")["spec"]["selector"] == labels
    assert one("ServiceMonitor")["spec"]["selector"]["matchLabels"] == one("Service")["metadata"]["labels"]
    (port,) = one("Service")["spec"]["ports"]
    assert {each["port"] for each in one("ServiceMonitor")["spec"]["endpoints"]} == {port["name"]}
    assert [each["containerPort"] for each in container()["ports"]] == [10259]
    assert one("Deployment")["spec"]["replicas"] == 2
