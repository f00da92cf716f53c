"""ServiceAffinity: places a service's pods on nodes with equal labels, or spreads them over labels (until v1.22)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from kschedfw import (
    MAX_NODE_SCORE,
    ClusterClient,
    CycleState,
    IntArray,
    NodeInfo,
    Plugin,
    Pod,
    PodInfo,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw.api import EMPTY, Service

_ELSEWHERE = Status.unschedulable("node(s) didn't match service affinity")


@attrs.frozen
class Siblings:
    """The pods of the pod's namespace that have its labels, as pairs of uid and node name, in the snapshot's order.

    `in_service` is true if some service selects the pod.
    """

    in_service: bool
    pods: tuple[tuple[str, str], ...]


_SIBLINGS = StateKey[Siblings]("ServiceAffinity.siblings")


@attrs.frozen
class ServiceAffinityArgs:
    """Labels whose values a service's pods share, and labels over whose values they are spread."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class ServiceAffinity(Plugin[ServiceAffinityArgs]):
    """Refuses nodes whose affinity labels differ from those of the node with the first pod of the same service.

    A value in the pod's `nodeSelector` takes precedence. Other nodes score higher if fewer pods of the service are on
    nodes with the same values of the anti-affinity labels. Services and the nodes of other pods are looked up by the
    handle, so no hook is pure.
    """

    name: ClassVar[str] = "ServiceAffinity"
    args_type: ClassVar[type[object] | None] = ServiceAffinityArgs
    # Services may change without a change of nodes or pods. So the plugin has no signature.
    reads: ClassVar[Reads | None] = Reads.CLUSTER

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        if not self.args.affinity_labels:
            return Status.skip()
        pods = tuple(
            (other.pod.uid, info.name)
            for info in self.handle.snapshot.node_infos
            for other in info.pods
            if _is_sibling(pod, other.pod)
        )
        state.write(_SIBLINGS, Siblings(bool(services_of(pod, self.handle.cluster)), pods))
        return None

    @hookimpl
    def pre_filter_add_pod(
        self, state: CycleState, pod: Pod, pod_info_to_add: PodInfo, node_info: NodeInfo
    ) -> None:
        if _is_sibling(pod, pod_info_to_add.pod):
            siblings = state.read(_SIBLINGS)
            added = (pod_info_to_add.pod.uid, node_info.name)
            state.write(_SIBLINGS, attrs.evolve(siblings, pods=(*siblings.pods, added)))

    @hookimpl
    def pre_filter_remove_pod(self, state: CycleState, pod_info_to_remove: PodInfo) -> None:
        siblings = state.read(_SIBLINGS)
        uid = pod_info_to_remove.pod.uid
        state.write(
            _SIBLINGS, attrs.evolve(siblings, pods=tuple(each for each in siblings.pods if each[0] != uid))
        )

    @hookimpl
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
        siblings = state.read(_SIBLINGS)
        selector = pod.spec.node_selector
        wanted = {label: selector[label] for label in self.args.affinity_labels if label in selector}
        if len(wanted) < len(self.args.affinity_labels) and siblings.in_service and siblings.pods:
            _, name = siblings.pods[0]
            labels = self.handle.snapshot.get(name).node.labels
            for label in self.args.affinity_labels:
                if label in labels:
                    # The pod's own `nodeSelector` is in `wanted` already and takes precedence.
                    wanted.setdefault(label, labels[label])
        own = node_info.node.labels
        return None if all(own.get(label) == value for label, value in wanted.items()) else _ELSEWHERE

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        """Return how many pods of the pod's first service are on the node."""
        # Look the services up for every node: the plugin has no pre_score that could write them to the state.
        services = services_of(pod, self.handle.cluster)
        selector = services[0].spec.selector if services else EMPTY
        if not selector:
            return 0
        return sum(
            other.pod.namespace == pod.namespace
            and other.pod.metadata.deletion_timestamp is None
            and _has(other.pod.labels, selector)
            for other in node_info.pods
        )

    @hookimpl
    def normalize_score(self, nodes: Sequence[NodeInfo], scores: IntArray) -> IntArray:
        """Score each node by the share of pods on nodes with another value of the label, averaged over the labels."""
        labels = self.args.anti_affinity_labels_preference
        total = int(scores.sum())
        shares = [0.0] * len(nodes)
        for label in labels:
            values = [info.node.labels.get(label) for info in nodes]
            counts: dict[str | None, int] = defaultdict(int)
            for value, count in zip(values, scores, strict=True):
                counts[value] += int(count)
            for index, value in enumerate(values):
                if value is not None:
                    share = (total - counts[value]) / total if total else 1.0
                    shares[index] += MAX_NODE_SCORE * share / len(labels)
        scores[:] = [int(share) for share in shares]
        return scores


def _is_sibling(pod: Pod, other: Pod) -> bool:
    # Pods that are being deleted count here, as in v1.20, and only scores leave them out.
    return other.namespace == pod.namespace and _has(other.labels, pod.labels)


def _has(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def services_of(pod: Pod, cluster: ClusterClient) -> Sequence[Service]:
    """Return the services of the pod's namespace that select the pod. A service without a selector selects no pods."""
    labels = pod.labels
    return [
        service
        for service in cluster.list(Service, pod.namespace)
        if (selector := service.spec.selector)
        and all(labels.get(key) == value for key, value in selector.items())
    ]
