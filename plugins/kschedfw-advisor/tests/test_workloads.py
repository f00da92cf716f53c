"""Pods of a workload are alike, whatever admission and controllers gave each of them of its own."""

from __future__ import annotations

import json

import attrs
import pytest
from kschedfw_advisor.workloads import are_interchangeable, likeness

from kschedfw import Pod, make_pod
from kschedfw.api import OwnerReference, ReplicaSet, parse_manifests
from kschedfw.cluster import InMemoryCluster, Workload, workload_of

EMPTY = InMemoryCluster()


def pod(name: str, owner: str = "", kind: str = "ReplicaSet", **labels: str) -> Pod:
    built = make_pod(name).labels({key.replace("_", "-"): value for key, value in labels.items()}).build()
    references = (OwnerReference(kind, owner, f"uid-{owner}", "apps/v1", controller=True),) if owner else ()
    return built.with_metadata(attrs.evolve(built.metadata, owner_references=references))


class TestWorkload:
    def test_a_pod_without_a_controller_has_none(self) -> None:
        assert workload_of(pod("a"), EMPTY) is None

    @pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "ReplicationController", "Rollout"])
    def test_it_is_the_controller(self, kind: str) -> None:
        assert workload_of(pod("a-0", "a", kind), EMPTY) == Workload(kind, "default", "a")

    def test_above_a_replica_set_is_the_controller_of_that(self) -> None:
        made = pod("web-5d8f", "web", "Rollout").metadata
        cluster = InMemoryCluster([ReplicaSet(attrs.evolve(made, uid="r"))])
        assert workload_of(pod("web-5d8f-x", "web-5d8f"), cluster) == Workload("Rollout", "default", "web")

    def test_a_deployment_is_told_by_the_hash_in_the_name_of_a_replica_set_that_is_missing(self) -> None:
        found = workload_of(pod("web-5d8f-x", "web-5d8f", pod_template_hash="5d8f"), EMPTY)
        assert str(found) == "Deployment default/web"

    def test_a_replica_set_of_nobody_stands_for_itself(self) -> None:
        assert workload_of(pod("web-x", "web"), EMPTY) == Workload("ReplicaSet", "default", "web")

    def test_a_cron_job_is_told_by_the_minute_in_the_name_of_its_job(self) -> None:
        assert workload_of(pod("n", "backup-29384710", "Job"), EMPTY) == Workload(
            "CronJob", "default", "backup"
        )
        assert workload_of(pod("n", "backup-1", "Job"), EMPTY) == Workload("Job", "default", "backup-1")


def with_spec(each: Pod, **spec: object) -> Pod:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": each.name},
        "spec": {"containers": [{"name": "c"}], **spec},
    }
    (read,) = parse_manifests(json.dumps(manifest)).pods
    return attrs.evolve(each, spec=read.spec)


class TestLikeness:
    def test_volumes_that_scheduling_does_not_read_make_no_difference(self) -> None:
        one, other = (
            with_spec(pod(name), volumes=[{"name": f"kube-api-access-{name}", "projected": {"sources": []}}])
            for name in "ab"
        )
        assert likeness(one) == likeness(other)

    def test_claims_of_a_stateful_set_are_alike_and_those_of_two_are_not(self) -> None:
        def member(claims: str, ordinal: int) -> Pod:
            claim = {"claimName": f"{claims}-db-{ordinal}"}
            return with_spec(pod(f"db-{ordinal}"), volumes=[{"name": "data", "persistentVolumeClaim": claim}])

        assert likeness(member("data", 0)) == likeness(member("data", 1))
        assert likeness(member("data", 0)) != likeness(member("logs", 0))

    def test_labels_that_controllers_add_make_no_difference_and_others_do(self) -> None:
        assert likeness(pod("a", pod_template_hash="x")) == likeness(pod("b", pod_template_hash="y"))
        assert likeness(pod("a", app="x")) != likeness(pod("b", app="y"))

    def test_pods_of_a_daemon_set_are_alike_on_all_nodes_and_other_pods_that_name_a_node_are_not(
        self,
    ) -> None:
        def on(node: str, kind: str) -> Pod:
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            return with_spec(pod(f"d-{node}", "d", kind), affinity={"nodeAffinity": required})

        assert likeness(on("n1", "DaemonSet")) == likeness(on("n2", "DaemonSet"))
        assert likeness(on("n1", "Job")) != likeness(on("n2", "Job"))

    def test_requests_make_a_difference(self) -> None:
        assert likeness(make_pod("a").requests(cpu=1).build()) != likeness(
            make_pod("b").requests(cpu=2).build()
        )


class TestInterchangeablePods:
    def test_volumes_that_scheduling_does_not_read_tell_no_pods_apart(self) -> None:
        tokens = [
            with_spec(pod(f"web-{n}"), volumes=[{"name": f"token-{n}", "emptyDir": {}}]) for n in range(3)
        ]
        assert are_interchangeable(tokens)

    def test_claims_of_their_own_labels_and_nominations_do(self) -> None:
        claims = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{n}"}} for n in range(2)]
        assert not are_interchangeable([with_spec(pod("a"), volumes=[claim]) for claim in claims])
        assert not are_interchangeable([pod("a", app="a"), pod("b", app="b")])
        nominated = pod("b")
        status = attrs.evolve(nominated.status, nominated_node_name="n1")
        assert not are_interchangeable([pod("a"), nominated.with_status(status)])
