"""A live cluster, read once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kschedfw_apiserver import ApiServer, User
from kschedfw_kubernetes.cluster import SCHEDULER_KINDS, Client, connect, scheduler_kinds
from kschedfw_kubernetes.cluster.reading import (
    MissingRight,
    MissingRightsError,
    missing_lines,
    read_cluster,
)

from kschedfw import CustomKind, FeatureGates, InMemoryCluster, make_node, make_pod, make_pod_group
from kschedfw.api import (
    DeviceTaintRule,
    ObjectMeta,
    PodGroup,
    ReplicaSet,
    ResourceSlice,
    WarningEvent,
    parse_manifests,
)
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: "4", pods: "10"}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rs}
spec:
  replicas: 3
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec: {containers: [{name: c, image: i}]}
status: {phase: Succeeded}
"""


@pytest.fixture
def filled(server: ApiServer) -> ApiServer:
    manifests = parse_manifests(CLUSTER)
    for obj in manifests.objects():
        if isinstance(obj, Pod) and obj.name not in ("waiting", "done"):
            continue  # the loader makes the pods of workloads; in a cluster their controller would have
        server.cluster.add(obj)
    return server


def names(objects: tuple[Named, ...]) -> list[str]:
    return [obj.name for obj in objects]


def test_all_that_decisions_depend_on_is_read_and_nothing_is_made_of_it(
    filled: ApiServer, client: Client
) -> None:
    told: list[tuple[int, int]] = []
    found = read_cluster(client=client, progress=lambda done, total: told.append((done, total)))
    assert names(found.manifests.nodes) == ["n"]
    assert names(found.manifests.of(ReplicaSet)) == ["rs"]
    assert names(found.manifests.pods) == ["waiting"]
    assert found.missing_rights == ()
    assert told[-1][0] == told[-1][1] == sum(1 for _ in found.manifests.objects())
    assert {each.verb for each in filled.audit.events} == {"list"}
    assert InMemoryCluster(found.manifests.objects()).list(Pod)


def event(name: str, reason: str, kind: str = "Warning") -> dict[str, object]:
    return {
        "metadata": {"name": f"{name}.{reason.lower()}", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": name},
        "type": kind,
        "reason": reason,
        "message": f"{reason} of {name}",
    }


def test_events_that_warn_are_read(filled: ApiServer, client: Client) -> None:
    for each in (event("waiting", "FailedMount"), event("waiting", "Scheduled", "Normal")):
        client.write("POST", "/api/v1/namespaces/default/events", each)
    found = read_cluster(client=client)
    assert found.manifests.warning_events == (
        WarningEvent("Pod", "default", "waiting", "FailedMount", "FailedMount of waiting"),
    )
    assert read_cluster(client=client, with_warnings=False).manifests.warning_events == ()


def test_groups_are_read_where_pods_are_members_of_some(tmp_path: Path) -> None:
    group = make_pod_group("train").gang(min_count=2).build()
    kinds = [CustomKind("scheduling.k8s.io/v1alpha2", "PodGroup")]
    with ApiServer(InMemoryCluster([make_node("n").build(), group]), custom=kinds) as server:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        assert read_cluster(kubeconfig).manifests.of(PodGroup) == ()
        server.cluster.add(make_pod("train-0").group("train").build())
        (found,) = read_cluster(kubeconfig).manifests.of(PodGroup)
    assert (found.key, found.min_count) == ("default/train", 2)


def test_server_that_has_no_kind_of_groups_gives_none(filled: ApiServer, client: Client) -> None:
    filled.cluster.add(make_pod("train-0").group("train").build())
    found = read_cluster(client=client)
    assert (found.manifests.of(PodGroup), found.missing_rights) == ((), ())


def test_rules_that_taint_devices_are_read_where_there_are_devices(tmp_path: Path) -> None:
    rule = DeviceTaintRule(ObjectMeta(name="broken"))
    with ApiServer(InMemoryCluster([make_node("n").build(), rule])) as server:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        assert read_cluster(kubeconfig).manifests.of(DeviceTaintRule) == ()
        server.cluster.add(ResourceSlice(ObjectMeta(name="s")))
        assert names(read_cluster(kubeconfig).manifests.of(DeviceTaintRule)) == ["broken"]


@pytest.mark.parametrize(
    ("gates", "more"),
    [
        (FeatureGates(), ()),
        (FeatureGates.of("GenericWorkload"), (PodGroup,)),
        (FeatureGates(version="1.37"), (DeviceTaintRule,)),
    ],
    ids=["v1.36", "with groups", "v1.37"],
)
def test_a_scheduler_follows_kinds_by_its_gates(gates: FeatureGates, more: tuple[type[Named], ...]) -> None:
    assert scheduler_kinds(gates) == (*SCHEDULER_KINDS, *more)


def rules(*resources: str, kind: str = "ClusterRole", namespace: str = "") -> list[dict[str, object]]:
    group = {"nodes": "", "pods": ""}
    rule = [
        {"apiGroups": [group.get(each, "")], "resources": [each], "verbs": ["list"]} for each in resources
    ]
    metadata = {"name": "reader", **({"namespace": namespace} if namespace else {})}
    binding = kind.replace("Role", "RoleBinding")
    api = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": api, "kind": kind, "metadata": metadata, "rules": rule},
        {
            "apiVersion": api,
            "kind": binding,
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "reader"},
            "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    ]


def grant(client: Client, manifests: list[dict[str, object]]) -> None:
    for manifest in manifests:
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict)
        namespace = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
        plural = f"{str(manifest['kind']).lower()}s"
        client.write("POST", f"/apis/rbac.authorization.k8s.io/v1/{namespace}{plural}", manifest)


@pytest.fixture
def reader(filled: ApiServer, client: Client, tmp_path: Path) -> Callable[..., Client]:
    """Gives the user `reader` rights, and a client of his."""

    def make(*manifests: list[dict[str, object]]) -> Client:
        for each in manifests:
            grant(client, each)
        filled.add_user("secret", User("reader"))
        return connect(filled.kubeconfig(tmp_path / "reader", token="secret"), qps=-1)

    return make


def test_rights_that_are_missing_are_said_and_the_rest_is_read(reader: Callable[..., Client]) -> None:
    with reader(rules("nodes", "pods")) as client:
        found = read_cluster(client=client)
    assert names(found.manifests.pods) == ["waiting"]
    missing = {right.resource for right in found.missing_rights}
    assert "replicasets.apps" in missing
    assert not {"nodes", "pods"} & missing
    assert "may not list replicasets.apps of the whole cluster" in map(str, found.missing_rights)


def test_what_may_be_read_of_one_namespace_alone_is_read_of_it(reader: Callable[..., Client]) -> None:
    with reader(rules("nodes"), rules("pods", kind="Role", namespace="default")) as client:
        found = read_cluster(client=client)
    assert names(found.manifests.pods) == ["waiting"]
    right = next(right for right in found.missing_rights if right.resource == "pods")
    assert str(right) == "may not list pods of the whole cluster; only namespace default was read"


@pytest.mark.parametrize(("more", "reasons"), [([], []), ([("Role", "default")], ["FailedMount"])])
def test_events_are_read_as_far_as_the_user_may_list_them(
    reader: Callable[..., Client], client: Client, more: list[tuple[str, str]], reasons: list[str]
) -> None:
    client.write("POST", "/api/v1/namespaces/default/events", event("waiting", "FailedMount"))
    rights = [rules("events", kind=kind, namespace=namespace) for kind, namespace in more]
    with reader(rules("nodes", "pods"), *rights) as own:
        found = read_cluster(client=own)
    assert [each.reason for each in found.manifests.warning_events] == reasons
    assert "events" not in {right.resource for right in found.missing_rights}


def test_without_nodes_and_pods_there_is_nothing_to_say(reader: Callable[..., Client]) -> None:
    with reader(rules("pods")) as client, pytest.raises(MissingRightsError) as caught:
        read_cluster(client=client)
    assert "nodes" in str(caught.value)
    assert "pods," not in str(caught.value)


def test_kinds_that_one_binding_would_allow_are_told_in_one_line_with_their_number() -> None:
    rights = [MissingRight("nodes"), MissingRight("pods", "shop"), MissingRight("services", "shop")]
    assert list(missing_lines(rights)) == [
        "may not list nodes of the whole cluster",
        "may not list 2 kinds (pods, services) of the whole cluster; only namespace shop was read",
    ]
