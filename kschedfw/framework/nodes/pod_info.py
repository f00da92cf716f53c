"""A pod with values that scheduling derives from it once (kube-scheduler `PodInfo`, `QueuedPodInfo`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kschedfw.api.affinity import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.api.requests import PodRequests, pod_requests
from kschedfw.api.selector_errors import joined, selector_error
from kschedfw.api.selectors import EVERYTHING, NOTHING, Selector, as_selector
from kschedfw.api.workloads import Namespace

_MOST_SELECTORS: Final = 1000


class NamespaceNames:
    """The names of the namespaces that selectors select. They are kept: pods that differ share few selectors."""

    def __init__(self, namespaces: Sequence[Namespace]) -> None:
        self._namespaces = namespaces
        self._selected: BoundedDict[Selector, frozenset[str]] = BoundedDict(_MOST_SELECTORS)

    def selected_by(self, selector: Selector) -> frozenset[str]:
        """Return the names of the namespaces whose labels the selector matches."""
        names = self._selected.get(selector)
        if names is None:
            names = frozenset([space.name for space in self._namespaces if selector.matches(space.labels)])
            self._selected[selector] = names
        return names


@frozen(eq=False)
class AffinityTerm:
    """A pod (anti-)affinity term with its selectors compiled and its default namespace filled in.

    As a query, it asks for the pods that it selects. Equal terms of pods are one object, unless so many others came in
    between that it was forgotten: what is known of a term is found without a look at its parts.
    """

    namespaces: frozenset[str]
    selector: Selector
    topology_key: str
    namespace_selector: Selector

    @classmethod
    def of(cls, term: PodAffinityTerm, namespace: str) -> AffinityTerm:
        """Return the compiled term of a pod in this namespace."""
        namespaces = frozenset(term.namespaces)
        # No namespaces and no selector means the pod's own; an empty selector (not None) means all
        # namespaces.
        if not namespaces and term.namespace_selector is None:
            namespaces = frozenset({namespace})
        return cls(
            namespaces=namespaces,
            selector=as_selector(term.label_selector),
            topology_key=term.topology_key,
            namespace_selector=NOTHING
            if term.namespace_selector is None
            else term.namespace_selector.compile(),
        )

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of pods that the term reads."""
        return self.selector.keys

    @property
    def looks_at_namespaces(self) -> bool:
        """True if the labels of a pod's namespace decide whether the term selects the pod."""
        return not self.namespace_selector.nothing and not self.namespace_selector.everything

    def resolved(self, namespaces: NamespaceNames) -> AffinityTerm:
        """Return the term of a pod to be scheduled, which needs no labels of namespaces.

        The namespaces that its namespace selector selects are named. A selector of NotIn and DoesNotExist alone
        selects all namespaces.
        """
        if not self.looks_at_namespaces:
            return self
        # kube-scheduler v1.34 to v1.36 name the namespaces, but keep the selector, and then match it with no labels
        # (kubernetes/kubernetes#141526). Terms of existing pods are matched with the namespace's labels.
        if self.namespace_selector.matches(EMPTY):
            return _about(self, self.namespaces, EVERYTHING)
        selected = namespaces.selected_by(self.namespace_selector)
        return _about(self, self.namespaces | selected if self.namespaces else selected, NOTHING)

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str] = EMPTY) -> bool:
        """Return whether the term selects the pod, given the labels of that pod's namespace."""
        meta = pod.metadata
        if meta.namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(meta.labels)


@frozen
class WeightedAffinityTerm:
    term: AffinityTerm
    weight: int


@define(eq=False)
class AffinityTerms:
    """The compiled terms of a pod. Pods with equal affinities in a namespace share the object.

    `error` is the error in the selectors of the pod's terms, None if they are valid.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedAffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedAffinityTerm, ...] = ()
    error: str | None = None
    look_at_namespaces: bool = attrs.field(init=False)
    """True if a term has a namespace selector, so that the labels of all namespaces are needed."""
    _resolved: tuple[NamespaceNames, AffinityTerms] | None = attrs.field(default=None, init=False)
    """The namespaces for which the terms were resolved last, and the result."""

    @look_at_namespaces.default
    def _look_at_namespaces(self) -> bool:
        required = (*self.required_affinity, *self.required_anti_affinity)
        preferred = (*self.preferred_affinity, *self.preferred_anti_affinity)
        return True in [term.looks_at_namespaces for term in (*required, *[each.term for each in preferred])]

    def __bool__(self) -> bool:
        """Return whether there is any term."""
        return self.are_required or self.are_preferred

    @property
    def are_required(self) -> bool:
        """True if any term is required."""
        return bool(self.required_affinity or self.required_anti_affinity)

    @property
    def are_preferred(self) -> bool:
        """True if any term is preferred."""
        return bool(self.preferred_affinity or self.preferred_anti_affinity)

    def resolved(self, namespaces: NamespaceNames) -> AffinityTerms:
        """Return the terms of a pod to be scheduled; see `AffinityTerm.resolved`."""
        if self._resolved is None or self._resolved[0] is not namespaces:
            evolve, space = attrs.evolve, namespaces
            resolved = AffinityTerms(
                tuple([term.resolved(space) for term in self.required_affinity]),
                tuple([term.resolved(space) for term in self.required_anti_affinity]),
                tuple([evolve(each, term=each.term.resolved(space)) for each in self.preferred_affinity]),
                tuple(
                    [evolve(each, term=each.term.resolved(space)) for each in self.preferred_anti_affinity]
                ),
                self.error,
            )
            self._resolved = namespaces, resolved
        return self._resolved[1]


NO_TERMS = AffinityTerms()
_NO_AFFINITY = PodAffinity()


def affinity_terms(pod: Pod) -> AffinityTerms:
    """Return the pod's terms, compiled."""
    affinity = pod.spec.affinity
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    return NO_TERMS if near is None and far is None else _compiled(near, far, pod.metadata.namespace)


# The pods of a workload all have the same terms, and each of them is looked at several times on its way.
@functools.lru_cache(maxsize=10_000)
def _compiled(near: PodAffinity | None, far: PodAffinity | None, namespace: str) -> AffinityTerms:
    near, far = near or _NO_AFFINITY, far or _NO_AFFINITY
    return AffinityTerms(
        tuple([_term_of(term, namespace) for term in near.required]),
        tuple([_term_of(term, namespace) for term in far.required]),
        _weighted(near.preferred, namespace),
        _weighted(far.preferred, namespace),
        _error_of(near, far),
    )


def _weighted(terms: Sequence[WeightedPodAffinityTerm], namespace: str) -> tuple[WeightedAffinityTerm, ...]:
    return tuple(
        [WeightedAffinityTerm(_term_of(each.pod_affinity_term, namespace), each.weight) for each in terms]
    )


def _term_of(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    # A term that names or selects namespaces is the same in all of them.
    return _compiled_term(term, "" if term.namespaces or term.namespace_selector is not None else namespace)


_compiled_term = functools.lru_cache(maxsize=10_000)(AffinityTerm.of)


@functools.lru_cache(maxsize=10_000)
def _about(term: AffinityTerm, namespaces: frozenset[str], namespace_selector: Selector) -> AffinityTerm:
    """Return the term with other namespaces, the same object for equal ones."""
    return attrs.evolve(term, namespaces=namespaces, namespace_selector=namespace_selector)


def _error_of(near: PodAffinity, far: PodAffinity) -> str | None:
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


@frozen(eq=False)
class PodInfo:
    """A pod, its requests and its compiled affinity terms."""

    pod: Pod
    requests: PodRequests
    terms: AffinityTerms = NO_TERMS
    has_affinity: bool = False
    """True if the pod has any pod affinity or anti-affinity term, required or preferred."""
    is_unlisted: bool = False
    """True if, in a trial, the pod's node is missing from the list of nodes with affinity. Its terms then only matter
    to the scores of pods that have preferred terms of their own.
    """

    def __repr__(self) -> str:
        return f"<PodInfo of {self.pod!r}>"

    @classmethod
    def of(cls, pod: Pod, *, largest_sum: bool = False) -> PodInfo:
        """Return the pod's values; with `largest_sum` a resize counts as since v1.37 (see `pod_requests`)."""
        requests, affinity = pod.requests, pod.spec.affinity
        if largest_sum and pod.status.tells_of_resources:
            requests = pod_requests(pod, largest_sum=True)
        # As `affinity_terms` does, without a call for most pods.
        if affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
            return cls(pod, requests)
        terms = affinity_terms(pod)
        return cls(pod, requests, terms, bool(terms))

    @property
    def required_affinity_terms(self) -> tuple[AffinityTerm, ...]:
        return self.terms.required_affinity

    @property
    def required_anti_affinity_terms(self) -> tuple[AffinityTerm, ...]:
        return self.terms.required_anti_affinity

    @property
    def preferred_affinity_terms(self) -> tuple[WeightedAffinityTerm, ...]:
        return self.terms.preferred_affinity

    @property
    def preferred_anti_affinity_terms(self) -> tuple[WeightedAffinityTerm, ...]:
        return self.terms.preferred_anti_affinity

    def on_trial(self, *, listed: bool, listed_anti_affinity: bool) -> PodInfo:
        """Return the pod as kube-scheduler sees it on a node where it is only assumed in a trial.

        kube-scheduler doesn't update its lists of nodes with pods that have affinity, and required
        anti-affinity, in a trial; the arguments say whether these lists have the node.
        """
        terms = self.terms
        if (listed or not self.has_affinity) and (listed_anti_affinity or not terms.required_anti_affinity):
            return self
        if not listed_anti_affinity:
            terms = attrs.evolve(terms, required_anti_affinity=())
        return attrs.evolve(self, terms=terms, has_affinity=bool(terms), is_unlisted=not listed)


@define(eq=False)
class QueuedPodInfo:
    """A pod in the scheduling queue, with the history of its attempts. Times are seconds on the queue's clock.

    * `timestamp`: when it last entered the queue; `sequence` orders pods that entered at the same time.
    * `initial_attempt_timestamp`: when it first became active, None before that; `initial_attempt_sequence`
      orders pods that became active at the same time. Pods woken by one event have the same number.
    * `attempts`: how often it was popped. `unschedulable_count` of these attempts ended with a refusal;
      `consecutive_errors_count` is the number of latest attempts in a row that ended with an error. Backoff
      depends on these two.
    * `unschedulable_plugins`, `pending_plugins`: the plugins that refused it in the last attempt, or keep it
      gated. Both empty means that the attempt ended with an error. The scheduler sets them before it gives the
      pod back.
    * `gating_plugin`: the plugin whose pre_enqueue holds it back; empty if none does.
    * `retry_at`: the latest time for its next attempt, as a plugin asked that refused it or keeps it gated;
      None if none asked.
    * `backoff_expiration`: the end of its backoff; None until it is computed.
    * `flush_timestamp`: when it was last retried only because it had waited long;
      `was_flushed_from_unschedulable`: whether the current attempt is such a retry.
    """

    pod_info: PodInfo
    timestamp: float = 0.0
    attempts: int = 0
    sequence: int = 0
    initial_attempt_timestamp: float | None = None
    initial_attempt_sequence: int = 0
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    unschedulable_plugins: set[str] = attrs.field(factory=set)
    pending_plugins: set[str] = attrs.field(factory=set)
    gating_plugin: str = ""
    retry_at: float | None = None
    backoff_expiration: float | None = None
    flush_timestamp: float | None = None
    was_flushed_from_unschedulable: bool = False
    pod: Pod = attrs.field(init=False, default=attrs.Factory(lambda self: self.pod_info.pod, takes_self=True))
    """The pod of `pod_info`; `update` sets both."""

    @property
    def gated(self) -> bool:
        """True if a pre_enqueue plugin holds the pod back."""
        return bool(self.gating_plugin)

    @property
    def gated_by_fellow(self) -> bool:
        """True if the pod is held back since a member of its group is, as in v1.37: only that one's gate is asked."""
        # A gate of the pod's own is among the plugins that refused it.
        return self.gated and self.gating_plugin not in self.unschedulable_plugins

    @property
    def rejector_plugins(self) -> set[str]:
        """The plugins that refused the pod. One of their answers must change before another attempt makes sense."""
        return self.unschedulable_plugins | self.pending_plugins

    def update(self, pod: Pod) -> None:
        """Replace the pod by a newer version."""
        self.pod_info = PodInfo.of(pod)
        self.pod = pod

    def clear_rejector_plugins(self) -> None:
        """Forget the plugins that refused the pod, because a new attempt begins."""
        self.unschedulable_plugins = set()
        self.pending_plugins = set()
        self.gating_plugin = ""
        self.retry_at = None
