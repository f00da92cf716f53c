"""The affinity terms of the pod to be scheduled, with their namespace selectors resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from kschedfw import ClusterClient, FrozenDict, Pod
from kschedfw.api import EMPTY, BoundedDict, Namespace, PodAffinity, PodAffinityTerm, Selector
from kschedfw.api.selectors import NOTHING
from kschedfw.framework.nodes.pod_info import AffinityTerm, AffinityTerms, affinity_terms
from kschedfw.plugins._label_selectors import joined, selector_error

_MOST_KEPT = 10_000


def namespace_labels(pod: Pod, cluster: ClusterClient) -> FrozenDict[str, str]:
    """Return the labels of the pod's namespace; none if the namespace isn't known (yet)."""
    namespace = cluster.get(Namespace, pod.metadata.namespace)
    return EMPTY if namespace is None else namespace.metadata.labels


@attrs.frozen(cache_hash=True)
class TermQuery:
    """The query for pods that match all of these terms: one or more, all of them resolved."""

    terms: tuple[AffinityTerm, ...]

    @property
    def selector(self) -> Selector:
        return self.terms[0].selector

    @property
    def label_keys(self) -> frozenset[str]:
        first, *others = self.terms
        return (
            first.selector.keys.union(*[term.selector.keys for term in others])
            if others
            else first.selector.keys
        )

    def matches(self, pod: Pod) -> bool:
        # A generator takes twice as long, and a query may be asked about thousands of pods.
        for term in self.terms:  # noqa: SIM110
            if not term.matches(pod, EMPTY):
                return False
        return True


@attrs.frozen
class OwnTerm:
    """A single term of the pod. Preferred terms have a weight, which is negative for anti-affinity."""

    query: TermQuery
    weight: int = 1

    @classmethod
    def of(cls, term: AffinityTerm, weight: int = 1) -> OwnTerm:
        return cls(TermQuery((term,)), weight)

    @property
    def term(self) -> AffinityTerm:
        return self.query.terms[0]

    @property
    def topology_key(self) -> str:
        return self.query.terms[0].topology_key


@attrs.frozen(cache_hash=True)
class OwnTerms:
    """All terms of a pod.

    The required ones must all hold: one pod nearby matches all terms of `company`, and no pod matches a term of
    `anti_affinity`. `preferred` terms attract or repel. `error` is the error in their selectors, None if they
    are valid.
    """

    company: TermQuery | None = None
    anti_affinity: tuple[OwnTerm, ...] = ()
    preferred: tuple[OwnTerm, ...] = ()
    error: str | None = None
    required: bool = attrs.field(init=False, eq=False)
    """True if any term is required."""
    company_keys: tuple[str, ...] = attrs.field(init=False, eq=False)
    """The topology keys of the affinity terms, each once."""

    @required.default
    def _required(self) -> bool:
        return self.company is not None or bool(self.anti_affinity)

    @company_keys.default
    def _company_keys(self) -> tuple[str, ...]:
        terms = () if self.company is None else self.company.terms
        return tuple(dict.fromkeys([term.topology_key for term in terms]))

    @classmethod
    def of(cls, pod: Pod, terms: AffinityTerms) -> OwnTerms:
        """Return the pod's compiled terms, whose namespace selectors must still be resolved."""
        affinity = pod.spec.affinity
        wanted = terms.required_affinity
        drawing = [OwnTerm.of(each.term, each.weight) for each in terms.preferred_affinity]
        repelling = [OwnTerm.of(each.term, -each.weight) for each in terms.preferred_anti_affinity]
        return cls(
            TermQuery(wanted) if wanted else None,
            tuple([OwnTerm.of(term) for term in terms.required_anti_affinity]),
            (*drawing, *repelling),
            _parse_error(affinity.pod_affinity or _NO_AFFINITY, affinity.pod_anti_affinity or _NO_AFFINITY),
        )

    @property
    def look_at_namespaces(self) -> bool:
        """True if a term has a namespace selector, so that the labels of all namespaces are needed."""
        terms = [each.term for each in (*self.anti_affinity, *self.preferred)]
        if self.company is not None:
            terms += self.company.terms
        return any(map(_looks_at_namespaces, terms))

    def resolved(self, namespaces: Sequence[Namespace]) -> OwnTerms:
        """Return the terms with the namespaces listed that their namespace selectors select.

        Such terms can be matched without the labels of each existing pod's namespace.
        """

        def resolve(terms: Iterable[OwnTerm]) -> Iterator[OwnTerm]:
            return (OwnTerm.of(_resolved(each.term, namespaces), each.weight) for each in terms)

        company = self.company
        if company is not None:
            company = TermQuery(tuple(_resolved(term, namespaces) for term in company.terms))
        return OwnTerms(
            company, tuple(resolve(self.anti_affinity)), tuple(resolve(self.preferred)), self.error
        )


NO_TERMS = OwnTerms()
_NO_AFFINITY = PodAffinity()


@attrs.define(eq=False)
class _KnownTerms:
    """Terms, and their resolved form for the latest namespaces."""

    terms: OwnTerms
    resolved: OwnTerms
    look_at_namespaces: bool
    _namespaces: Sequence[Namespace] = ()

    @classmethod
    def of(cls, pod: Pod, compiled: AffinityTerms) -> _KnownTerms:
        terms = OwnTerms.of(pod, compiled)
        look = terms.look_at_namespaces
        return cls(terms, terms.resolved(()) if look else terms, look)

    def resolve(self, namespaces: Sequence[Namespace]) -> None:
        if namespaces != self._namespaces:
            self.resolved = self.terms.resolved(namespaces)
            self._namespaces = namespaces


@attrs.define(eq=False)
class TermReader:
    """The terms of pods, by their compiled terms, which pods with equal affinities in a namespace share.

    Namespaces may change without any change of nodes or pods, so terms with namespace selectors are resolved
    for each pod, unless the namespaces are still the same.
    """

    cluster: ClusterClient
    _known: BoundedDict[AffinityTerms, _KnownTerms] = attrs.field(factory=lambda: BoundedDict(_MOST_KEPT))

    def of(self, pod: Pod) -> OwnTerms:
        affinity = pod.spec.affinity
        if affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
            return NO_TERMS
        terms = affinity_terms(pod)
        known = self._known.get(terms)
        if known is None:
            known = self._known[terms] = _KnownTerms.of(pod, terms)
        if known.look_at_namespaces:
            known.resolve(self.cluster.list(Namespace))
        return known.resolved


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


def _looks_at_namespaces(term: AffinityTerm) -> bool:
    selector = term.namespace_selector
    return not selector.nothing and not selector.everything


def _resolved(term: AffinityTerm, namespaces: Sequence[Namespace]) -> AffinityTerm:
    if not _looks_at_namespaces(term):
        return term
    selected = {space.name for space in namespaces if term.namespace_selector.matches(space.labels)}
    return attrs.evolve(term, namespaces=term.namespaces | selected, namespace_selector=NOTHING)
