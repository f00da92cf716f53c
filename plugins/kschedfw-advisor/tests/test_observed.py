"""What the cluster itself says of its pending pods stands beside what is found here."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kschedfw_advisor.observed import recorded_message
from kschedfw_advisor.pending import Pending, explain_pending
from kschedfw_advisor.reports import Reports

from kschedfw import WhatIf
from kschedfw.api import parse_manifests

STORED = {"creationTimestamp": "2026-01-01T00:00:00Z"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
FAST: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "ebs.csi.aws.com",
}
MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."


def claim(storage_class: str = "fast") -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", **STORED},
        "spec": spec,
    }


def pod(
    name: str = "p", *, nominated: str = "", metadata: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": MESSAGE}
    bound = "nodeName" in spec
    status = {"nominatedNodeName": nominated, **({} if bound else {"conditions": [condition]})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, **STORED, **(metadata or {})},
        "spec": {"containers": [{"name": "c"}], **spec},
        "status": status,
    }


def pending(*manifests: dict[str, Any]) -> Pending:
    loaded = parse_manifests("\n".join(map(json.dumps, manifests)))
    assert not loaded.problems, loaded.problems
    reports = Reports(loaded.admission.refused, loaded.without_pods, loaded.workloads, loaded.warning_events)
    with WhatIf(list(loaded.objects())) as what_if:
        return explain_pending(what_if, reports=reports)


CLAIMED: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


def test_a_pod_with_an_unbound_immediate_claim_is_stuck_on_its_claim() -> None:
    (why,) = pending(NODE, FAST, claim(), pod(**CLAIMED)).whys
    (kind,) = why.kinds
    assert why.reasons == ("pod has unbound immediate PersistentVolumeClaims",)
    (note,) = kind.notes
    assert str(note) == (
        "claim default/data is pending: provisioner ebs.csi.aws.com of StorageClass fast has to make it a volume; "
        "kubectl -n default describe pvc data says what it did"
    )
    assert kind.remedies == ()


@pytest.mark.parametrize(
    ("manifests", "note"),
    [
        ([], "claim default/data doesn't exist"),
        ([claim("gone")], "there is no StorageClass gone to make it a volume"),
        ([claim("")], "it has no StorageClass, so it waits for a PersistentVolume that fits"),
    ],
)
def test_whoever_would_have_to_make_the_volume_is_named(manifests: list[dict[str, Any]], note: str) -> None:
    (why,) = pending(NODE, *manifests, pod(**CLAIMED)).whys
    (told,) = why.kinds[0].notes
    assert str(told).endswith(note)  # and not what somebody did who isn't there


def test_a_claim_that_waits_for_its_consumer_is_no_obstacle() -> None:
    found = pending(NODE, {**FAST, "volumeBindingMode": "WaitForFirstConsumer"}, claim(), pod(**CLAIMED))
    assert [each.pod.name for each in found.settled.placed] == ["p"]


def test_a_pod_that_the_cluster_calls_unschedulable_and_that_has_a_place_is_named() -> None:
    (found,) = pending(NODE, pod()).disagreements
    assert (found.pod.name, found.node_name, found.recorded) == ("p", "n1", MESSAGE)
    assert found.likely == "the cluster has changed since, or the pod's next attempt is still to come"


def test_preemption_under_way_is_told_with_its_victims_and_their_end() -> None:
    ending = pod("victim", metadata={"deletionTimestamp": "2026-01-01T10:00:30Z"}, nodeName="n1")
    (found,) = pending(NODE, ending, pod(nominated="n1")).disagreements
    assert (
        found.likely == "it is nominated to n1, and waits for pods that end there by 10:00:30: default/victim"
    )


def test_a_pod_whose_victims_still_take_its_room_needs_no_advice() -> None:
    """A victim takes room until it has ended, and another pod, which isn't one, must not be deleted for it."""
    whole = [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]
    ending = pod(
        "victim",
        metadata={"deletionTimestamp": "2026-01-01T10:00:30Z"},
        nodeName="n1",
        containers=whole,
    )
    there = pod("other", nodeName="n1", containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    (why,) = pending(NODE, ending, there, pod(nominated="n1", containers=whole, priority=9)).whys
    (kind,) = why.kinds
    assert (why.reasons, kind.fits, kind.remedies) == (("preemption is under way",), True, ())
    assert tuple(map(str, kind.notes)) == (
        "it is nominated to n1, and waits for pods that end there by 10:00:30: default/victim",
    )


def test_a_nominated_pod_that_does_not_fit_without_the_pods_that_end_gets_advice() -> None:
    ending = pod("victim", metadata={"deletionTimestamp": "2026-01-01T10:00:30Z"}, nodeName="n1")
    large = [{"name": "c", "resources": {"requests": {"cpu": "64"}}}]
    (why,) = pending(NODE, ending, pod(nominated="n1", containers=large)).whys
    assert why.reasons == ("Insufficient cpu",)
    assert [kind.fits for kind in why.kinds] == [False]


def test_a_pod_that_was_never_tried_has_no_recorded_message() -> None:
    (untried,) = parse_manifests(json.dumps({**pod(), "status": {}})).pods
    assert recorded_message(untried) == ""


def test_pods_of_a_workload_are_one_kind_which_names_the_workload() -> None:
    owner: dict[str, Any] = {
        "ownerReferences": [{"kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}]
    }
    container = [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]
    pods = [pod(f"db-{n}", metadata=owner, containers=container) for n in range(3)]
    ((kind,),) = [why.kinds for why in pending(NODE, *pods).whys]
    assert [each.name for each in kind.pods] == ["db-0", "db-1", "db-2"]
    assert str(kind.workload) == "StatefulSet default/db"


def replica_set(message: str, **more: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "box"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "box"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "box"}}, "template": template},
        "status": {"replicas": 0, "conditions": [failure]},
        **more,
    }


@pytest.mark.parametrize("kind", ["ReplicaSet", "Deployment"])
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('pods "box-" is forbidden: pod rejected: RuntimeClass "gvisor" not found', "runtime-class-missing"),
        ('admission webhook "policy.example.com" denied the request: no', "webhook"),
        ('Internal error occurred: failed calling webhook "p.example.com": timeout', "webhook"),
        ('pods "box-x" is forbidden: violates PodSecurity "restricted:latest": …', "pod-security"),
        ('pods "box-x" is forbidden: exceeded quota: q, requested: pods=1', "quota-exceeded"),
        ('pods "box-" is forbidden: error looking up service account a/b: …', "service-account-missing"),
        ("no", "pod-refused"),
    ],
)
def test_pods_that_the_controller_could_not_create_have_no_place_but_its_words(
    kind: str, message: str, code: str
) -> None:
    answer = pending(NODE, replica_set(message, kind=kind))
    (lacking,) = answer.uncreated
    assert answer.settled.placed == ()
    assert (lacking.pods, lacking.reason, lacking.finding.code) == (2, message, code)


def test_a_failure_that_is_over_hinders_nothing() -> None:
    over = replica_set("no")
    over["status"]["conditions"][0]["status"] = "False"
    answer = pending(NODE, over)
    assert (len(answer.settled.placed), answer.uncreated) == (2, ())


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ImagePullBackOff", "container c waits with ImagePullBackOff: no such image"),
        ("ContainerCreating", None),
    ],
)
def test_a_pod_that_has_a_node_and_does_not_start_is_told_with_what_the_kubelet_says(
    reason: str, told: str | None
) -> None:
    waiting = {"waiting": {"reason": reason, "message": "no such image"}}
    status = {"phase": "Pending", "containerStatuses": [{"name": "c", "image": "i", "state": waiting}]}
    manifest = {**pod(nodeName="n1"), "status": status}
    found = pending(NODE, manifest).stuck
    assert [str(each.finding) for each in found] == ([] if told is None else [told])


def test_a_pod_on_a_node_that_does_not_exist_is_told() -> None:
    (found,) = pending(NODE, {**pod(nodeName="n9"), "status": {"phase": "Pending"}}).stuck
    assert (found.finding.code, str(found.finding)) == (
        "node-missing",
        "bound to node n9, which doesn't exist, so nothing starts it",
    )
    running = {**pod(nodeName="n9"), "status": {"phase": "Running"}}
    assert pending(NODE, running).stuck == ()
    assert (
        pending({**pod(nodeName="n9"), "status": {"phase": "Pending"}}).stuck == ()
    )  # an export without nodes


def event(kind: str, name: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1"},
        "involvedObject": {"kind": kind, "namespace": "default", "name": name},
        "type": "Warning",
        "reason": reason,
        "message": message,
    }


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "box"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def controller(kind: str, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "box"}}}
    template = json.loads(json.dumps(TEMPLATE))
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "box", **STORED, **(metadata or {})},
        "spec": {**selector, "template": template, **spec},
    }


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        ("ReplicaSet", {"replicas": 4}, 4),
        ("StatefulSet", {"replicas": 3}, 3),
        ("Job", {"parallelism": 2}, 2),
        ("DaemonSet", {}, 1),
    ],
)
def test_pods_whose_creation_only_events_say_has_failed_have_no_place(
    kind: str, spec: dict[str, Any], pods: int
) -> None:
    message = 'pods "box-" is forbidden: violates PodSecurity "restricted:latest": no'
    answer = pending(NODE, controller(kind, **spec), event(kind, "box", "FailedCreate", message))
    (lacking,) = answer.uncreated
    assert answer.settled.placed == ()
    assert (lacking.pods, lacking.reason, lacking.finding.code) == (pods, message, "pod-security")


def test_of_a_stateful_set_with_some_of_its_pods_events_say_why_it_lacks_the_others() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "box",
        "uid": "box",
        "controller": True,
    }
    first = pod("box-0", metadata={"labels": {"app": "box"}, "ownerReferences": [owner]}, nodeName="n1")
    answer = pending(
        NODE, first, controller("StatefulSet", replicas=3), event("StatefulSet", "box", "FailedCreate", "no")
    )
    assert [(each.pods, each.reason) for each in answer.uncreated] == [(2, "no")]


def test_a_failure_of_a_controller_that_has_all_its_pods_is_over() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "box", "uid": "box", "controller": True}
    first = pod("box-0", metadata={"labels": {"app": "box"}, "ownerReferences": [owner]}, nodeName="n1")
    answer = pending(
        NODE, first, controller("StatefulSet", replicas=1), event("StatefulSet", "box", "FailedCreate", "no")
    )
    assert answer.uncreated == ()


def test_a_warning_says_why_a_pod_does_not_start_on_its_node() -> None:
    manifest = {**pod(nodeName="n1"), "status": {"phase": "Pending"}}
    told = event("Pod", "p", "FailedMount", 'secret "tls" not found')
    (found,) = pending(NODE, manifest, told).stuck
    assert (found.finding.code, str(found.finding)) == ("start-failed", 'secret "tls" not found')
    running = {**pod(nodeName="n1"), "status": {"phase": "Running"}}
    assert pending(NODE, running, told).stuck == ()


def test_a_pod_on_a_node_that_is_not_ready_does_not_start() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    manifest = {**pod(nodeName="n1"), "status": {"phase": "Pending"}}
    (found,) = pending({**NODE, "spec": {"taints": [taint]}}, manifest).stuck
    assert (found.finding.code, found.finding.parameters["node"]) == ("node-not-ready", "n1")


@pytest.mark.parametrize(
    ("workload", "code", "text"),
    [
        (controller("Job", suspend=True), "suspended", "it is suspended"),
        (controller("Deployment", paused=True), "paused", "it is paused"),
        (controller("StatefulSet", replicas=0), "scaled-to-zero", "its spec.replicas is 0"),
    ],
)
def test_a_workload_that_nobody_makes_pods_for_is_idle(
    workload: dict[str, Any], code: str, text: str
) -> None:
    answer = pending(NODE, workload)
    (found,) = answer.idle
    assert (found.finding.code, str(found.finding)) == (code, text)
    assert answer.settled.placed == ()


def test_a_daemon_set_for_labels_that_no_node_has_is_idle_and_told_what_may_be_meant() -> None:
    node = {**NODE, "metadata": {"name": "n1", "labels": {"disk": "ssd"}}}
    daemon = controller("DaemonSet")
    daemon["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "sdd"}
    (found,) = pending(node, daemon).idle
    assert str(found.finding) == (
        "no node is eligible: none has disk=sdd; "
        "correct disk=sdd to disk=ssd, which nodes have, in the labels that the pod wants"
    )


def test_a_finished_job_and_one_that_the_clock_starts_are_not_idle() -> None:
    done = controller("Job")
    done["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert pending(NODE, done).idle == ()
