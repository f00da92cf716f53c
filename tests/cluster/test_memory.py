"""The in-memory cluster keeps objects as the API server does."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import cast

import attrs
import pytest

from kschedfw import make_node
from kschedfw.api.custom import CustomKind, CustomObject, CustomResource
from kschedfw.api.errors import KschedfwError
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.manifests import parse_manifests
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.node import Node, NodeSpec
from kschedfw.api.pod import Pod, PodCondition, PodSchedulingGate, PodSpec, PodStatus
from kschedfw.api.workloads import Namespace, PriorityClass, Service
from kschedfw.cluster import (
    AlreadyExistsError,
    Cluster,
    ClusterError,
    ConflictError,
    EventType,
    InMemoryCluster,
    NotFoundError,
    WatchEvent,
)


def pod(name: str = "web", namespace: str = "default", **meta: object) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, **meta))  # type: ignore[arg-type]


def node(name: str = "n1", **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=FrozenDict(labels)))


def stored_pod(cluster: InMemoryCluster, key: str = "default/web") -> Pod:
    found = cluster.get(Pod, key)
    assert found is not None
    return found


def test_it_is_a_cluster() -> None:
    cluster: Cluster = InMemoryCluster()
    assert cluster.list(Pod) == ()


def test_errors_are_shown_to_users() -> None:
    for error in (NotFoundError, AlreadyExistsError, ConflictError):
        assert issubclass(error, ClusterError)
        assert issubclass(error, KschedfwError)


class TestReading:
    def test_get_finds_by_kind_and_key(self) -> None:
        cluster = InMemoryCluster([pod(), node()])
        assert stored_pod(cluster).name == "web"
        assert cluster.get(Node, "n1") is not None
        assert cluster.get(Node, "default/web") is None
        assert cluster.get(Pod, "other/web") is None

    def test_list_is_in_the_order_of_addition(self) -> None:
        names = ["c", "a", "b"]
        cluster = InMemoryCluster(pod(name) for name in names)
        cluster.update(attrs.evolve(stored_pod(cluster, "default/c"), spec=PodSpec(node_name="n1")))
        assert [p.name for p in cluster.list(Pod)] == names

    def test_list_of_one_namespace(self) -> None:
        cluster = InMemoryCluster([pod("a", "x"), pod("b", "y"), pod("c", "x")])
        assert [p.name for p in cluster.list(Pod, "x")] == ["a", "c"]
        assert cluster.list(Pod, "z") == ()


class TestAdd:
    def test_twice_is_refused(self) -> None:
        cluster = InMemoryCluster([pod()])
        with pytest.raises(AlreadyExistsError, match="Pod default/web already exists"):
            cluster.add(pod())

    def test_a_builder_is_refused_with_the_call_that_it_lacks(self) -> None:
        with pytest.raises(TypeError, match=r"found <NodeBuilder a that isn't built: call .build\(\)>"):
            InMemoryCluster([cast(Node, make_node("a"))])

    def test_every_write_has_its_resource_version(self) -> None:
        cluster = InMemoryCluster()
        first, second = cluster.add(node("a")), cluster.add(node("b"))
        assert (
            int(first.metadata.resource_version)
            < int(second.metadata.resource_version)
            == cluster.resource_version
        )

    def test_uid_is_kept_or_assigned_always_the_same_way(self) -> None:
        def uids() -> list[str]:
            return [obj.uid for obj in map(InMemoryCluster().add, [pod("a"), pod("b", uid="own"), pod("c")])]

        assert uids() == uids()
        assert uids()[1] == "own"
        cluster = InMemoryCluster([pod("a"), pod("b")])
        assert len({p.uid for p in cluster.list(Pod)} - {""}) == 2

    def test_pods_without_namespace_go_into_default(self) -> None:
        cluster = InMemoryCluster()
        assert cluster.add(pod(namespace="")).key == "default/web"
        cluster.delete(pod(namespace=""))
        assert cluster.list(Pod) == ()

    def test_cluster_scoped_objects_have_no_namespace(self) -> None:
        cluster = InMemoryCluster([node("n1"), PriorityClass(metadata=ObjectMeta(name="high"))])
        assert cluster.get(PriorityClass, "high") is not None
        assert cluster.list(Namespace) == ()


class TestNamespaces:
    def test_one_that_is_missing_is_created_with_its_name_as_label(self) -> None:
        cluster = InMemoryCluster([pod(namespace="team")])
        team = cluster.get(Namespace, "team")
        assert team is not None
        assert team.labels == {"kubernetes.io/metadata.name": "team"}

    def test_one_that_is_added_gets_the_label_too(self) -> None:
        namespace = Namespace(metadata=ObjectMeta(name="team", labels=FrozenDict({"tier": "gold"})))
        assert InMemoryCluster().add(namespace).labels == {
            "tier": "gold",
            "kubernetes.io/metadata.name": "team",
        }

    def test_one_that_is_only_implied_may_be_added_once(self) -> None:
        cluster = InMemoryCluster([pod(namespace="team")])
        implied = cluster.get(Namespace, "team")
        namespace = Namespace(metadata=ObjectMeta(name="team", labels=FrozenDict({"tier": "gold"})))
        added = cluster.add(namespace)
        assert implied is not None
        assert added.uid == implied.uid
        assert added.labels["tier"] == "gold"
        with pytest.raises(AlreadyExistsError):
            cluster.add(namespace)


class TestUpdate:
    def test_of_what_does_not_exist(self) -> None:
        with pytest.raises(NotFoundError, match="Pod default/web doesn't exist"):
            InMemoryCluster().update(pod())

    def test_keeps_the_uid(self) -> None:
        cluster = InMemoryCluster([node()])
        before = cluster.list(Node)[0]
        after = cluster.update(Node(metadata=ObjectMeta(name="n1"), spec=NodeSpec(unschedulable=True)))
        assert after.spec.unschedulable
        assert after.uid == before.uid
        assert after.metadata.resource_version != before.metadata.resource_version

    def test_of_another_object_of_that_name(self) -> None:
        cluster = InMemoryCluster([pod(uid="new")])
        with pytest.raises(ConflictError, match="uid new, not old"):
            cluster.update(pod(uid="old"))

    def test_of_an_outdated_version(self) -> None:
        cluster = InMemoryCluster()
        first = cluster.add(node())
        cluster.update(attrs.evolve(first, spec=NodeSpec(unschedulable=True)))
        with pytest.raises(ConflictError, match="Node n1 has been modified"):
            cluster.update(attrs.evolve(first, spec=NodeSpec(unschedulable=False, provider_id="x")))

    def test_that_changes_nothing_is_no_write(self) -> None:
        cluster = InMemoryCluster([node()])
        version = cluster.resource_version
        assert cluster.update(node()).metadata.resource_version == str(version)
        assert cluster.resource_version == version


class TestDelete:
    def test_removes(self) -> None:
        cluster = InMemoryCluster([pod()])
        cluster.delete(pod())
        assert cluster.get(Pod, "default/web") is None
        with pytest.raises(NotFoundError):
            cluster.delete(pod())

    def test_does_not_remove_a_successor_of_the_same_name(self) -> None:
        cluster = InMemoryCluster([pod(uid="new")])
        with pytest.raises(ConflictError):
            cluster.delete(pod(uid="old"))

    def test_of_an_implied_namespace_lets_it_be_implied_again(self) -> None:
        cluster = InMemoryCluster([pod(namespace="team")])
        cluster.delete(Namespace(metadata=ObjectMeta(name="team")))
        cluster.add(pod("other", "team"))
        assert [n.name for n in cluster.list(Namespace)] == ["team"]

    def test_of_another_object_of_its_name_leaves_an_implied_namespace_implied(self) -> None:
        cluster = InMemoryCluster([pod(namespace="team"), node("team")])
        cluster.delete(node("team"))
        assert cluster.implied_namespaces == {"team"}
        cluster.add(Namespace(metadata=ObjectMeta(name="team")))


class TestBind:
    def test_sets_node_and_condition_and_ends_the_nomination(self) -> None:
        waiting = PodCondition("PodScheduled", "False", "Unschedulable", "no room")
        ready = PodCondition("Ready", "False")
        cluster = InMemoryCluster(
            [attrs.evolve(pod(), status=PodStatus(nominated_node_name="n2", conditions=(waiting, ready)))]
        )
        cluster.bind(pod(), "n1")
        bound = stored_pod(cluster)
        assert bound.node_name == "n1"
        assert bound.status.conditions == (PodCondition("PodScheduled", "True"), ready)
        assert bound.status.nominated_node_name == ""

    def test_copies_zone_and_region_of_the_node(self) -> None:
        zone = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}
        cluster = InMemoryCluster([node("n1", **zone, rack="r7"), pod(labels=FrozenDict({"app": "web"}))])
        cluster.bind(pod(), "n1")
        assert stored_pod(cluster).labels == {"app": "web", **zone}

    def test_of_a_pod_that_is_gone(self) -> None:
        with pytest.raises(NotFoundError):
            InMemoryCluster().bind(pod(), "n1")

    def test_of_a_pod_that_was_replaced(self) -> None:
        with pytest.raises(ConflictError, match="another one by now"):
            InMemoryCluster([pod(uid="new")]).bind(pod(uid="old"), "n1")

    def test_of_a_pod_that_is_bound_even_to_the_same_node(self) -> None:
        cluster = InMemoryCluster([pod()])
        cluster.bind(pod(), "n1")
        for target in ("n1", "n2"):
            with pytest.raises(ConflictError, match="already assigned to node 'n1'"):
                cluster.bind(pod(), target)

    def test_of_a_pod_that_is_being_deleted(self) -> None:
        cluster = InMemoryCluster([pod(deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))])
        with pytest.raises(ConflictError, match="is being deleted, cannot be assigned to a host"):
            cluster.bind(pod(), "n1")

    def test_of_a_gated_pod(self) -> None:
        cluster = InMemoryCluster(
            [attrs.evolve(pod(), spec=PodSpec(scheduling_gates=(PodSchedulingGate("q"),)))]
        )
        with pytest.raises(ConflictError, match="non-empty"):
            cluster.bind(pod(), "n1")


class TestPatchPodStatus:
    def test_condition_replaces_the_one_of_its_type(self) -> None:
        cluster = InMemoryCluster([pod()])
        for status in ("False", "True"):
            cluster.patch_pod_status(pod(), condition=PodCondition("PodScheduled", status))
        assert stored_pod(cluster).status.conditions == (PodCondition("PodScheduled", "True"),)

    def test_nomination_is_set_kept_and_taken_back(self) -> None:
        cluster = InMemoryCluster([pod()])
        cluster.patch_pod_status(pod(), nominated_node_name="n1")
        cluster.patch_pod_status(pod(), condition=PodCondition("PodScheduled", "False"))
        assert stored_pod(cluster).status.nominated_node_name == "n1"
        cluster.patch_pod_status(pod(), nominated_node_name="")
        assert stored_pod(cluster).status.nominated_node_name == ""

    def test_that_changes_nothing_is_no_write(self) -> None:
        cluster = InMemoryCluster([pod()])
        version = cluster.resource_version
        cluster.patch_pod_status(pod(), nominated_node_name="")
        assert cluster.resource_version == version

    def test_of_a_pod_that_is_gone(self) -> None:
        with pytest.raises(NotFoundError):
            InMemoryCluster().patch_pod_status(pod(), nominated_node_name="n1")


class TestEvents:
    def test_equal_ones_are_counted(self) -> None:
        cluster = InMemoryCluster()
        for message in ("no room", "no room", "no ports", "no room"):
            cluster.record_event(pod(), "Warning", "FailedScheduling", message)
        assert [(e.message, e.count) for e in cluster.events] == [("no room", 3), ("no ports", 1)]
        first = cluster.events[0]
        assert (first.kind, first.regarding, first.type, first.reason) == (
            "Pod",
            "default/web",
            "Warning",
            "FailedScheduling",
        )

    def test_the_oldest_go_when_there_are_too_many(self) -> None:
        cluster = InMemoryCluster(events_limit=2)
        for number in range(4):
            cluster.record_event(pod(), "Normal", "Scheduled", str(number))
        assert [e.message for e in cluster.events] == ["2", "3"]


def test_from_manifests_takes_everything_that_was_loaded() -> None:
    text = "\n---\n".join(
        [
            "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}",
            "{apiVersion: v1, kind: Node, metadata: {name: n1}}",
            "{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {tier: gold}}}",
        ]
    )
    text += "\n---\n{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: team}, "
    text += "spec: {containers: [{name: c, image: i}]}}"
    manifests = parse_manifests(text)
    assert not manifests.problems
    cluster = InMemoryCluster(manifests.objects())
    assert [pod.key for pod in cluster.list(Pod)] == ["team/web"]
    assert [node.key for node in cluster.list(Node)] == ["n1"]
    assert [namespace.labels["tier"] for namespace in cluster.list(Namespace)] == ["gold"]
    assert [service.key for service in cluster.list(Service)] == ["team/web"]


@attrs.frozen
class Gang(CustomResource):
    kind = CustomKind("example.com/v1", "Gang")

    metadata: ObjectMeta
    size: int = 1


@attrs.frozen
class Rack(CustomResource):
    kind = CustomKind("example.com/v1", "Rack", namespaced=False)

    metadata: ObjectMeta


class TestCustomKinds:
    GANGS = (
        "{apiVersion: example.com/v1, kind: Gang, metadata: {name: a}, size: 2}\n---\n"
        "{apiVersion: example.com/v1, kind: Gang, metadata: {name: b, namespace: team}}\n---\n"
        "{apiVersion: example.com/v1, kind: Rack, metadata: {name: a}}\n"
    )

    def test_their_objects_are_found_by_a_plugins_own_class(self) -> None:
        cluster = InMemoryCluster(parse_manifests(self.GANGS).objects())
        assert [gang.key for gang in cluster.list(Gang)] == ["default/a", "team/b"]
        assert [gang.key for gang in cluster.list(Gang, "default")] == ["default/a"]
        assert [rack.key for rack in cluster.list(Rack)] == ["a"]
        found = cluster.get(Gang, "default/a")
        assert found is not None
        assert found.size == 2
        assert cluster.get(Rack, "a") is not None
        assert cluster.get(Rack, "b") is None

    def test_two_plugins_may_read_one_kind_differently(self) -> None:
        @attrs.frozen
        class Other(CustomResource):
            kind = Gang.kind

            metadata: ObjectMeta

        cluster = InMemoryCluster(parse_manifests(self.GANGS).objects())
        assert [type(gang) for gang in cluster.list(Other)] == [Other, Other]
        assert len(cluster.list(Gang)) == 2

    def test_what_is_written_by_a_class_is_stored_and_announced_as_a_custom_object(self) -> None:
        cluster = InMemoryCluster()
        seen: list[tuple[EventType, Named]] = []
        cluster.watch(lambda event: seen.append((event.type, event.object)))
        added = cluster.add(Gang(ObjectMeta(name="a", namespace="default")))
        assert added.uid
        updated = cluster.update(attrs.evolve(added, size=5))
        cluster.delete(updated)
        assert [gang.size for gang in (added, updated)] == [1, 5]
        assert [kind for kind, obj in seen if isinstance(obj, CustomObject)] == [
            EventType.ADDED,
            EventType.MODIFIED,
            EventType.DELETED,
        ]
        assert cluster.list(Gang) == ()

    def test_lists_are_up_to_date_after_a_write(self) -> None:
        cluster = InMemoryCluster()
        assert cluster.list(Gang) == ()
        cluster.add(Gang(ObjectMeta(name="a")))
        assert [gang.key for gang in cluster.list(Gang)] == ["default/a"]

    def test_the_second_one_of_a_name_is_refused_by_its_kinds_name(self) -> None:
        cluster = InMemoryCluster(parse_manifests(self.GANGS).objects())
        with pytest.raises(AlreadyExistsError, match="Gang default/a already exists"):
            cluster.add(Gang(ObjectMeta(name="a", namespace="default")))

    def test_stale_updates_are_refused(self) -> None:
        cluster = InMemoryCluster()
        old = cluster.add(Gang(ObjectMeta(name="a")))
        cluster.update(attrs.evolve(old, size=2))
        with pytest.raises(ConflictError):
            cluster.update(attrs.evolve(old, size=3))


class TestJournal:
    def test_it_has_what_is_there_and_every_change_before_anybody_is_told(self) -> None:
        cluster = InMemoryCluster([node()])
        written: list[tuple[EventType, str]] = []
        known_when_told: list[int] = []
        cluster.watch(lambda _: known_when_told.append(len(written)))
        end = cluster.journal(lambda event: written.append((event.type, event.object.key)))
        cluster.add(pod())
        cluster.delete(pod())
        end()
        cluster.add(pod("later"))
        # The namespace of the first pod comes with it.
        assert written == [
            (EventType.ADDED, "n1"),
            (EventType.ADDED, "default"),
            (EventType.ADDED, "default/web"),
            (EventType.DELETED, "default/web"),
        ]
        assert known_when_told == [0, 3, 3, 4, 4]

    def test_it_is_part_of_the_write(self) -> None:
        cluster = InMemoryCluster()
        versions: list[tuple[str, int]] = []

        def write(event: WatchEvent) -> None:
            versions.append((event.object.metadata.resource_version, cluster.resource_version))

        cluster.journal(write)
        threads = [
            threading.Thread(target=lambda name=f"n{number}": cluster.add(node(name))) for number in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert versions == [(str(number), number) for number in range(1, 21)]

    def test_versions_can_be_counted_for_what_is_kept_elsewhere(self) -> None:
        cluster = InMemoryCluster([node()])
        assert cluster.next_version() == 2
        assert cluster.add(node("n2")).metadata.resource_version == "3"
