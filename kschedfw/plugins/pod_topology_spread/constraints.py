"""A pod's spread constraints, or the defaults if it has none, compiled for counting and filtering."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from kschedfw import FrozenDict, KschedfwError, Pod
from kschedfw.api import (
    NodeInclusionPolicy,
    Selector,
    TopologySpreadConstraint,
    UnsatisfiableAction,
    as_selector,
)
from kschedfw.api.records import frozen
from kschedfw.api.selector_errors import selector_error

_MOST_KEPT = 4096


class MalformedSelectorError(KschedfwError, ValueError):
    """The error of a label selector that breaks the API's rules; says how, in kube-scheduler's words."""


@frozen(cache_hash=True)
class SiblingQuery:
    """The query for pods that count towards a constraint: same namespace, matching selector, not terminating.

    An empty selector selects every pod, but counts none: so does kube-scheduler.
    """

    namespace: str
    selector: Selector

    @property
    def label_keys(self) -> frozenset[str]:
        return self.selector.keys

    def matches(self, pod: Pod) -> bool:
        if pod.metadata.deletion_timestamp is not None or self.matches_nothing:
            return False
        return self.matches_regardless(pod)

    def matches_regardless(self, pod: Pod) -> bool:
        """Tell whether labels and namespace match, even for terminating pods and empty selectors."""
        meta = pod.metadata
        return meta.namespace == self.namespace and self.selector.matches(meta.labels)

    @property
    def matches_nothing(self) -> bool:
        return not self.selector.requirements


@frozen(cache_hash=True)
class SpreadConstraint:
    """A spread constraint with its selector compiled and its optional fields filled in.

    `self_match` tells whether the pod to be scheduled is itself counted.
    """

    topology_key: str
    max_skew: int
    siblings: SiblingQuery
    self_match: bool
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


def own_constraints(pod: Pod, action: UnsatisfiableAction) -> tuple[SpreadConstraint, ...]:
    """Return the pod's own constraints of one kind.

    Raises:
        MalformedSelectorError: a selector is invalid; the API server would have refused it.
    """
    own, meta = pod.spec.topology_spread_constraints, pod.metadata
    of_kind = tuple([constraint for constraint in own if constraint.when_unsatisfiable is action])
    # Of one kind alone, so that each hook tells the errors in its own constraints only.
    return _own(of_kind, meta.namespace, meta.labels) if of_kind else ()


@functools.lru_cache(maxsize=_MOST_KEPT)
def _own(
    constraints: tuple[TopologySpreadConstraint, ...], namespace: str, labels: FrozenDict[str, str]
) -> tuple[SpreadConstraint, ...]:
    """Return the pod's own constraints; cached, since pods of one controller have equal ones."""
    return tuple(
        _compile(constraint, SiblingQuery(namespace, _selector(constraint, labels)), labels)
        for constraint in constraints
    )


@functools.lru_cache(maxsize=_MOST_KEPT)
def default_constraints(
    defaults: tuple[TopologySpreadConstraint, ...],
    siblings: SiblingQuery,
    labels: FrozenDict[str, str],
) -> tuple[SpreadConstraint, ...]:
    """Return the defaults for a pod with these labels and siblings."""
    return tuple(_compile(constraint, siblings, labels) for constraint in defaults)


def has_topologies(labels: Mapping[str, str], constraints: Iterable[SpreadConstraint]) -> bool:
    """Tell whether a node with these labels is in some domain of every constraint."""
    return all(constraint.topology_key in labels for constraint in constraints)


def _selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """Return the selector with `match_label_keys` merged in. Merging again, after the API server, changes nothing."""
    if (error := selector_error(constraint.label_selector)) is not None:
        raise MalformedSelectorError(error)
    narrowed_to = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    selector = as_selector(constraint.label_selector)
    return selector.and_labels(narrowed_to) if narrowed_to else selector


def _compile(
    constraint: TopologySpreadConstraint, siblings: SiblingQuery, labels: Mapping[str, str]
) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        siblings=siblings,
        self_match=siblings.selector.matches(labels),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy is NodeInclusionPolicy.HONOR,
        honors_taints=constraint.node_taints_policy is NodeInclusionPolicy.HONOR,
    )
