"""Checks of binding pods once, and of refused bindings."""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress

import attrs
import pytest

from kschedfw.api import FrozenDict, Node, ObjectMeta, Pod, PodCondition
from kschedfw.cluster import Cluster, ClusterError, ConflictError, NotFoundError
from kschedfw.testing.cluster_contract.subject import (
    ClusterSubject,
    eventually,
    gone,
    pod_in,
    present,
    remedy,
)

_UNSCHEDULABLE = PodCondition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")
_ZONE = "topology.kubernetes.io/zone"
_THREADS = 8


class PodChecks(ClusterSubject):
    """Checks of binding, conditions and nominations."""

    @remedy(
        "`bind` sets the node's name and the condition PodScheduled, and clears the nomination, in one write."
    )
    def test_a_bound_pod_is_on_its_node(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        cluster.patch_pod_status(pod, condition=_UNSCHEDULABLE, nominated_node_name="n9")
        eventually(lambda: _now(cluster, pod).status.nominated_node_name)
        cluster.bind(pod, "n1")
        eventually(lambda: _now(cluster, pod).node_name)
        bound = _now(cluster, pod)
        assert bound.node_name == "n1"
        assert bound.status.nominated_node_name == ""
        assert _conditions(bound)["PodScheduled"].status == "True"

    @remedy(
        "`bind` copies the node's labels of zone and region to the pod, as kube-apiserver does (PodTopologyLabels)."
    )
    def test_a_bound_pod_has_its_nodes_zone(self, cluster: Cluster, namespace: str) -> None:
        self.needs(Node)
        labels = FrozenDict({_ZONE: "z1"})
        node = present(cluster, cluster.add(Node(ObjectMeta(f"n-{secrets.token_hex(4)}", labels=labels))))
        pod = present(cluster, cluster.add(pod_in(namespace)))
        cluster.bind(pod, node.name)
        eventually(lambda: _now(cluster, pod).node_name)
        assert _now(cluster, pod).labels.get(_ZONE) == "z1"
        cluster.delete(node)

    @remedy(
        "`bind` raises ConflictError for a pod that has another node; write only if the stored pod has none."
    )
    def test_a_pod_is_bound_once(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        cluster.bind(pod, "n1")
        # To the same node again: kube-apiserver refuses it, another cluster may take it for a repetition.
        with suppress(ConflictError):
            cluster.bind(pod, "n1")
        with pytest.raises(ConflictError):
            cluster.bind(pod, "n2")
        eventually(lambda: _now(cluster, pod).node_name)
        assert _now(cluster, pod).node_name == "n1"

    @remedy(
        "`bind` tests and sets the node in one step, by a lock or a conditional write (UPDATE … WHERE node IS NULL)."
    )
    def test_of_many_that_bind_a_pod_one_succeeds(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        succeeded: list[str] = []
        refused: list[BaseException] = []

        def bind(node_name: str) -> None:
            try:
                cluster.bind(pod, node_name)
            except ClusterError as error:
                refused.append(error)
            else:
                succeeded.append(node_name)

        threads = [threading.Thread(target=bind, args=(f"n{number}",)) for number in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == _THREADS - 1
        assert [error for error in refused if not isinstance(error, ConflictError)] == []
        eventually(lambda: _now(cluster, pod).node_name)
        assert [_now(cluster, pod).node_name] == succeeded

    @remedy("`bind` raises NotFoundError where nothing has the pod's key.")
    def test_a_pod_that_is_gone_cannot_be_bound(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        cluster.delete(pod)
        gone(cluster, pod)
        with pytest.raises(NotFoundError):
            cluster.bind(pod, "n1")

    @remedy("`bind` compares the pod's uid with the stored one, and raises ConflictError.")
    def test_another_pod_of_that_name_is_not_bound(self, cluster: Cluster, namespace: str) -> None:
        first = present(cluster, cluster.add(pod_in(namespace)))
        cluster.delete(first)
        gone(cluster, first)
        second = present(cluster, cluster.add(pod_in(namespace)))
        with pytest.raises(ConflictError):
            cluster.bind(first, "n1")
        assert _now(cluster, second).node_name == ""

    @remedy("`bind` raises ConflictError for a pod with scheduling gates.")
    def test_a_gated_pod_is_not_bound(self, cluster: Cluster, namespace: str) -> None:
        gated = pod_in(namespace, schedulingGates=[{"name": "example.com/quota"}])
        pod = present(cluster, cluster.add(gated))
        with pytest.raises(ConflictError):
            cluster.bind(pod, "n1")

    @remedy("`patch_pod_status` replaces the condition of the same type and keeps those of others.")
    def test_conditions_are_set_one_by_one(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        disrupted = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", "to make room")
        again = attrs.evolve(_UNSCHEDULABLE, message="0/4 nodes are available")
        for condition in (_UNSCHEDULABLE, disrupted, again):
            cluster.patch_pod_status(pod, condition=condition)
        eventually(lambda: _conditions(_now(cluster, pod)).get("PodScheduled") == again)
        assert _conditions(_now(cluster, pod)) == {"PodScheduled": again, "DisruptionTarget": disrupted}

    @remedy("`patch_pod_status` leaves the nomination as it is for None, and clears it for an empty text.")
    def test_a_nomination_stays_until_it_is_taken_back(self, cluster: Cluster, namespace: str) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        cluster.patch_pod_status(pod, nominated_node_name="n1")
        cluster.patch_pod_status(pod, condition=_UNSCHEDULABLE)
        eventually(lambda: _conditions(_now(cluster, pod)))
        assert _now(cluster, pod).status.nominated_node_name == "n1"
        cluster.patch_pod_status(pod, nominated_node_name="")
        eventually(lambda: not _now(cluster, pod).status.nominated_node_name)
        assert _conditions(_now(cluster, pod)) == {"PodScheduled": _UNSCHEDULABLE}

    @remedy(
        "`patch_pod_status` raises NotFoundError where nothing has the key, and ConflictError where the uid differs."
    )
    def test_the_status_of_another_pod_is_left_alone(self, cluster: Cluster, namespace: str) -> None:
        first = present(cluster, cluster.add(pod_in(namespace)))
        cluster.delete(first)
        gone(cluster, first)
        with pytest.raises(NotFoundError):
            cluster.patch_pod_status(first, condition=_UNSCHEDULABLE)
        second = present(cluster, cluster.add(pod_in(namespace)))
        with pytest.raises(ConflictError):
            cluster.patch_pod_status(first, condition=_UNSCHEDULABLE)
        assert _conditions(_now(cluster, second)) == {}

    @remedy("`record_event` never raises: it cuts texts that are too long, and takes objects that are gone.")
    def test_events_are_recorded_of_what_is_there_and_of_what_is_gone(
        self, cluster: Cluster, namespace: str
    ) -> None:
        pod = present(cluster, cluster.add(pod_in(namespace)))
        cluster.record_event(pod, "Warning", "FailedScheduling", "0/3 nodes are available")
        cluster.delete(pod)
        gone(cluster, pod)
        # Longer than the note of an event may be in Kubernetes, 1,024 bytes; it may be cut, but nothing fails.
        cluster.record_event(pod, "Normal", "Preempted", "x" * 10_000)


def _now(cluster: Cluster, pod: Pod) -> Pod:
    found = cluster.get(Pod, pod.key)
    assert found is not None
    return found


def _conditions(pod: Pod) -> dict[str, PodCondition]:
    return {condition.type: condition for condition in pod.status.conditions}
