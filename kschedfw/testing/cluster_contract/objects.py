"""Checks of adding, finding, changing and deleting objects of any kind."""

from __future__ import annotations

import secrets

import attrs
import pytest

from kschedfw.api import FrozenDict, Node, ObjectMeta, Pod
from kschedfw.cluster import AlreadyExistsError, Cluster, ConflictError, NotFoundError
from kschedfw.testing.cluster_contract.subject import (
    ClusterSubject,
    Widget,
    WidgetSpec,
    eventually,
    gone,
    pod_in,
    present,
    remedy,
)


class ObjectChecks(ClusterSubject):
    """Checks of adding, finding, changing and deleting objects of any kind."""

    @remedy("`get` returns None for a key that nothing has; it raises no error.")
    def test_what_is_not_there_is_none(self, cluster: Cluster, namespace: str) -> None:
        assert cluster.get(Pod, f"{namespace}/web") is None
        if Node in self.kinds:
            assert cluster.get(Node, f"{namespace}-node") is None

    @remedy("`add` gives the object a uid and a resource version, and returns what `get` returns later.")
    def test_what_is_added_is_found_as_it_is_stored(self, cluster: Cluster, namespace: str) -> None:
        stored = cluster.add(pod_in(namespace))
        assert stored.uid
        assert stored.metadata.resource_version
        assert present(cluster, stored) == stored

    @remedy("`list` without a namespace returns each object of the kind once, with one those of it alone.")
    def test_a_list_has_all_objects_of_the_kind(self, cluster: Cluster, namespace: str) -> None:
        other = self.new_namespace(cluster)
        pods = [cluster.add(pod_in(where, name)) for where in (namespace, other) for name in "ab"]
        for pod in pods:
            present(cluster, pod)
        keys = [pod.key for pod in cluster.list(Pod)]
        assert {pod.key for pod in pods} <= set(keys)
        assert len(keys) == len(set(keys))
        assert {pod.key for pod in cluster.list(Pod, namespace)} == {f"{namespace}/a", f"{namespace}/b"}

    @remedy("`list` orders objects by when they were added; an update leaves an object in its place.")
    def test_lists_keep_their_order(self, cluster: Cluster, namespace: str) -> None:
        first, *_ = pods = [cluster.add(pod_in(namespace, name)) for name in "cab"]
        for pod in pods:
            present(cluster, pod)
        before = [pod.name for pod in cluster.list(Pod, namespace)]
        present(cluster, cluster.update(_labelled(first, "a", "b")))
        assert [pod.name for pod in cluster.list(Pod, namespace)] == before
        assert sorted(before) == ["a", "b", "c"]

    @remedy("Store nodes under their name alone: their key has no namespace.")
    def test_cluster_scoped_objects_have_no_namespace(self, cluster: Cluster) -> None:
        self.needs(Node)
        node = cluster.add(Node(ObjectMeta(f"contract-{secrets.token_hex(4)}")))
        assert node.key == node.name
        assert present(cluster, node).name == node.name
        cluster.delete(node)
        gone(cluster, node)

    @remedy("`get` and `list` hand out the same immutable object until it changes; a change makes a new one.")
    def test_what_was_handed_out_stays_as_it_is(self, cluster: Cluster, namespace: str) -> None:
        before = present(cluster, cluster.add(pod_in(namespace)))
        listed = cluster.list(Pod, namespace)
        after = present(cluster, cluster.update(_labelled(before, "a", "b")))
        assert "a" not in before.labels
        assert listed[0] is before
        assert after.labels["a"] == "b"

    @remedy("`add` raises AlreadyExistsError where an object of the kind has the key.")
    def test_a_name_is_taken_once(self, cluster: Cluster, namespace: str) -> None:
        cluster.add(pod_in(namespace))
        with pytest.raises(AlreadyExistsError):
            cluster.add(pod_in(namespace))

    @remedy("`update` keeps the stored uid and gives a new resource version.")
    def test_an_update_keeps_the_uid_and_has_a_version_of_its_own(
        self, cluster: Cluster, namespace: str
    ) -> None:
        before = present(cluster, cluster.add(pod_in(namespace)))
        after = cluster.update(_labelled(before, "a", "b"))
        assert after.labels == {"a": "b"}
        assert after.uid == before.uid
        assert after.metadata.resource_version != before.metadata.resource_version

    @remedy(
        "`update` compares the resource version with the stored one in the same step as it writes: ConflictError."
    )
    def test_an_update_of_an_earlier_state_is_a_conflict(self, cluster: Cluster, namespace: str) -> None:
        before = present(cluster, cluster.add(pod_in(namespace)))
        present(cluster, cluster.update(_labelled(before, "a", "b")))
        with pytest.raises(ConflictError):
            cluster.update(_labelled(before, "c", "d"))
        found = cluster.get(Pod, before.key)
        assert found is not None
        assert found.labels == {"a": "b"}

    @remedy("`update` compares no version where the object's `resource_version` is empty.")
    def test_an_update_without_a_version_is_unconditional(self, cluster: Cluster, namespace: str) -> None:
        before = present(cluster, cluster.add(pod_in(namespace)))
        present(cluster, cluster.update(_labelled(before, "a", "b")))
        forced = _labelled(before, "c", "d")
        forced = forced.with_metadata(attrs.evolve(forced.metadata, resource_version=""))
        assert present(cluster, cluster.update(forced)).labels == {"c": "d"}

    @remedy("`update` and `delete` raise NotFoundError where nothing has the key.")
    def test_an_update_of_what_is_gone(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        cluster.delete(pod)
        gone(cluster, pod)
        with pytest.raises(NotFoundError):
            cluster.update(_labelled(pod, "a", "b"))
        with pytest.raises(NotFoundError):
            cluster.delete(pod)

    @remedy("`update` and `delete` compare the object's uid with the stored one, and raise ConflictError.")
    def test_another_object_of_that_name_is_left_alone(self, cluster: Cluster, namespace: str) -> None:
        first = present(cluster, cluster.add(pod_in(namespace)))
        cluster.delete(first)
        gone(cluster, first)
        second = cluster.add(pod_in(namespace))
        assert second.uid != first.uid
        with pytest.raises(ConflictError):
            cluster.delete(first)
        with pytest.raises(ConflictError):
            cluster.update(_labelled(first, "a", "b"))
        assert present(cluster, second).labels == {}

    @remedy("Store objects of any kind, or leave Widget out of the contract's `kinds`.")
    def test_objects_of_custom_kinds(self, cluster: Cluster, namespace: str) -> None:
        self.needs(Widget)
        added = cluster.add(Widget(ObjectMeta("a", namespace), WidgetSpec(size=1)))
        assert added.spec.size == 1
        present(cluster, added)
        after = cluster.update(attrs.evolve(added, spec=WidgetSpec(size=2)))
        present(cluster, after)
        assert [each.spec.size for each in cluster.list(Widget, namespace)] == [2]
        with pytest.raises(ConflictError):
            cluster.update(attrs.evolve(added, spec=WidgetSpec(size=3)))
        cluster.delete(after)
        eventually(lambda: not cluster.list(Widget, namespace))


def _labelled(pod: Pod, key: str, value: str) -> Pod:
    return pod.with_metadata(attrs.evolve(pod.metadata, labels=FrozenDict({key: value})))
