"""Workloads become the pods that their controllers would make."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from kschedfw.api.limits import Limits
from kschedfw.api.manifests import Expand, Manifests, parse_manifests
from kschedfw.api.pod import Pod
from kschedfw.api.storage import PersistentVolumeClaim
from kschedfw.api.volumes import claim_name
from kschedfw.api.workloads import ReplicaSet, ReplicationController, StatefulSet

TEMPLATE: dict[str, Any] = {
    "metadata": {"name": "dropped", "labels": {"app": "web"}, "annotations": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}
VERSIONS = {"Job": "batch/v1", "ReplicationController": "v1"}


def workload(
    kind: str, name: str = "web", *, metadata: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    selector = {} if kind in VERSIONS else {"selector": SELECTOR}
    return {
        "apiVersion": VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"template": TEMPLATE, **selector, **spec},
    }


def owned(name: str, kind: str, owner: str, uid: str = "", **more: Any) -> dict[str, Any]:
    """A pod of a controller."""
    reference = {"kind": kind, "name": owner, "uid": uid, "controller": True}
    metadata = {"name": name, "ownerReferences": [reference], **more.pop("metadata", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**TEMPLATE["spec"], **more.pop("spec", {})},
        **more,
    }


def node(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
    }


def load(*manifests: dict[str, Any]) -> Manifests:
    loaded = parse_manifests("\n".join(map(json.dumps, manifests)))
    assert not loaded.problems, loaded.problems
    return loaded


def pod_names(*manifests: dict[str, Any]) -> list[str]:
    return [pod.name for pod in load(*manifests).pods]


def only_pod(*manifests: dict[str, Any]) -> Pod:
    (pod,) = load(*manifests).pods
    return pod


class TestReplicas:
    @pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "StatefulSet"])
    def test_as_many_pods_as_asked_for(self, kind: str) -> None:
        assert pod_names(workload(kind, replicas=3)) == ["web-0", "web-1", "web-2"]
        assert pod_names(workload(kind)) == ["web-0"]
        assert pod_names(workload(kind, replicas=0)) == []

    def test_pods_are_like_the_template(self) -> None:
        pod = only_pod(workload("ReplicaSet", metadata={"namespace": "shop", "uid": "u"}))
        assert (pod.key, pod.labels, pod.annotations) == ("shop/web-0", {"app": "web"}, {"a": "b"})
        assert pod.metadata.controller is not None
        assert (pod.metadata.controller.kind, pod.metadata.controller.name) == ("ReplicaSet", "web")
        assert (pod.metadata.controller.uid, pod.metadata.controller.api_version) == ("u", "apps/v1")
        assert pod.requests.amounts.milli_cpu == 1000  # defaults are those of a pod
        assert pod.uid

    def test_the_controllers_stay(self) -> None:
        loaded = load(
            workload("ReplicaSet"), workload("StatefulSet", "db"), workload("ReplicationController", "rc")
        )
        for cls in (ReplicaSet, StatefulSet, ReplicationController):
            assert len(loaded.of(cls)) == 1

    def test_only_the_missing_pods_are_made(self) -> None:
        given = [
            owned("web-abc", "ReplicaSet", "web"),
            workload("ReplicaSet", replicas=3),
            owned("web-0", "X", "y"),
        ]
        assert pod_names(*given) == ["web-abc", "web-1", "web-2", "web-0"]

    def test_pods_are_found_by_uid_too(self) -> None:
        given = [workload("ReplicaSet", metadata={"uid": "u"}), owned("a", "ReplicaSet", "renamed", "u")]
        assert pod_names(*given) == ["a"]

    def test_pods_of_another_namespace_or_that_are_over_do_not_count(self) -> None:
        elsewhere = owned("a", "ReplicaSet", "web", metadata={"namespace": "b"})
        failed = owned("c", "ReplicaSet", "web", status={"phase": "Failed"})
        leaving = owned("d", "ReplicaSet", "web", metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"})
        assert pod_names(elsewhere, failed, leaving, workload("ReplicaSet")) == ["a", "c", "d", "web-0"]

    def test_pods_come_in_the_place_of_their_workload(self) -> None:
        assert pod_names(workload("ReplicaSet", "b"), owned("x", "", ""), workload("ReplicaSet", "a")) == [
            "b-0",
            "x",
            "a-0",
        ]


class TestExports:
    """An API server has stored their objects, so they have creation timestamps."""

    STORED: ClassVar[dict[str, Any]] = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}

    @pytest.mark.parametrize(
        "kind", ["ReplicaSet", "StatefulSet", "ReplicationController", "Job", "DaemonSet"]
    )
    def test_no_pods_are_made_for_a_workload_that_came_with_pods(self, kind: str) -> None:
        number: dict[str, Any] = (
            {"parallelism": 3} if kind == "Job" else {} if kind == "DaemonSet" else {"replicas": 3}
        )
        given = [node("n1"), node("n2"), workload(kind, **self.STORED, **number), owned("web-x", kind, "web")]
        assert pod_names(*given) == ["web-x"]

    def test_a_deployment_keeps_its_replica_set_though_that_lacks_pods(self) -> None:
        pod = owned(
            "web-5d8f-x", "ReplicaSet", "web-5d8f", metadata={"labels": {"pod-template-hash": "5d8f"}}
        )
        loaded = load(workload("Deployment", **self.STORED, replicas=3), pod)
        assert [each.name for each in loaded.pods] == ["web-5d8f-x"]
        assert [each.name for each in loaded.of(ReplicaSet)] == ["web-5d8f"]

    def test_pods_are_made_for_a_workload_that_came_without_any(self) -> None:
        loaded = load(workload("ReplicaSet", **self.STORED, replicas=2))
        assert loaded.made == {"ReplicaSet default/web": 2}

    def test_a_custom_object_is_no_workload_whatever_its_kind_is_called(self) -> None:
        custom = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "web", **self.STORED["metadata"]},
        }
        loaded = load(custom, workload("Job", **self.STORED))
        assert [each.name for each in loaded.custom_objects] == ["web"]
        assert [pod.name for pod in loaded.pods] == ["web-0"]

    def test_pods_of_another_api_groups_job_are_not_those_of_the_job_of_that_name(self) -> None:
        pod = owned("web-x", "Job", "web")
        (reference,) = pod["metadata"]["ownerReferences"]
        job = workload("Job", **self.STORED)
        reference |= {"apiVersion": "batch.volcano.sh/v1alpha1", "uid": "u"}
        assert pod_names(job, pod) == ["web-0", "web-x"]
        reference["apiVersion"] = "batch/v1"
        assert pod_names(job, pod) == ["web-x"]

    def test_pods_of_a_replica_set_of_an_old_version_are_its_pods(self) -> None:
        pod = owned("web-x", "ReplicaSet", "web")
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = "extensions/v1beta1"
        assert pod_names(workload("ReplicaSet"), pod) == ["web-x"]

    def test_a_workload_that_has_its_pods_may_ask_for_any_number_of_them(self) -> None:
        given = workload("StatefulSet", **self.STORED, replicas=2_000_000_000)
        assert pod_names(given, owned("web-0", "StatefulSet", "web")) == ["web-0"]

    def test_pods_that_were_made_are_counted_by_the_workload_that_users_made(self) -> None:
        loaded = load(workload("Deployment", replicas=2), owned("a", "X", "y"), workload("Job", "j"))
        assert loaded.made == {"Deployment default/web": 2, "Job default/j": 1}


def test_without_expansion_no_pods_are_made_and_what_scheduling_reads_of_workloads_stays() -> None:
    text = "\n".join(
        map(json.dumps, [workload("Deployment", replicas=2), workload("Job", "j"), owned("a", "X", "y")])
    )
    loaded = parse_manifests(text, expand_workloads=Expand.NOTHING)
    assert [pod.name for pod in loaded.pods] == ["a"]
    assert len(loaded.of(ReplicaSet)) == 1
    assert not loaded.made


class TestDeployments:
    def test_make_a_replica_set_and_its_pods(self) -> None:
        loaded = load(workload("Deployment", replicas=2))
        (replica_set,) = loaded.of(ReplicaSet)
        template_hash = replica_set.labels["pod-template-hash"]
        assert replica_set.name == f"web-{template_hash}"
        assert replica_set.metadata.controller is not None
        assert replica_set.metadata.controller.kind == "Deployment"
        assert replica_set.spec.selector is not None
        for index, pod in enumerate(loaded.pods):
            assert pod.name == f"web-{template_hash}-{index}"
            assert pod.labels == {"app": "web", "pod-template-hash": template_hash}
            assert replica_set.spec.selector.compile().matches(pod.labels)
            assert pod.metadata.controller is not None
            assert pod.metadata.controller.uid == replica_set.uid

    def test_names_are_always_the_same_and_tell_templates_apart(self) -> None:
        other = {**TEMPLATE, "spec": {"containers": [{"name": "other"}]}}
        names = {
            tuple(pod_names(workload("Deployment", template=each))) for each in (TEMPLATE, TEMPLATE, other)
        }
        assert len(names) == 2

    def test_a_replica_set_that_is_there_has_the_say(self) -> None:
        replica_set = workload(
            "ReplicaSet",
            "web-abc",
            metadata={"ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}]},
            replicas=2,
        )
        loaded = load(
            workload("Deployment", replicas=2), replica_set, owned("web-abc-x", "ReplicaSet", "web-abc")
        )
        assert len(loaded.of(ReplicaSet)) == 1
        assert [pod.name for pod in loaded.pods] == ["web-abc-0", "web-abc-x"]

    def test_pods_without_their_replica_set_are_counted(self) -> None:
        def pod(name: str, template_hash: str) -> dict[str, Any]:
            labels = {"app": "web", "pod-template-hash": template_hash}
            return owned(name, "ReplicaSet", f"web-{template_hash}", metadata={"labels": labels})

        given = [workload("Deployment", replicas=4), pod("a", "new"), pod("b", "new"), pod("c", "old")]
        loaded = load(*given)
        assert [pod.name for pod in loaded.pods] == ["web-new-0", "a", "b", "c"]
        assert loaded.of(ReplicaSet)[0].name == "web-new"


class TestStatefulSets:
    def test_pods_know_their_ordinal(self) -> None:
        pod = load(workload("StatefulSet", replicas=2, ordinals={"start": 5})).pods[1]
        assert pod.name == "web-6"
        assert pod.labels["apps.kubernetes.io/pod-index"] == "6"
        assert pod.labels["statefulset.kubernetes.io/pod-name"] == "web-6"
        assert pod.labels["controller-revision-hash"].startswith("web-")

    def test_only_the_missing_ordinals_are_made(self) -> None:
        assert pod_names(workload("StatefulSet", replicas=3), owned("web-1", "StatefulSet", "web")) == [
            "web-0",
            "web-2",
            "web-1",
        ]

    CLAIM: ClassVar[dict[str, Any]] = {
        "metadata": {"name": "data", "labels": {"tier": "db"}, "annotations": {"a": "b"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"},
    }

    def test_each_pod_has_a_claim_for_each_template_of_one(self) -> None:
        logs = {**self.CLAIM, "metadata": {"name": "logs"}}
        loaded = load(
            workload(
                "StatefulSet", replicas=2, ordinals={"start": 3}, volumeClaimTemplates=[self.CLAIM, logs]
            )
        )
        assert [claim.name for claim in loaded.of(PersistentVolumeClaim)] == [
            "data-web-3",
            "logs-web-3",
            "data-web-4",
            "logs-web-4",
        ]
        claim = loaded.of(PersistentVolumeClaim)[0]
        assert (claim.labels, claim.annotations) == ({"tier": "db", "app": "web"}, {"a": "b"})
        assert claim.spec.storage_class_name == "fast"
        assert claim.uid
        mounted = [
            (volume.name, claim_name(loaded.pods[1], volume)) for volume in loaded.pods[1].spec.volumes
        ]
        assert mounted == [("data", "data-web-4"), ("logs", "logs-web-4")]
        assert loaded.made == {"StatefulSet default/web": 2}

    def test_a_claim_of_that_name_is_used_as_it_is(self) -> None:
        kept = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-web-0"},
            "spec": {"volumeName": "v"},
        }
        given = workload("StatefulSet", volumeClaimTemplates=[self.CLAIM])
        (claim,) = load(given, kept).of(PersistentVolumeClaim)
        assert claim.spec.volume_name == "v"
        # The claim may be one of the cluster that the StatefulSet comes on top of.
        more = parse_manifests(json.dumps(given), existing=[claim])
        assert [pod.name for pod in more.pods] == ["web-0"]
        assert more.of(PersistentVolumeClaim) == ()

    def test_a_volume_of_the_template_gives_way_to_the_claim_of_its_name(self) -> None:
        volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "volumes": volumes}}
        pod = load(workload("StatefulSet", template=template, volumeClaimTemplates=[self.CLAIM])).pods[0]
        assert [(volume.name, volume.is_storage) for volume in pod.spec.volumes] == [
            ("data", True),
            ("tmp", False),
        ]

    def test_claims_count_for_the_limit(self) -> None:
        given = workload("StatefulSet", replicas=3, volumeClaimTemplates=[self.CLAIM])
        (problem,) = parse_manifests(json.dumps(given), limits=Limits(pods=5)).problems
        assert "spec.replicas: stands for 6 more pods and claims, but only 5 may still be made" in str(
            problem
        )
        assert not parse_manifests(json.dumps(given), limits=Limits(pods=6)).problems

    def test_a_claim_template_has_a_name(self) -> None:
        given = workload("StatefulSet", volumeClaimTemplates=[{"spec": {}}])
        (problem,) = parse_manifests(json.dumps(given)).problems
        assert "spec.volumeClaimTemplates[0].metadata.name: Required value" in str(problem)

    def test_names_are_kept_free_for_them(self) -> None:
        assert pod_names(workload("ReplicaSet"), workload("StatefulSet")) == ["web-1", "web-0"]


class TestJobs:
    def test_run_as_many_pods_as_may_run_together(self) -> None:
        assert pod_names(workload("Job")) == ["web-0"]
        assert pod_names(workload("Job", parallelism=3)) == ["web-0", "web-1", "web-2"]
        assert pod_names(workload("Job", parallelism=3, completions=2)) == ["web-0", "web-1"]
        assert pod_names(workload("Job", parallelism=0)) == []

    def test_labels(self) -> None:
        pod = only_pod(workload("Job", metadata={"uid": "u"}))
        assert pod.labels["batch.kubernetes.io/job-name"] == "web"
        assert pod.labels["controller-uid"] == "u"

    def test_what_has_succeeded_is_not_run_again(self) -> None:
        job = workload("Job", parallelism=3, completions=4)
        assert pod_names({**job, "status": {"succeeded": 3}}) == ["web-0"]
        done = {"conditions": [{"type": "Complete", "status": "True"}]}
        assert pod_names({**job, "status": done}) == []
        assert pod_names(workload("Job", suspend=True)) == []

    def test_indexed(self) -> None:
        job = workload("Job", parallelism=3, completions=8, completionMode="Indexed")
        running = owned(
            "web-3-x", "Job", "web", metadata={"labels": {"batch.kubernetes.io/job-completion-index": "3"}}
        )
        loaded = load({**job, "status": {"succeeded": 3, "completedIndexes": "0,4-5,x"}}, running)
        assert [pod.name for pod in loaded.pods] == ["web-1", "web-2", "web-3-x"]
        assert loaded.pods[0].labels["batch.kubernetes.io/job-completion-index"] == "1"
        assert loaded.pods[0].annotations["batch.kubernetes.io/job-completion-index"] == "1"

    def test_of_a_cron_job_are_not_made(self) -> None:
        spec = {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}}
        head = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}}
        loaded = load({**head, "spec": spec})
        assert loaded.objects() == ()
        assert loaded.without_pods == {"CronJob default/c": "its Jobs come by the clock"}
        suspended = load({**head, "spec": {**spec, "suspend": True}})
        assert suspended.without_pods == {"CronJob default/c": "it is suspended"}

    def test_without_completions_none_starts_once_one_has_succeeded(self) -> None:
        job = workload("Job", parallelism=3)
        assert pod_names({**job, "status": {"succeeded": 1}}) == []

    def test_indexes_that_have_failed_for_good_are_not_run_again(self) -> None:
        job = workload("Job", parallelism=3, completions=4, completionMode="Indexed", backoffLimitPerIndex=0)
        assert pod_names({**job, "status": {"failedIndexes": "0,2"}}) == ["web-1", "web-3"]

    def test_with_a_manual_selector_pods_have_only_the_labels_of_the_template(self) -> None:
        assert only_pod(workload("Job", manualSelector=True)).labels == {"app": "web"}

    def test_the_name_of_an_index_that_another_pod_has_gets_a_number(self) -> None:
        job = workload("Job", completions=1, completionMode="Indexed")
        assert pod_names(job, owned("web-0", "X", "y")) == ["web-0-1", "web-0"]


class TestDaemonSets:
    def daemons(self, *nodes: dict[str, Any], spec: dict[str, Any] | None = None) -> list[str]:
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], **(spec or {})}}
        return pod_names(*nodes, workload("DaemonSet", "log", template=template))

    def test_one_for_each_node(self) -> None:
        assert self.daemons(node("a"), node("b")) == ["log-a", "log-b"]
        assert self.daemons() == []

    def test_nodes_must_match(self) -> None:
        nodes = [node("a", {"disk": "ssd"}), node("b")]
        assert self.daemons(*nodes, spec={"nodeSelector": {"disk": "ssd"}}) == ["log-a"]
        term = {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        assert self.daemons(*nodes, spec={"affinity": {"nodeAffinity": required}}) == ["log-b"]
        assert self.daemons(*nodes, spec={"nodeName": "b"}) == ["log-b"]

    def test_taints_must_be_tolerated(self) -> None:
        nodes = [
            node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
            node("b", taints=[{"key": "gpu", "effect": "PreferNoSchedule"}]),
        ]
        assert self.daemons(*nodes) == ["log-b"]
        assert self.daemons(*nodes, spec={"tolerations": [{"operator": "Exists"}]}) == ["log-a", "log-b"]

    def test_nodes_in_trouble_are_served(self) -> None:
        taints = [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        ]
        assert self.daemons(node("a", taints=taints, unschedulable=True)) == ["log-a"]
        offline = node(
            "b", taints=[{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}]
        )
        assert self.daemons(offline) == []
        assert self.daemons(offline, spec={"hostNetwork": True}) == ["log-b"]

    def test_no_two_have_the_same_name(self) -> None:
        given = [node("b-c"), node("c"), workload("DaemonSet", "a"), workload("DaemonSet", "a-b")]
        assert pod_names(*given) == ["a-b-c", "a-c", "a-b-b-c", "a-b-c-1"]

    def test_tolerations_that_are_limited_in_time_give_way_to_unlimited_ones(self) -> None:
        limited = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        template = {
            **TEMPLATE,
            "spec": {**TEMPLATE["spec"], "tolerations": [{**limited, "tolerationSeconds": 60}]},
        }
        pod = only_pod(node("a"), workload("DaemonSet", template=template))
        assert len(pod.spec.tolerations) == 6
        assert {each.toleration_seconds for each in pod.spec.tolerations} == {None}

    def test_nodes_of_the_cluster_that_they_come_on_top_of_have_theirs(self) -> None:
        (existing,) = load(node("a")).nodes
        loaded = parse_manifests(json.dumps(workload("DaemonSet", "log")), existing=[existing])
        assert [pod.name for pod in loaded.pods] == ["log-a"]

    def test_each_is_tied_to_its_node(self) -> None:
        pod = only_pod(node("a"), workload("DaemonSet"))
        assert pod.node_name == ""
        affinity = pod.spec.affinity.node_affinity
        assert affinity is not None
        assert affinity.required is not None
        assert affinity.required.matches({}, "a")
        assert not affinity.required.matches({}, "b")
        assert len(pod.spec.tolerations) == 6

    def test_only_the_missing_are_made(self) -> None:
        running = owned("log-x", "DaemonSet", "log", spec={"nodeName": "a"})
        field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        pending = owned("log-y", "DaemonSet", "log", spec={"affinity": affinity})
        assert self.daemons(node("a"), node("b"), node("c"), running, pending) == ["log-x", "log-y", "log-c"]


class TestWithoutPods:
    """What makes no pods says why."""

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            (workload("Job", suspend=True), "it is suspended"),
            (workload("Job", parallelism=0), "its spec.parallelism is 0"),
            (workload("Job", completions=0), "its spec.completions is 0"),
            (
                workload("Job", managedBy="kueue.x-k8s.io/multikueue"),
                "its pods are made by kueue.x-k8s.io/multikueue",
            ),
            (workload("Job") | {"status": {"succeeded": 1}}, "nothing is left to do of it"),
            (
                workload("Job", completions=2, completionMode="Indexed", backoffLimitPerIndex=0)
                | {"status": {"succeeded": 1, "completedIndexes": "0", "failedIndexes": "1"}},
                "nothing is left to do of it",
            ),
            (
                workload("Job") | {"status": {"conditions": [{"type": "Failed", "status": "True"}]}},
                "it has finished",
            ),
            (workload("Deployment", replicas=0), "its spec.replicas is 0"),
            (workload("Deployment", paused=True), "it is paused"),
            (workload("StatefulSet", replicas=0), "its spec.replicas is 0"),
            (
                workload("ReplicaSet", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                "it is being deleted",
            ),
            (workload("DaemonSet"), "there is no node"),
        ],
    )
    def test_a_workload_says_why_it_has_none(self, given: dict[str, Any], reason: str) -> None:
        loaded = load(given)
        assert loaded.pods == ()
        assert loaded.without_pods == {f"{given['kind']} default/web": reason}
        assert len(loaded.workloads) == 1

    def test_a_daemon_set_says_that_no_node_is_eligible(self) -> None:
        tainted = node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}])
        assert load(tainted, workload("DaemonSet")).without_pods == {
            "DaemonSet default/web": "no node is eligible"
        }

    def test_a_workload_whose_pods_are_there_says_nothing(self) -> None:
        assert not load(workload("Job", suspend=True), owned("x", "Job", "web")).without_pods
        assert not load(workload("DaemonSet"), owned("x", "DaemonSet", "web")).without_pods

    def test_replica_sets_of_a_deployments_history_say_nothing(self) -> None:
        old = workload(
            "ReplicaSet",
            "web-old",
            metadata={"ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}]},
            replicas=0,
        )
        assert not load(old).without_pods

    def test_nothing_is_said_where_no_pods_are_wanted(self) -> None:
        text = json.dumps(workload("Job", suspend=True))
        assert not parse_manifests(text, expand_workloads=Expand.NOTHING).without_pods
