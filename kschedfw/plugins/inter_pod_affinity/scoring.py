"""Preferred terms, the pod's own and existing pods': how strongly each domain draws the pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import numpy as np

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.pod_info import AffinityTerm, PodInfo, WeightedAffinityTerm
from kschedfw.framework.results import MAX_NODE_SCORE, IntArray
from kschedfw.plugins.inter_pod_affinity.terms import PreferredTerms


@attrs.frozen
class Attraction:
    """What pre_score writes: the sum of weights by topology key and domain, negative where the pod is repelled."""

    by_key: dict[str, dict[str, int]]

    def score(self, node_labels: Mapping[str, str]) -> int:
        score = 0
        for key, weights in self.by_key.items():
            domain = node_labels.get(key)
            if domain is not None:
                score += weights.get(domain, 0)
        return score


@attrs.frozen
class AttractionCounter:
    """Sums up weights over existing pods.

    A domain whose weights cancel each other out still counts as one that was found, as in kube-scheduler.
    """

    pod: Pod
    namespace_labels: Mapping[str, str]
    own: PreferredTerms
    hard_weight: int
    by_key: dict[str, dict[str, int]] = attrs.field(factory=dict)

    def count(self, nodes: Iterable[NodeInfo]) -> Attraction:
        """Look at all pods for the pod's own terms, else at those with terms of their own."""
        for info in nodes:
            labels = info.node.metadata.labels
            for existing in info.pods if self.own else info.pods_with_affinity:
                self._add_own_terms(existing.pod, labels)
                self._add_terms_of(existing, labels)
        return Attraction(self.by_key)

    def _add_own_terms(self, existing: Pod, node_labels: Mapping[str, str]) -> None:
        # These terms are resolved: they don't look at the labels of the existing pod's namespace.
        self._add_preferred(self.own.affinity, existing, EMPTY, node_labels, 1)
        self._add_preferred(self.own.anti_affinity, existing, EMPTY, node_labels, -1)

    def _add_terms_of(self, existing: PodInfo, node_labels: Mapping[str, str]) -> None:
        pod, spaces = self.pod, self.namespace_labels
        if self.hard_weight > 0:
            for term in existing.required_affinity_terms:
                self._add(term, self.hard_weight, pod, spaces, node_labels)
        self._add_preferred(existing.preferred_affinity_terms, pod, spaces, node_labels, 1)
        self._add_preferred(existing.preferred_anti_affinity_terms, pod, spaces, node_labels, -1)

    def _add_preferred(
        self,
        terms: tuple[WeightedAffinityTerm, ...],
        pod: Pod,
        namespace_labels: Mapping[str, str],
        node_labels: Mapping[str, str],
        sign: int,
    ) -> None:
        for weighted in terms:
            self._add(weighted.term, sign * weighted.weight, pod, namespace_labels, node_labels)

    def _add(
        self,
        term: AffinityTerm,
        weight: int,
        pod: Pod,
        namespace_labels: Mapping[str, str],
        node_labels: Mapping[str, str],
    ) -> None:
        domain = node_labels.get(term.topology_key)
        if domain is not None and term.matches(pod, namespace_labels):
            weights = self.by_key.setdefault(term.topology_key, {})
            weights[domain] = weights.get(domain, 0) + weight


def normalized(scores: IntArray) -> IntArray:
    """The range from the lowest to the highest score stretched to 0–100; all 0 where there is no range.

    In float64 and in kube-scheduler's order of operations, then cut off: 100 × 0.29 is 28 to both.
    """
    lowest = int(scores.min())
    spread = int(scores.max()) - lowest
    if not spread:
        return np.zeros_like(scores)
    fractions = (scores - lowest) / float(spread)
    return (float(MAX_NODE_SCORE) * fractions).astype(np.int64)
