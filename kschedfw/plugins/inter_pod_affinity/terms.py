"""The affinity terms of the pod to be scheduled, with their namespace selectors resolved."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kschedfw import ClusterClient, FrozenDict, Pod
from kschedfw.api import EMPTY, Namespace, Selector
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.pod_info import AffinityTerm, AffinityTerms, NamespaceNames, affinity_terms


def namespace_labels(pod: Pod, cluster: ClusterClient) -> FrozenDict[str, str]:
    """Return the labels of the pod's namespace; none if the namespace isn't known (yet)."""
    namespace = cluster.get(Namespace, pod.metadata.namespace)
    return EMPTY if namespace is None else namespace.metadata.labels


@frozen(cache_hash=True)
class TermQuery:
    """The query for pods that match all of several terms, which are resolved."""

    terms: tuple[AffinityTerm, ...]

    @property
    def selector(self) -> Selector:
        # Of the first term alone: it finds the candidates, which `matches` tests against all terms.
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


def company_query(terms: AffinityTerms) -> AffinityTerm | TermQuery | None:
    """Return the query for the pods that match all required affinity terms; None if there are none."""
    wanted = terms.required_affinity
    if len(wanted) > 1:
        return TermQuery(wanted)
    return wanted[0] if wanted else None


def is_company(terms: AffinityTerms, pod: Pod) -> bool:
    """Tell whether the pod matches all required affinity terms, and there are any."""
    query = company_query(terms)
    return query is not None and query.matches(pod)


def company_keys(terms: AffinityTerms) -> Collection[str]:
    """Return the topology keys of the required affinity terms, each once."""
    return dict.fromkeys([term.topology_key for term in terms.required_affinity])


class TermReader:
    """The terms of pods.

    Namespaces may change without any change of nodes or pods, so terms with namespace selectors are resolved
    for each pod, unless the namespaces are still the same.
    """

    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster
        # Together, since several threads may read terms.
        self._listed: tuple[Sequence[Namespace], NamespaceNames] = (), NamespaceNames(())

    def of(self, pod: Pod) -> AffinityTerms:
        terms = affinity_terms(pod)
        return terms.resolved(self._namespaces()) if terms.look_at_namespaces else terms

    def _namespaces(self) -> NamespaceNames:
        present = self.cluster.list(Namespace)
        listed, names = self._listed
        if present is not listed and present != listed:
            names = NamespaceNames(present)
            self._listed = present, names
        return names
