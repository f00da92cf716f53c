"""The terms of the pod to be scheduled, and the namespaces they mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod, PodAffinity, PodAffinityTerm
from kschedfw.api.selectors import NOTHING
from kschedfw.api.workloads import Namespace
from kschedfw.framework.handle import ClusterClient
from kschedfw.framework.pod_info import (
    AffinityTerm,
    WeightedAffinityTerm,
    preferred_terms,
    required_terms,
)
from kschedfw.plugins._label_selectors import joined, selector_error


def namespace_labels(pod: Pod, cluster: ClusterClient) -> Mapping[str, str]:
    """The labels of the pod's namespace; none where the namespace isn't known (yet)."""
    namespace = cluster.get(Namespace, pod.namespace)
    return EMPTY if namespace is None else namespace.labels


@attrs.frozen
class RequiredTerms:
    """Must all hold: some pod near by for every affinity term, none for any anti-affinity term."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()

    @classmethod
    def of(cls, pod: Pod, cluster: ClusterClient) -> RequiredTerms:
        affinity = pod.spec.affinity
        return cls(
            tuple(_resolved(term, cluster) for term in required_terms(affinity.pod_affinity, pod)),
            tuple(_resolved(term, cluster) for term in required_terms(affinity.pod_anti_affinity, pod)),
        )

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity)


@attrs.frozen
class PreferredTerms:
    """Each draws with its weight, or repels."""

    affinity: tuple[WeightedAffinityTerm, ...] = ()
    anti_affinity: tuple[WeightedAffinityTerm, ...] = ()

    @classmethod
    def of(cls, pod: Pod, cluster: ClusterClient) -> PreferredTerms:
        affinity = pod.spec.affinity
        return cls(
            tuple(_resolved_weighted(preferred_terms(affinity.pod_affinity, pod), cluster)),
            tuple(_resolved_weighted(preferred_terms(affinity.pod_anti_affinity, pod), cluster)),
        )

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity)


def matches(term: AffinityTerm, pod: Pod) -> bool:
    """Whether the pod is what a resolved term asks for."""
    return term.matches(pod, EMPTY)


def matches_all(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    """Whether there are resolved terms and the pod is what all of them ask for."""
    for term in terms:  # not all(…): this runs for every pod of the cluster
        if not term.matches(pod, EMPTY):
            return False
    return bool(terms)


def parse_error(pod: Pod) -> str | None:
    """What is wrong with the selectors in the pod's terms, if something is."""
    affinity = pod.spec.affinity
    near = affinity.pod_affinity or _NONE
    far = affinity.pod_anti_affinity or _NONE
    lists = {
        "requiredAffinityTerms": near.required,
        "requiredAntiAffinityTerms": far.required,
        "preferredAffinityTerms": [weighted.pod_affinity_term for weighted in near.preferred],
        "preferredAntiAffinityTerms": [weighted.pod_affinity_term for weighted in far.preferred],
    }
    errors = [
        f"{name}: {error}" for name, terms in lists.items() if (error := _first_error(terms)) is not None
    ]
    return joined(errors) if errors else None


_NONE = PodAffinity()


def _first_error(terms: Iterable[PodAffinityTerm]) -> str | None:
    selectors = (selector for term in terms for selector in (term.label_selector, term.namespace_selector))
    return next((error for selector in selectors if (error := selector_error(selector)) is not None), None)


def _resolved(term: AffinityTerm, cluster: ClusterClient) -> AffinityTerm:
    """The term with the namespaces listed that its namespace selector selects now.

    After that it can be matched without the labels of each existing pod's namespace.
    """
    selector = term.namespace_selector
    if selector.nothing or selector.everything:
        return term
    selected = {space.name for space in cluster.list(Namespace) if selector.matches(space.labels)}
    return attrs.evolve(term, namespaces=term.namespaces | selected, namespace_selector=NOTHING)


def _resolved_weighted(
    terms: Iterable[WeightedAffinityTerm], cluster: ClusterClient
) -> Iterator[WeightedAffinityTerm]:
    for weighted in terms:
        yield WeightedAffinityTerm(_resolved(weighted.term, cluster), weighted.weight)
