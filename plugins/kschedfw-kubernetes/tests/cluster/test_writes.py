"""Each write is made once, whatever becomes of its answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random

import attrs
import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import Client, KubernetesCluster, UnavailableError
from kschedfw_kubernetes.cluster.client import STRATEGIC_MERGE_PATCH

from kschedfw.api import node_from_manifest, object_from_manifest, pod_from_manifest
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.api.resource_claims import CLAIM_FINALIZER, ResourceClaim, ResourceClaimStatus
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedfw.api.volume_matching import SELECTED_NODE, annotated, bound_to_claim
from kschedfw.cluster import AlreadyExistsError, ConflictError, NotFoundError
from kschedfw.testing.waiting import PATIENCE, eventually

pytestmark = pytest.mark.slow

CONDITION = PodCondition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")


def pod(name: str = "a") -> Pod:
    return pod_from_manifest(
        {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )


def another(obj: Named) -> Named:
    """Another object of the same name."""
    return obj.with_metadata(attrs.evolve(obj.metadata, uid="another"))


@pytest.fixture
def added(server: ApiServer, cluster: KubernetesCluster) -> Pod:
    for name in ("n1", "n2"):
        server.cluster.add(node_from_manifest({"metadata": {"name": name}}))
    added = cluster.add(pod())
    eventually(lambda: cluster.get(Pod, added.key))
    return added


def in_server(server: ApiServer, obj: Named) -> Named:
    present = server.cluster.get(type(obj), obj.key)
    assert present is not None
    return present


# --- binding ---


def test_a_pod_is_bound_once_and_for_all(server: ApiServer, cluster: KubernetesCluster, added: Pod) -> None:
    cluster.bind(added, "n1")
    assert server.cluster.list(Pod)[0].node_name == "n1"
    with pytest.raises(ConflictError, match="already assigned to node"):
        cluster.bind(added, "n2")
    with pytest.raises(ConflictError):
        cluster.bind(another(added), "n2")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        cluster.bind(pod("none"), "n1")
    assert server.cluster.list(Pod)[0].node_name == "n1"


@pytest.mark.parametrize("fault", ["failed_after", "lost", "half_sent"])
def test_a_binding_whose_answer_got_lost_is_found_out_by_reading(
    server: ApiServer, cluster: KubernetesCluster, added: Pod, fault: str
) -> None:
    setattr(server.faults, fault, 1.0)
    server.faults.only = lambda method, _path: method == "POST"
    cluster.bind(added, "n1")
    assert server.cluster.list(Pod)[0].node_name == "n1"
    posts = [each for each in server.audit.events if each.resource == "pods/binding"]
    assert len(posts) == 1


def test_a_binding_that_wasnt_made_is_made_again(
    server: ApiServer, cluster: KubernetesCluster, added: Pod
) -> None:
    server.faults.failed_before = 0.5
    server.faults.only = lambda method, _path: method == "POST"
    cluster.bind(added, "n1")
    assert server.cluster.list(Pod)[0].node_name == "n1"


def test_a_binding_that_somebody_else_was_faster_with_is_a_conflict(
    server: ApiServer, cluster: KubernetesCluster, added: Pod
) -> None:
    def fail_and_bind(method: str, _path: str) -> bool:
        if method == "POST" and not server.cluster.list(Pod)[0].node_name:
            server.cluster.bind(added, "n2")
        return method == "POST"

    server.faults.failed_before, server.faults.only = 1.0, fail_and_bind
    with pytest.raises(ConflictError, match="already assigned to node 'n2'"):
        cluster.bind(added, "n1")


def test_a_binding_that_comes_twice_is_no_conflict(
    server: ApiServer, cluster: KubernetesCluster, added: Pod
) -> None:
    server.faults.duplicated, server.faults.only = 1.0, lambda method, _path: method == "POST"
    cluster.bind(added, "n1")
    codes = [each.code for each in server.audit.events if each.resource == "pods/binding"]
    assert codes == [201, 409]


def test_a_binding_that_is_refused_without_being_made_is_a_conflict(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "example.com/quota"}]}
    gated = server.cluster.add(pod_from_manifest({"metadata": {"name": "gated"}, "spec": spec}))
    with pytest.raises(ConflictError):
        cluster.bind(gated, "n1")


def test_a_binding_that_never_gets_an_answer_says_so(
    server: ApiServer, cluster: KubernetesCluster, added: Pod
) -> None:
    server.faults.failed_before, server.faults.only = 1.0, lambda method, _path: method == "POST"
    with pytest.raises(Exception, match="HTTP 500"):
        cluster.bind(added, "n1")
    assert server.cluster.list(Pod)[0].node_name == ""


@pytest.fixture
def three(server: ApiServer, cluster: KubernetesCluster) -> list[Pod]:
    """Pods that are to be bound to a node."""
    server.cluster.add(node_from_manifest({"metadata": {"name": "n1"}}))
    return [cluster.add(pod(name)).bound_to("n1") for name in ("a", "b", "c")]


def bindings(server: ApiServer) -> list[int]:
    """The codes of the answers to Bindings."""
    return [each.code for each in server.audit.events if each.resource == "pods/binding"]


def nodes_of_pods(server: ApiServer) -> list[str]:
    return [each.node_name for each in server.cluster.list(Pod)]


def test_announced_bindings_are_sent_with_the_first(
    server: ApiServer, cluster: KubernetesCluster, three: list[Pod]
) -> None:
    with cluster.binding_together(three):
        cluster.bind(three[0], "n1")
        assert nodes_of_pods(server) == ["n1"] * 3
        for each in three[1:]:
            cluster.bind(each, "n1")
    assert bindings(server) == [201] * 3
    # An announcement ends with its block.
    with pytest.raises(ConflictError, match="already assigned"):
        cluster.bind(three[0], "n2")


def test_announced_binding_of_a_pod_that_is_gone_fails_alone(
    server: ApiServer, cluster: KubernetesCluster, three: list[Pod]
) -> None:
    server.cluster.delete(three[1])
    with cluster.binding_together(three):
        cluster.bind(three[0], "n1")
        with pytest.raises(NotFoundError):
            cluster.bind(three[1], "n1")
        cluster.bind(three[2], "n1")
    assert nodes_of_pods(server) == ["n1"] * 2
    assert bindings(server) == [201, 404, 201]


@pytest.mark.parametrize("fault", ["failed_after", "lost", "half_sent"])
def test_announced_bindings_whose_answers_got_lost_are_found_out_by_reading(
    server: ApiServer, cluster: KubernetesCluster, three: list[Pod], fault: str
) -> None:
    setattr(server.faults, fault, 1.0)
    server.faults.only = lambda method, _path: method == "POST"
    with cluster.binding_together(three):
        for each in three:
            cluster.bind(each, "n1")
    assert nodes_of_pods(server) == ["n1"] * 3


def test_throttled_announced_binding_is_sent_again_after_the_time_that_the_server_says(
    server: ApiServer, cluster: KubernetesCluster, three: list[Pod]
) -> None:
    asked: list[str] = []

    def second_once(method: str, path: str) -> bool:
        asked.append(path)
        return method == "POST" and "/b/" in path and asked.count(path) == 1

    server.faults.throttled, server.faults.retry_after = 1.0, 1
    server.faults.only = second_once
    began = time.monotonic()
    with cluster.binding_together(three):
        for each in three:
            cluster.bind(each, "n1")
    assert time.monotonic() - began >= 1.0
    assert bindings(server) == [201, 201, 201]


def test_with_every_fault_at_once_no_pod_is_bound_twice(
    server: ApiServer, connected: Callable[..., Client]
) -> None:
    faults = server.faults
    faults.failed_after = faults.lost = faults.failed_before = faults.duplicated = faults.throttled = 0.15
    faults.retry_after = 0
    faults.only = lambda method, _path: method != "GET"
    for name in ("n1", "n2"):
        server.cluster.add(node_from_manifest({"metadata": {"name": name}}))
    pods = [server.cluster.add(pod(f"p{number}")) for number in range(30)]
    bound: dict[str, set[str]] = {each.key: set() for each in pods}
    server.cluster.watch(lambda event: _note(bound, event.object))
    results: dict[tuple[str, str], bool] = {}

    def bind_all(client: Client, node_name: str, order: list[Pod]) -> None:
        with KubernetesCluster(client, [Pod]) as cluster:
            for each in order:
                try:
                    cluster.bind(each, node_name)
                except ConflictError:
                    results[each.key, node_name] = False
                except UnavailableError:
                    pass
                except Exception as error:
                    assert "HTTP 5" in str(error) or "HTTP 429" in str(error)  # noqa: PT017
                else:
                    results[each.key, node_name] = True

    threads = []
    for number, node_name in enumerate(("n1", "n2")):
        order = list(pods)
        Random(number).shuffle(order)
        # Connected here: each connection writes the same kubeconfig.
        threads.append(threading.Thread(target=bind_all, args=(connected(), node_name, order)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for key, nodes in bound.items():
        assert len(nodes) <= 1
        for node_name in ("n1", "n2"):
            # Success is only said where it is true, and a conflict only where it is another's.
            said = results.get((key, node_name))
            assert said is None or said == (node_name in nodes)


def _note(bound: dict[str, set[str]], obj: Named) -> None:
    if isinstance(obj, Pod) and obj.node_name:
        bound[obj.key].add(obj.node_name)


# --- status ---


def test_a_condition_and_a_nomination_are_set_and_taken_back(
    server: ApiServer, client: Client, cluster: KubernetesCluster, added: Pod
) -> None:
    cluster.patch_pod_status(added, condition=CONDITION, nominated_node_name="n1")
    status = server.cluster.list(Pod)[0].status
    assert (status.nominated_node_name, status.conditions) == ("n1", (CONDITION,))
    written = client.get("/api/v1/namespaces/default/pods/a")["status"]["conditions"][0]
    assert written["lastTransitionTime"].endswith("Z")
    eventually(lambda: cluster.get(Pod, added.key).status.conditions == (CONDITION,))  # type: ignore[union-attr]
    other = attrs.evolve(CONDITION, message="another")
    cluster.patch_pod_status(added, condition=other, nominated_node_name="")
    status = server.cluster.list(Pod)[0].status
    assert (status.nominated_node_name, status.conditions) == ("", (other,))
    again = client.get("/api/v1/namespaces/default/pods/a")["status"]["conditions"][0]
    assert again["lastTransitionTime"] == written["lastTransitionTime"]


@pytest.mark.parametrize("type", ["PodScheduled", "DisruptionTarget"])
def test_a_condition_names_the_generation_that_was_decided_about_after_the_spec_has_changed(
    client: Client, cluster: KubernetesCluster, added: Pod, type: str
) -> None:
    path = "/api/v1/namespaces/default/pods/a"
    changed = {"spec": {"containers": [{"name": "c", "image": "newer"}]}}
    client.write("PATCH", path, changed, content_type=STRATEGIC_MERGE_PATCH)
    cluster.patch_pod_status(added, condition=attrs.evolve(CONDITION, type=type))
    present = client.get(path)
    (written,) = present["status"]["conditions"]
    assert (written["observedGeneration"], present["metadata"]["generation"]) == (1, 2)
    eventually(lambda: cluster.get(Pod, added.key).metadata.generation == 2)  # type: ignore[union-attr]
    (newer,) = cluster.list(Pod)
    cluster.patch_pod_status(newer, condition=attrs.evolve(CONDITION, type=type, message="another"))
    assert client.get(path)["status"]["conditions"][0]["observedGeneration"] == 2


def test_a_status_that_meets_others_writes_is_sent_again(
    server: ApiServer, cluster: KubernetesCluster, added: Pod
) -> None:
    server.faults.conflicting, server.faults.seed = 0.5, 1
    for number in range(10):
        condition = attrs.evolve(CONDITION, message=str(number))
        cluster.patch_pod_status(added, condition=condition)
        assert server.cluster.list(Pod)[0].status.conditions == (condition,)
    server.faults.conflicting = 1
    with pytest.raises(ConflictError):
        cluster.patch_pod_status(added, condition=CONDITION)


def test_the_status_of_another_pod_of_the_name_isnt_touched(cluster: KubernetesCluster, added: Pod) -> None:
    with pytest.raises(ConflictError):
        cluster.patch_pod_status(another(added), nominated_node_name="n1")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        cluster.patch_pod_status(pod("none"), nominated_node_name="n1")


# --- add, update, delete ---


def test_what_is_there_cant_be_added(cluster: KubernetesCluster, added: Pod) -> None:
    with pytest.raises(AlreadyExistsError):
        cluster.add(pod())


def test_an_object_that_was_made_though_the_answer_got_lost_is_ours(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    server.faults.lost, server.faults.only = 1.0, lambda method, _path: method == "POST"
    assert cluster.add(pod()).uid == server.cluster.list(Pod)[0].uid


def test_only_the_object_that_is_meant_is_deleted(
    server: ApiServer, cluster: KubernetesCluster, added: Pod
) -> None:
    with pytest.raises(ConflictError):
        cluster.delete(another(added))
    cluster.delete(added)
    assert not server.cluster.list(Pod)
    with pytest.raises(NotFoundError):
        cluster.delete(added)


@pytest.mark.parametrize("fault", ["failed_after", "lost"])
def test_a_deletion_whose_answer_got_lost_is_done(
    server: ApiServer, cluster: KubernetesCluster, added: Pod, fault: str
) -> None:
    setattr(server.faults, fault, 1.0)
    server.faults.only = lambda method, _path: method == "DELETE"
    cluster.delete(added)
    assert not server.cluster.list(Pod)


@pytest.fixture
def volume(cluster: KubernetesCluster) -> PersistentVolume:
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "sc",
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"unknown": "here"}},
        },
    }
    cluster._client.write("POST", "/api/v1/persistentvolumes", manifest)
    eventually(lambda: cluster.get(PersistentVolume, "pv"))
    found = cluster.get(PersistentVolume, "pv")
    assert found is not None
    return found


def claim() -> PersistentVolumeClaim:
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "pvc", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "sc",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    found = object_from_manifest(manifest)
    assert isinstance(found, PersistentVolumeClaim)
    return found


@pytest.mark.parametrize("fault", ["", "failed_after", "lost", "failed_before"])
def test_what_kschedfw_doesnt_know_of_a_volume_stays_when_it_is_bound(
    server: ApiServer, client: Client, cluster: KubernetesCluster, volume: PersistentVolume, fault: str
) -> None:
    added = cluster.add(claim())
    if fault:
        setattr(server.faults, fault, 0.7)
        server.faults.only = lambda method, _path: method == "PATCH"
    bound = cluster.update(bound_to_claim(volume, added))
    assert bound.spec.claim_ref is not None
    assert bound.spec.claim_ref.uid == added.uid
    spec = client.get("/api/v1/persistentvolumes/pv")["spec"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert spec["csi"]["volumeAttributes"] == {"unknown": "here"}
    # What was written can be written on, though the watch may not have told of it yet.
    cluster.update(attrs.evolve(bound, metadata=attrs.evolve(bound.metadata, labels=FrozenDict({"a": "b"}))))


def test_an_update_of_an_older_state_is_a_conflict(cluster: KubernetesCluster) -> None:
    added = cluster.add(claim())
    cluster.update(annotated(added, SELECTED_NODE, "n1"))
    with pytest.raises(ConflictError):
        cluster.update(annotated(added, SELECTED_NODE, "n2"))
    with pytest.raises(ConflictError):
        cluster.update(annotated(another(added), SELECTED_NODE, "n2"))
    cluster.delete(added)
    with pytest.raises(NotFoundError):
        cluster.update(annotated(added, SELECTED_NODE, "n2"))


def test_a_conflict_has_what_the_server_has_by_then(server: ApiServer, cluster: KubernetesCluster) -> None:
    added = cluster.add(claim())
    for change in ("n1", "n2"):
        present = in_server(server, added)
        assert isinstance(present, PersistentVolumeClaim)
        server.cluster.update(annotated(present, SELECTED_NODE, change))
        with pytest.raises(ConflictError) as conflict:
            cluster.update(annotated(added, SELECTED_NODE, "n3"))
        assert conflict.value.present == in_server(server, added)
    with pytest.raises(ConflictError) as conflict:
        cluster.update(annotated(another(added), SELECTED_NODE, "n3"))
    assert conflict.value.present is None


@pytest.fixture
def allocated(cluster: KubernetesCluster) -> tuple[ResourceClaim, ResourceClaimStatus]:
    """A claim, and a status that gives it a device."""
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
    }
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}],
    }
    claim, with_status = object_from_manifest(manifest), object_from_manifest({**manifest, "status": status})
    assert isinstance(claim, ResourceClaim)
    assert isinstance(with_status, ResourceClaim)
    return cluster.add(claim), with_status.status


def test_a_claims_status_and_finalizer_are_written_and_taken_back(
    server: ApiServer, cluster: KubernetesCluster, allocated: tuple[ResourceClaim, ResourceClaimStatus]
) -> None:
    claim, status = allocated
    guarded = attrs.evolve(claim.metadata, finalizers=(CLAIM_FINALIZER,))
    first = cluster.update(attrs.evolve(claim, metadata=guarded, status=status))
    assert (first.metadata.finalizers, first.status) == ((CLAIM_FINALIZER,), status)
    assert in_server(server, first) == first
    free = attrs.evolve(first.metadata, finalizers=())
    last = cluster.update(attrs.evolve(first, metadata=free, status=ResourceClaimStatus()))
    assert (last.metadata.finalizers, last.status) == ((), ResourceClaimStatus())
    assert cluster.update(last) == last


def test_an_object_is_made_with_its_status(
    cluster: KubernetesCluster, allocated: tuple[ResourceClaim, ResourceClaimStatus]
) -> None:
    claim, status = allocated
    metadata = attrs.evolve(claim.metadata, name="other", uid="")
    made = cluster.add(attrs.evolve(claim, metadata=metadata, status=status))
    assert made.status == status
