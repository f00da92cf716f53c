"""The affinity terms of the pod to be scheduled, with their namespace selectors resolved."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import attrs

from kschedfw import ClusterClient, FrozenDict, Pod
from kschedfw.api import EMPTY, BoundedDict, Namespace, PodAffinity, PodAffinityTerm, Selector
from kschedfw.api.selectors import NOTHING
from kschedfw.framework.nodes.pod_info import (
    AffinityTerm,
    AffinityTerms,
    WeightedAffinityTerm,
    affinity_terms,
)
from kschedfw.plugins._label_selectors import joined, selector_error

_MOST_KEPT = 10_000


def namespace_labels(pod: Pod, cluster: ClusterClient) -> FrozenDict[str, str]:
    """Return the labels of the pod's namespace; none if the namespace isn't known (yet)."""
    namespace = cluster.get(Namespace, pod.metadata.namespace)
    return EMPTY if namespace is None else namespace.metadata.labels


@attrs.frozen(cache_hash=True)
class TermQuery:
    """The query for pods that match all of several terms, which are resolved."""

    terms: tuple[AffinityTerm, ...]

    @property
    def selector(self) -> Selector:
        return self.terms[0].selector

    @property
    def label_keys(self) -> frozenset[str]:
        first, *others = self.terms
        return first.label_keys.union(*[term.label_keys for term in others])

    def matches(self, pod: Pod) -> bool:
        # A generator takes twice as long, and a query may be asked about thousands of pods.
        for term in self.terms:  # noqa: SIM110
            if not term.matches(pod):
                return False
        return True


@attrs.define(eq=False)
class OwnTerms:
    """All terms of a pod. Pods with equal affinities in a namespace share the object.

    The required ones must all hold: one pod nearby matches all terms of `affinity`, and no pod matches a term of
    `anti_affinity`. `preferred` terms attract, those with negative weights repel. `error` is the error in their
    selectors, None if they are valid.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedAffinityTerm, ...] = ()
    error: str | None = None
    company: AffinityTerm | TermQuery | None = attrs.field(init=False)
    """The query for the pods that match all terms of `affinity`; None if there are none."""
    look_at_namespaces: bool = attrs.field(init=False)
    """True if a term has a namespace selector, so that the labels of all namespaces are needed."""
    _resolved: OwnTerms | None = attrs.field(default=None, init=False)
    """The terms as resolved for the latest namespaces."""
    _namespaces: Sequence[Namespace] = attrs.field(default=(), init=False)

    @company.default
    def _company(self) -> AffinityTerm | TermQuery | None:
        if len(self.affinity) > 1:
            return TermQuery(self.affinity)
        return self.affinity[0] if self.affinity else None

    @look_at_namespaces.default
    def _look_at_namespaces(self) -> bool:
        preferred = [each.term for each in self.preferred]
        return any(each.looks_at_namespaces for each in (*self.affinity, *self.anti_affinity, *preferred))

    @classmethod
    def of(cls, pod: Pod, terms: AffinityTerms) -> OwnTerms:
        """Return the pod's compiled terms, whose namespace selectors must still be resolved."""
        affinity = pod.spec.affinity
        repelling = [WeightedAffinityTerm(each.term, -each.weight) for each in terms.preferred_anti_affinity]
        return cls(
            terms.required_affinity,
            terms.required_anti_affinity,
            (*terms.preferred_affinity, *repelling),
            _parse_error(affinity.pod_affinity or _NO_AFFINITY, affinity.pod_anti_affinity or _NO_AFFINITY),
        )

    @property
    def company_keys(self) -> Collection[str]:
        """The topology keys of `affinity`, each once."""
        return dict.fromkeys([term.topology_key for term in self.affinity])

    @property
    def required(self) -> bool:
        """True if any term is required."""
        return bool(self.affinity or self.anti_affinity)

    def resolved(self, namespaces: Sequence[Namespace]) -> OwnTerms:
        """Return the terms with the namespaces listed that their namespace selectors select.

        Such terms can be matched without the labels of each existing pod's namespace.
        """
        resolved = self._resolved
        if resolved is None or namespaces != self._namespaces:
            resolved = self._resolved = OwnTerms(
                tuple([_resolved(term, namespaces) for term in self.affinity]),
                tuple([_resolved(term, namespaces) for term in self.anti_affinity]),
                tuple([attrs.evolve(each, term=_resolved(each.term, namespaces)) for each in self.preferred]),
                self.error,
            )
            self._namespaces = namespaces
        return resolved


NO_TERMS = OwnTerms()
_NO_AFFINITY = PodAffinity()


@attrs.define(eq=False)
class TermReader:
    """The terms of pods, by their compiled terms, which pods with equal affinities in a namespace share.

    Namespaces may change without any change of nodes or pods, so terms with namespace selectors are resolved
    for each pod, unless the namespaces are still the same.
    """

    cluster: ClusterClient
    _known: BoundedDict[AffinityTerms, OwnTerms] = attrs.field(factory=lambda: BoundedDict(_MOST_KEPT))

    def of(self, pod: Pod) -> OwnTerms:
        affinity = pod.spec.affinity
        if affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
            return NO_TERMS
        terms = affinity_terms(pod)
        known = self._known.get(terms)
        if known is None:
            known = self._known[terms] = OwnTerms.of(pod, terms)
        return known.resolved(self.cluster.list(Namespace)) if known.look_at_namespaces else known


def _parse_error(near: PodAffinity, far: PodAffinity) -> str | None:
    """Return the errors in the selectors of a pod's terms, the first of each list; None if all are valid."""
    errors = []
    for name, terms in (
        ("requiredAffinityTerms", near.required),
        ("requiredAntiAffinityTerms", far.required),
        ("preferredAffinityTerms", near.preferred),
        ("preferredAntiAffinityTerms", far.preferred),
    ):
        for each in terms:
            term = each if isinstance(each, PodAffinityTerm) else each.pod_affinity_term
            error = selector_error(term.label_selector) or selector_error(term.namespace_selector)
            if error is not None:
                errors.append(f"{name}: {error}")
                break
    return joined(errors) if errors else None


def _resolved(term: AffinityTerm, namespaces: Sequence[Namespace]) -> AffinityTerm:
    if not term.looks_at_namespaces:
        return term
    selected = {space.name for space in namespaces if term.namespace_selector.matches(space.labels)}
    return _naming(term, term.namespaces | selected)


@functools.lru_cache(maxsize=_MOST_KEPT)
def _naming(term: AffinityTerm, namespaces: frozenset[str]) -> AffinityTerm:
    """Return the term with namespaces named in place of its namespace selector, the same object for equal ones."""
    return attrs.evolve(term, namespaces=namespaces, namespace_selector=NOTHING)
