"""A pod with what scheduling derives from it once (kube-scheduler `PodInfo`, `QueuedPodInfo`)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedfw.api.pod import Pod, PodAffinity, PodAffinityTerm
from kschedfw.api.requests import PodRequests
from kschedfw.api.selectors import NOTHING, Selector, as_selector


@attrs.frozen
class AffinityTerm:
    """A pod (anti-)affinity term with its selectors compiled and its default namespace filled in."""

    namespaces: frozenset[str]
    selector: Selector
    topology_key: str
    namespace_selector: Selector

    @classmethod
    def of(cls, term: PodAffinityTerm, pod: Pod) -> AffinityTerm:
        namespaces = frozenset(term.namespaces)
        if not namespaces and term.namespace_selector is None:
            namespaces = frozenset({pod.namespace})
        return cls(
            namespaces=namespaces,
            selector=as_selector(term.label_selector),
            topology_key=term.topology_key,
            namespace_selector=NOTHING
            if term.namespace_selector is None
            else term.namespace_selector.compile(),
        )

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term selects the pod, given the labels of that pod's namespace."""
        if pod.namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(pod.labels)


@attrs.frozen
class WeightedAffinityTerm:
    term: AffinityTerm
    weight: int


def required_terms(affinity: PodAffinity | None, pod: Pod) -> tuple[AffinityTerm, ...]:
    return () if affinity is None else tuple(AffinityTerm.of(term, pod) for term in affinity.required)


def preferred_terms(affinity: PodAffinity | None, pod: Pod) -> tuple[WeightedAffinityTerm, ...]:
    if affinity is None:
        return ()
    return tuple(
        WeightedAffinityTerm(AffinityTerm.of(weighted.pod_affinity_term, pod), weighted.weight)
        for weighted in affinity.preferred
    )


@attrs.frozen(eq=False)
class PodInfo:
    """A pod, its requests and its compiled affinity terms."""

    pod: Pod
    requests: PodRequests
    required_affinity_terms: tuple[AffinityTerm, ...] = ()
    required_anti_affinity_terms: tuple[AffinityTerm, ...] = ()
    preferred_affinity_terms: tuple[WeightedAffinityTerm, ...] = ()
    preferred_anti_affinity_terms: tuple[WeightedAffinityTerm, ...] = ()

    @classmethod
    def of(cls, pod: Pod) -> PodInfo:
        affinity = pod.spec.affinity
        return cls(
            pod=pod,
            requests=pod.requests,
            required_affinity_terms=required_terms(affinity.pod_affinity, pod),
            required_anti_affinity_terms=required_terms(affinity.pod_anti_affinity, pod),
            preferred_affinity_terms=preferred_terms(affinity.pod_affinity, pod),
            preferred_anti_affinity_terms=preferred_terms(affinity.pod_anti_affinity, pod),
        )

    @property
    def has_affinity(self) -> bool:
        """Whether the pod has any pod affinity or anti-affinity term, required or preferred."""
        return bool(
            self.required_affinity_terms
            or self.required_anti_affinity_terms
            or self.preferred_affinity_terms
            or self.preferred_anti_affinity_terms
        )


@attrs.define(eq=False)
class QueuedPodInfo:
    """A pod in the queue: when it came (seconds on the scheduler's clock) and how often it was tried."""

    pod_info: PodInfo
    timestamp: float = 0.0
    attempts: int = 0

    @property
    def pod(self) -> Pod:
        return self.pod_info.pod
