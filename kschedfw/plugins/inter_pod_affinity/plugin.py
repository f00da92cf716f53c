"""The hooks of InterPodAffinity.

Semantics: kube-scheduler v1.36 `interpodaffinity`; KEP-2249 (namespaceSelector). matchLabelKeys and mismatchLabelKeys
(KEP-3633) are part of the label selectors already when pods get here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.results import IntArray
from kschedfw.framework.status import Status
from kschedfw.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from kschedfw.plugins.inter_pod_affinity.filtering import RequiredState
from kschedfw.plugins.inter_pod_affinity.hints import AffinityHints
from kschedfw.plugins.inter_pod_affinity.scoring import Attraction, AttractionCounter, normalized
from kschedfw.plugins.inter_pod_affinity.terms import (
    PreferredTerms,
    RequiredTerms,
    namespace_labels,
    parse_error,
)

REQUIRED = StateKey[RequiredState]("InterPodAffinity.required")
PREFERRED = StateKey[Attraction]("InterPodAffinity.preferred")


class InterPodAffinity(Plugin[InterPodAffinityArgs]):
    """Places a pod in domains with pods that it wants near, and without pods that it avoids or that avoid it.

    Required terms filter, preferred ones score. Terms of existing pods count, too: their required anti-affinity
    filters, and all their other terms score.
    """

    name = "InterPodAffinity"
    args_type = InterPodAffinityArgs
    reads = Reads.CLUSTER

    def sign(self, pod: Pod) -> Hashable | None:
        # Resolved terms and the namespace's labels, since namespaces may change without a change of nodes or pods.
        cluster = self.handle.cluster
        return (
            pod.namespace,
            pod.labels,
            frozenset(namespace_labels(pod, cluster).items()),
            RequiredTerms.of(pod, cluster),
            PreferredTerms.of(pod, cluster),
        )

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        if (error := parse_error(pod)) is not None:
            return Status.unresolvable(f"parsing pod: {error}")
        cluster = self.handle.cluster
        required = RequiredState(pod, namespace_labels(pod, cluster), RequiredTerms.of(pod, cluster))
        required.count(nodes, self.handle.snapshot.with_required_anti_affinity)
        if not required.terms and not required.averse:
            return Status.skip()
        state.write(REQUIRED, required)
        return None

    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, pod_info_to_add: PodInfo, node_info: NodeInfo) -> None:
        state.read(REQUIRED).change(pod_info_to_add, node_info.node.metadata.labels, 1)

    @hookimpl
    def pre_filter_remove_pod(
        self, state: CycleState, pod_info_to_remove: PodInfo, node_info: NodeInfo
    ) -> None:
        state.read(REQUIRED).change(pod_info_to_remove, node_info.node.metadata.labels, -1)

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        return state.read(REQUIRED).refusal(node_info.node.metadata.labels)

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        cluster, snapshot = self.handle.cluster, self.handle.snapshot
        own = PreferredTerms.of(pod, cluster)
        if self.args.ignore_preferred_terms_of_existing_pods and not own:
            return Status.skip()
        if (error := parse_error(pod)) is not None:
            return Status.from_error(f"failed to parse pod: {error}")
        counter = AttractionCounter(
            pod, namespace_labels(pod, cluster), own, self.args.hard_pod_affinity_weight
        )
        # Without own terms, only nodes matter that have pods with terms.
        attraction = counter.count(snapshot.node_infos if own else snapshot.with_affinity)
        if not attraction.by_key:
            return Status.skip()
        state.write(PREFERRED, attraction)
        return None

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        return state.read(PREFERRED).score(node_info.node.metadata.labels)

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        return normalized(scores)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return AffinityHints(self.handle.cluster).events()
