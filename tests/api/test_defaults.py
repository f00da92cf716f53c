"""What the API server would fill in."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID, uuid5

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.affinity import NodeInclusionPolicy, PodAffinity, TolerationOperator
from kschedfw.api.containers import Protocol
from kschedfw.api.defaults import Priorities, default_metadata, default_node, default_pod
from kschedfw.api.manifests import (
    node_from_manifest,
    object_from_manifest,
    pod_from_manifest,
    to_manifest,
)
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PreemptionPolicy
from kschedfw.api.quantity import Quantity
from kschedfw.api.selectors import LabelSelector, Operator, Requirement
from kschedfw.api.workloads import PriorityClass, ReplicaSet, ReplicationController
from kschedfw.testing.strategies import nodes, pods


def pod(spec: dict[str, Any] | None = None, *, labels: dict[str, str] | None = None, **container: Any) -> Pod:
    containers = [{"name": "main", **container}]
    metadata = {"name": "web", "labels": labels or {}}
    return pod_from_manifest({"metadata": metadata, "spec": {"containers": containers, **(spec or {})}})


def amounts(**given: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in given.items()}


class TestMetadata:
    def test_namespaced_objects_are_in_default(self) -> None:
        assert pod().namespace == "default"
        assert node_from_manifest({"metadata": {"name": "n"}}).namespace == ""

    def test_made_up_uids_are_always_the_same_and_differ_by_kind_and_name(self) -> None:
        manifest = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a"}]}}
        uids = {
            pod_from_manifest(manifest).uid,
            pod_from_manifest({**manifest, "metadata": {"name": "db"}}).uid,
            pod_from_manifest({**manifest, "metadata": {"name": "web", "namespace": "b"}}).uid,
            node_from_manifest({"metadata": {"name": "web"}}).uid,
        }
        assert len(uids) == 4
        assert pod_from_manifest(manifest).uid in uids

    def test_uids_that_are_given_stay(self) -> None:
        assert node_from_manifest({"metadata": {"name": "n", "uid": "u"}}).uid == "u"

    def test_namespaces_carry_their_name(self) -> None:
        namespace = object_from_manifest({"metadata": {"name": "a", "labels": {"b": "c"}}}, "Namespace")
        assert namespace.labels == {"b": "c", "kubernetes.io/metadata.name": "a"}
        assert object_from_manifest(to_manifest(namespace)) == namespace

    def test_a_generated_name(self) -> None:
        manifest = {"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "a"}]}}
        assert pod_from_manifest(manifest).name == "web-0"


class TestNodes:
    def test_a_node_that_names_only_its_capacity_has_all_of_it(self) -> None:
        node = node_from_manifest({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
        assert node.status.allocatable == amounts(cpu="4")

    def test_allocatable_stays(self) -> None:
        status = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
        assert node_from_manifest(
            {"metadata": {"name": "n"}, "status": status}
        ).status.allocatable == amounts(cpu="3")


class TestContainers:
    def test_requests_that_are_missing_are_the_limits(self) -> None:
        resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
        read = pod(resources=resources).spec.containers[0].resources
        assert read.requests == amounts(cpu="1", memory="1Gi")

    def test_of_init_containers_too(self) -> None:
        init = [{"name": "init", "resources": {"limits": {"cpu": "2"}}}]
        assert pod({"initContainers": init}).spec.init_containers[0].resources.requests == amounts(cpu="2")

    def test_ports_in_the_host_s_network_are_the_host_s(self) -> None:
        ports = [{"containerPort": 80}]
        assert pod(ports=ports).spec.containers[0].ports[0].host_port == 0
        in_host = pod({"hostNetwork": True}, ports=ports).spec.containers[0].ports[0]
        assert (in_host.host_port, in_host.protocol) == (80, Protocol.TCP)


class TestPodLevelResources:
    def test_requests_come_from_containers_then_from_limits(self) -> None:
        containers = [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]
        limits = {"cpu": "4", "memory": "1Gi"}
        read = pod({"containers": containers, "resources": {"limits": limits}}).spec.resources
        assert read is not None
        assert read.requests == amounts(cpu="1", memory="1Gi")

    def test_without_limits_there_is_nothing_to_derive(self) -> None:
        containers = [{"name": "a", "resources": {"requests": {"memory": "1Gi"}}}]
        read = pod({"containers": containers, "resources": {"requests": {"cpu": "1"}}}).spec.resources
        assert read is not None
        assert read.requests == amounts(cpu="1")

    def test_huge_pages_of_containers_become_the_pod_s(self) -> None:
        pages = {"hugepages-2Mi": "4Mi"}
        containers = [{"name": "a", "resources": {"limits": {**pages, "cpu": "1"}}}]
        read = pod({"containers": containers, "resources": {"limits": {"cpu": "4"}}}).spec.resources
        assert read is not None
        assert read.limits["hugepages-2Mi"] == Quantity.parse("4Mi") == read.requests["hugepages-2Mi"]


class TestSmallThings:
    def test_operators_and_policies(self) -> None:
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        read = pod({"tolerations": [{"key": "a"}], "topologySpreadConstraints": [constraint]}).spec
        assert read.tolerations[0].operator is TolerationOperator.EQUAL
        assert read.topology_spread_constraints[0].node_affinity_policy is NodeInclusionPolicy.HONOR
        assert read.topology_spread_constraints[0].node_taints_policy is NodeInclusionPolicy.IGNORE
        assert read.scheduler_name == "default-scheduler"


class TestLabelKeys:
    """`matchLabelKeys` and `mismatchLabelKeys` become part of the selector."""

    LABELS: ClassVar = {"app": "web", "version": "2", "tenant": "a"}

    def affinity(self, kind: str, term: dict[str, Any]) -> PodAffinity:
        spec = {
            "affinity": {
                kind: {
                    "requiredDuringSchedulingIgnoredDuringExecution": [term],
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": term}
                    ],
                }
            }
        }
        read = pod(spec, labels=self.LABELS).spec.affinity
        found = read.pod_affinity if kind == "podAffinity" else read.pod_anti_affinity
        assert found is not None
        return found

    def test_in_all_terms_of_affinity_and_anti_affinity(self) -> None:
        term = {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["version", "absent"],
            "mismatchLabelKeys": ["tenant"],
        }
        expected = (
            Requirement("version", Operator.IN, ("2",)),
            Requirement("tenant", Operator.NOT_IN, ("a",)),
        )
        for kind in ("podAffinity", "podAntiAffinity"):
            read = self.affinity(kind, term)
            for each in (read.required[0], read.preferred[0].pod_affinity_term):
                assert each.label_selector is not None
                assert each.label_selector.match_expressions == expected
                assert each.label_selector.match_labels == {"app": "web"}

    def test_in_spread_constraints(self) -> None:
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {},
            "matchLabelKeys": ["app"],
        }
        read = pod({"topologySpreadConstraints": [constraint]}, labels=self.LABELS)
        selector = read.spec.topology_spread_constraints[0].label_selector
        assert selector == LabelSelector(match_expressions=(Requirement("app", Operator.IN, ("web",)),))

    def test_a_selector_that_is_absent_goes_on_matching_nothing(self) -> None:
        from kschedfw.api.affinity import Affinity, PodAffinityTerm
        from kschedfw.api.pod import PodSpec

        term = PodAffinityTerm("zone", match_label_keys=("app",))
        affinity = Affinity(pod_affinity=PodAffinity(required=(term,)))
        before = attrs.evolve(pod(labels=self.LABELS), spec=PodSpec(affinity=affinity))
        assert default_pod(before) == before


class TestSelectorsOfWorkloads:
    TEMPLATE: ClassVar = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a"}]}}

    def test_a_replication_controller_selects_its_template(self) -> None:
        manifest = {"metadata": {"name": "web"}, "spec": {"template": self.TEMPLATE}}
        controller = object_from_manifest(manifest, "ReplicationController")
        assert isinstance(controller, ReplicationController)
        assert controller.spec.selector == {"app": "web"}

    def test_so_does_a_replica_set_of_an_old_version(self) -> None:
        manifest = {
            "apiVersion": "extensions/v1beta1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web"},
            "spec": {"template": self.TEMPLATE},
        }
        replica_set = object_from_manifest(manifest)
        assert isinstance(replica_set, ReplicaSet)
        assert replica_set.spec.selector is not None
        assert replica_set.spec.selector.match_labels == {"app": "web"}


class TestPriorities:
    def cls(self, name: str, value: int, **fields: Any) -> PriorityClass:
        read = object_from_manifest({"metadata": {"name": name}, "value": value, **fields}, "PriorityClass")
        assert isinstance(read, PriorityClass)
        return read

    def resolve(self, spec: dict[str, Any], *classes: PriorityClass) -> Pod:
        given = pod(spec)
        return attrs.evolve(given, spec=Priorities(classes).applied(given.spec))

    def test_come_from_the_class(self) -> None:
        found = self.resolve({"priorityClassName": "high"}, self.cls("high", 7, preemptionPolicy="Never"))
        assert (found.priority, found.spec.preemption_policy) == (7, PreemptionPolicy.NEVER)

    def test_a_pod_s_own_priority_and_policy_stay(self) -> None:
        high = self.cls("high", 7)
        assert self.resolve({"priorityClassName": "high", "priority": 3}, high).priority == 3
        found = self.resolve({"priorityClassName": "high", "preemptionPolicy": "Never"}, high)
        assert found.spec.preemption_policy is PreemptionPolicy.NEVER

    def test_two_classes_are_built_in(self) -> None:
        assert self.resolve({"priorityClassName": "system-node-critical"}).priority == 2_000_001_000
        assert self.resolve({"priorityClassName": "system-cluster-critical"}).priority == 2_000_000_000

    def test_of_several_defaults_the_lowest_counts(self) -> None:
        classes = [
            self.cls("a", 9, globalDefault=True),
            self.cls("b", 5, globalDefault=True),
            self.cls("c", 1),
        ]
        found = self.resolve({}, *classes)
        assert (found.priority, found.spec.priority_class_name) == (5, "b")

    def test_an_unknown_class_says_nothing(self) -> None:
        assert self.resolve({"priorityClassName": "high"}).spec.priority is None


@given(pods())
def test_defaults_of_pods_are_stable(given_pod: Pod) -> None:
    assert default_pod(given_pod) == given_pod
    assert pod_from_manifest(to_manifest(given_pod)) == given_pod


@given(nodes())
def test_defaults_of_nodes_are_stable(node: Node) -> None:
    assert default_node(node) == node
    assert node_from_manifest(to_manifest(node)) == node


@given(st.text())
def test_made_up_uids_are_those_of_uuid5(name: str) -> None:
    made = default_metadata(ObjectMeta(name=name), "Node", namespaced=False)
    assert made.uid == str(uuid5(UUID("7c6cb0bb-5f0e-5a53-8f0f-6b7363686564"), f"Node//{name}"))
