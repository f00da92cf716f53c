"""Required terms: in which domains they are met or broken, and which nodes that rules out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.status import Status
from kschedfw.plugins.inter_pod_affinity.terms import RequiredTerms, matches, matches_all

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

# Shared, since a refusal per node and pod would otherwise be the plugin's dearest part. Evicting pods can't make
# company for the pod, but it can make room from pods that it avoids or that avoid it.
_NO_COMPANY = Status.unresolvable(REASON_AFFINITY)
_BAD_COMPANY = Status.unschedulable(REASON_ANTI_AFFINITY)
_UNWELCOME = Status.unschedulable(REASON_EXISTING_ANTI_AFFINITY)


class DomainCounts:
    """Matches of terms with pods, by topology key and domain. Only what isn't 0 is kept."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[str, dict[str, int]] = {}

    def add(self, topology_key: str, node_labels: Mapping[str, str], by: int) -> None:
        """Count a match in the node's domain; a node without the label has none."""
        domain = node_labels.get(topology_key)
        if domain is None:
            return
        counts = self._by_key.setdefault(topology_key, {})
        counts[domain] = counts.get(domain, 0) + by
        if not counts[domain]:
            del counts[domain]
            if not counts:
                del self._by_key[topology_key]

    def any_at(self, topology_key: str, domain: str) -> bool:
        counts = self._by_key.get(topology_key)
        return counts is not None and counts.get(domain, 0) > 0

    def any_around(self, node_labels: Mapping[str, str]) -> bool:
        """Whether there is a match in any of the node's domains."""
        for key, counts in self._by_key.items():
            domain = node_labels.get(key)
            if domain is not None and counts.get(domain, 0) > 0:
                return True
        return False

    def clone(self) -> DomainCounts:
        copy = DomainCounts()
        copy._by_key = {key: dict(counts) for key, counts in self._by_key.items()}
        return copy

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DomainCounts) and self._by_key == other._by_key

    __hash__ = None  # type: ignore[assignment]  # it changes


@attrs.frozen
class RequiredState:
    """What pre_filter writes: the pod's required terms, and where pods are that matter to them, or mind the pod."""

    pod: Pod
    namespace_labels: Mapping[str, str]
    terms: RequiredTerms
    wanted: DomainCounts = attrs.field(factory=DomainCounts)
    """Pods that match all affinity terms, once for each term."""
    avoided: DomainCounts = attrs.field(factory=DomainCounts)
    """Pods that match an anti-affinity term."""
    averse: DomainCounts = attrs.field(factory=DomainCounts)
    """Existing pods' anti-affinity terms that match the pod."""

    def count(self, nodes: Iterable[NodeInfo], nodes_with_anti_affinity: Iterable[NodeInfo]) -> None:
        """Look at every pod on the nodes that may matter."""
        for info in nodes_with_anti_affinity:
            labels = info.node.metadata.labels
            for existing in info.pods_with_required_anti_affinity:
                self._count_aversions(existing, labels, 1)
        if not self.terms:
            return
        for info in nodes:
            labels = info.node.metadata.labels
            for existing in info.pods:
                self._count_matches(existing.pod, labels, 1)

    def change(self, existing: PodInfo, node_labels: Mapping[str, str], by: int) -> None:
        """Count a pod that came to the node (1) or left it (-1)."""
        self._count_aversions(existing, node_labels, by)
        self._count_matches(existing.pod, node_labels, by)

    def refusal(self, node_labels: Mapping[str, str]) -> Status | None:
        """Why the pod can't go to a node with these labels, if it can't."""
        if self.terms.affinity and not self._has_company(node_labels):
            return _NO_COMPANY
        for term in self.terms.anti_affinity:
            domain = node_labels.get(term.topology_key)
            if domain is not None and self.avoided.any_at(term.topology_key, domain):
                return _BAD_COMPANY
        if self.averse.any_around(node_labels):
            return _UNWELCOME
        return None

    def clone(self) -> RequiredState:
        return attrs.evolve(
            self, wanted=self.wanted.clone(), avoided=self.avoided.clone(), averse=self.averse.clone()
        )

    def _has_company(self, node_labels: Mapping[str, str]) -> bool:
        met = True
        for term in self.terms.affinity:
            domain = node_labels.get(term.topology_key)
            if domain is None:
                return False
            met = met and self.wanted.any_at(term.topology_key, domain)
        # The first of a group of pods that want to be together has nobody to join, wherever it goes.
        return met or (not self.wanted and matches_all(self.terms.affinity, self.pod))

    def _count_aversions(self, existing: PodInfo, node_labels: Mapping[str, str], by: int) -> None:
        for term in existing.required_anti_affinity_terms:
            if term.matches(self.pod, self.namespace_labels):
                self.averse.add(term.topology_key, node_labels, by)

    def _count_matches(self, existing: Pod, node_labels: Mapping[str, str], by: int) -> None:
        if matches_all(self.terms.affinity, existing):
            for term in self.terms.affinity:
                self.wanted.add(term.topology_key, node_labels, by)
        for term in self.terms.anti_affinity:
            if matches(term, existing):
                self.avoided.add(term.topology_key, node_labels, by)
