"""Required affinity and anti-affinity terms: counts of matching pods by domain, and the nodes that they rule out.

For explanations, also the pods behind a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import (
    ByDomain,
    FrozenDict,
    IntArray,
    NodeInfo,
    NodeTable,
    Pod,
    PodInfo,
    Snapshot,
    Status,
    Verdicts,
)
from kschedfw.api.selector_text import selector_text
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.nodes.pod_info import AffinityTerm
from kschedfw.framework.nodes.topology import TermKind, TermTally, TopologyIndex
from kschedfw.framework.nodes.topology.domains import DomainSums
from kschedfw.plugins.inter_pod_affinity.terms import OwnTerms, TermQuery

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

# Shared, since making a refusal per node and pod would cost more than the rest of the plugin. Evictions can't bring
# pods that an affinity term needs (unresolvable), but can remove pods that an anti-affinity term avoids.
_NO_COMPANY = Status.unresolvable(REASON_AFFINITY)
_BAD_COMPANY = Status.unschedulable(REASON_ANTI_AFFINITY)
_UNWELCOME = Status.unschedulable(REASON_EXISTING_ANTI_AFFINITY)

# Codes of verdicts. Of several refusals of a node the one with the highest code counts.
_STATUSES = (Status.success(), _UNWELCOME, _BAD_COMPANY, _NO_COMPANY)
_UNWELCOME_CODE, _BAD_COMPANY_CODE, _NO_COMPANY_CODE = range(1, len(_STATUSES))

_Codes: TypeAlias = npt.NDArray[np.int8]


class MatchCounts:
    """The number of matches of terms with pods, by topology key and domain.

    It is the sum of an index's counts, which are shared, and of hypothetical changes, which belong to this
    object.
    """

    __slots__ = ("_changes", "_sums")

    def __init__(
        self, sums: Mapping[str, tuple[DomainSums, ...]], changes: dict[tuple[str, str], int] | None = None
    ) -> None:
        self._sums = sums
        self._changes = changes or {}

    @classmethod
    def of(cls, sums: Sequence[DomainSums]) -> MatchCounts:
        """Return counts of matches, summed over all parts."""
        by_key: dict[str, tuple[DomainSums, ...]] = {}
        for each in sums:
            key = each.domains.key
            by_key[key] = (*by_key[key], each) if key in by_key else (each,)
        return cls(by_key)

    def add(self, topology_key: str, node_labels: Mapping[str, str], by: int) -> None:
        """Count a match in the node's domain; ignore it if the node lacks the label."""
        domain = node_labels.get(topology_key)
        if domain is not None:
            where = (topology_key, domain)
            self._changes[where] = self._changes.get(where, 0) + by

    def any_at(self, topology_key: str, domain: str) -> bool:
        count = self._changes.get((topology_key, domain), 0)
        for each in self._sums.get(topology_key, ()):
            code = each.domains.column.code_of(domain)
            if code >= 0:
                count += int(each.sums[code])
        return count > 0

    def any_around(self, node_labels: Mapping[str, str]) -> bool:
        """Tell whether any of the node's domains has a match."""
        return any(key in node_labels and self.any_at(key, node_labels[key]) for key in self.keys)

    @property
    def keys(self) -> Iterable[str]:
        """The topology keys for which there may be matches."""
        found = [key for key, sums in self._sums.items() if any(each.count for each in sums)]
        return {*found, *(key for key, _ in self._changes)} if self._changes else found

    def occupied(self, topology_key: str, nodes: NodeTable) -> npt.NDArray[np.bool_]:
        """Return whether there is a match, by the code of the domain. Not to be changed.

        The extra last entry (nodes without label) is False.
        """
        sums = self._sums.get(topology_key, ())
        if len(sums) == 1 and not self._changes:
            return sums[0].occupied
        column = nodes.label(topology_key)
        occupied = np.zeros(column.size + 1, dtype=np.bool_)
        for each in sums:
            occupied |= each.occupied
        for key, domain in self._changes:
            if key == topology_key and (code := column.code_of(domain)) >= 0:
                occupied[code] = self.any_at(key, domain)
        return occupied

    def __bool__(self) -> bool:
        """Tell whether there is a match in any domain."""
        counted = sum([each.count for sums in self._sums.values() for each in sums])
        return counted + sum(self._changes.values()) > 0

    def clone(self) -> MatchCounts:
        return MatchCounts(self._sums, dict(self._changes))


@attrs.frozen(eq=False)
class RequiredState:
    """State written by pre_filter: the pod's required terms, and the domains with pods that match or repel it."""

    pod: Pod
    namespace_labels: FrozenDict[str, str]
    terms: OwnTerms
    wanted: MatchCounts
    """The pods that match all affinity terms of the pod, by the terms' keys."""
    avoided: MatchCounts
    """The pods that match an anti-affinity term of the pod."""
    averse: MatchCounts
    """The existing pods' anti-affinity terms that match the pod."""

    @classmethod
    def of(
        cls,
        pod: Pod,
        namespace_labels: FrozenDict[str, str],
        terms: OwnTerms,
        index: TopologyIndex,
        existing: TermTally | None,
    ) -> RequiredState:
        wanted: Sequence[DomainSums] = ()
        if terms.company is not None:
            company = index.counter(terms.company)
            wanted = [company.in_domains(key) for key in terms.company_keys]
        avoided = [index.counter(term.query).in_domains(term.topology_key) for term in terms.anti_affinity]
        averse: Sequence[DomainSums] = ()
        if existing is not None:
            about = existing.of(TermKind.REQUIRED_ANTI_AFFINITY)
            averse = [sums for sums in about.values() if sums.count]
        return cls(
            pod,
            namespace_labels,
            terms,
            MatchCounts.of(wanted),
            MatchCounts.of(avoided),
            MatchCounts.of(averse),
        )

    def change(self, existing: PodInfo, node_labels: Mapping[str, str], by: int) -> None:
        """Count a pod as added to the node (1) or removed from it (-1)."""
        for theirs in existing.required_anti_affinity_terms:
            if theirs.matches(self.pod, self.namespace_labels):
                self.averse.add(theirs.topology_key, node_labels, by)
        company = self.terms.company
        if company is not None and company.matches(existing.pod):
            for key in self.terms.company_keys:
                self.wanted.add(key, node_labels, by)
        for term in self.terms.anti_affinity:
            if term.query.matches(existing.pod):
                self.avoided.add(term.topology_key, node_labels, by)

    def refusal(self, node_labels: Mapping[str, str]) -> Status | None:
        """Return the refusal of a node with these labels; None if it passes."""
        # In kube-scheduler's order of checks, since the first one gives the reason.
        if self.terms.company is not None and not self._has_company(node_labels):
            return _NO_COMPANY
        if self.avoided.any_around(node_labels):
            return _BAD_COMPANY
        if self.averse.any_around(node_labels):
            return _UNWELCOME
        return None

    def verdicts(self, nodes: NodeTable, rows: IntArray) -> Verdicts:
        """Return the refusals of many nodes: computed by domain, then looked up for each node."""
        worst: _Codes | None = None
        for part, code in self._refusals(nodes):
            # Nodes without the label have domain -1, and so the last entry of all.
            its = (part.values.view(np.int8) * np.int8(code)).take(nodes.take(part.codes, rows))
            worst = its if worst is None else np.maximum(worst, its)
        return Verdicts.passing(len(rows)) if worst is None else Verdicts(worst, _STATUSES)

    def refused_domains(self, nodes: NodeTable) -> Sequence[ByDomain]:
        """Return the domains whose nodes are refused, once for each topology key."""
        found: dict[int, ByDomain] = {}
        for part, _ in self._refusals(nodes):
            other = found.get(id(part.codes))
            found[id(part.codes)] = (
                part if other is None else ByDomain(part.codes, np.logical_or(other.values, part.values))
            )
        return list(found.values())

    def clone(self) -> RequiredState:
        return RequiredState(
            self.pod,
            self.namespace_labels,
            self.terms,
            self.wanted.clone(),
            self.avoided.clone(),
            self.averse.clone(),
        )

    def _has_company(self, node_labels: Mapping[str, str]) -> bool:
        met = True
        for key in self.terms.company_keys:
            domain = node_labels.get(key)
            if domain is None:
                return False
            met = met and self.wanted.any_at(key, domain)
        return met or self._may_be_first

    @property
    def _may_be_first(self) -> bool:
        """True if the pod may be the first of its group: no pod matches its affinity terms yet, but it does itself."""
        company = self.terms.company
        # Otherwise no pod of a group with affinity to itself could ever be placed.
        return company is not None and not self.wanted and company.matches(self.pod)

    def _refusals(self, nodes: NodeTable) -> list[tuple[ByDomain, int]]:
        """Return the domains with a refusal by topology key, and its code. Keys without any are left out."""
        found: list[tuple[ByDomain, int]] = []
        for counts, code in ((self.averse, _UNWELCOME_CODE), (self.avoided, _BAD_COMPANY_CODE)):
            for key in counts.keys:
                found.append((ByDomain(nodes.label(key).codes, counts.occupied(key, nodes)), code))
        if self.terms.company is None:
            return found
        may_be_first = self._may_be_first
        for key in self.terms.company_keys:
            labels, refused = nodes.label(key), ~self.wanted.occupied(key, nodes)
            if may_be_first:
                refused[:-1] = False
            # No node may be without the label, whose entry is the last one.
            if refused[:-1].any() or len(labels.values) > labels.size:
                found.append((ByDomain(labels.codes, refused), _NO_COMPANY_CODE))
        return found


MOST_NAMED = 3
"""The number of pods that are named; others are counted."""

_EXISTING = "podAntiAffinity of existing pods"


@attrs.frozen(eq=False)
class Neighbours:
    """The keys of pods on the snapshot's nodes by the term they match, topology key and domain.

    Each question takes one look at all pods, and its answers are kept: many nodes are refused for the same
    pods.
    """

    snapshot: Snapshot
    _known: dict[tuple[object, str], Mapping[str, list[str]]] = attrs.field(factory=dict)

    def of(
        self, node_info: NodeInfo, topology_key: str, what: object, matches: Callable[[PodInfo], bool]
    ) -> list[str]:
        """Return the matching pods in the node's domain; pods of the node itself come first, in their present state.

        `what` identifies the question in the cache.
        """
        own = [info.pod.key for info in node_info.pods if matches(info)]
        domain = node_info.node.labels.get(topology_key)
        if domain is None:
            return []
        by_domain = self._known.get((what, topology_key))
        if by_domain is None:
            by_domain = self._known[what, topology_key] = self._by_domain(topology_key, matches)
        return list(dict.fromkeys([*own, *by_domain.get(domain, ())]))

    def _by_domain(self, topology_key: str, matches: Callable[[PodInfo], bool]) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for info in self.snapshot.node_infos:
            domain = info.node.labels.get(topology_key)
            if domain is not None:
                found.setdefault(domain, []).extend(each.pod.key for each in info.pods if matches(each))
        return found


def evidence_of(state: RequiredState, node_info: NodeInfo, neighbours: Neighbours) -> Iterator[Evidence]:
    """Yield evidence for the refusal of the node: one entry for each term that it breaks."""
    labels = node_info.node.labels
    yield from _without_company(state, labels)
    for term in state.terms.anti_affinity:
        key = term.topology_key
        pods = neighbours.of(node_info, key, term.query, partial(_matches, term.query))
        if pods and state.avoided.any_at(key, labels[key]):
            yield _broken("podAntiAffinity", key, labels[key], pods, _text(term.term))
    for key in sorted(state.averse.keys):
        pods = neighbours.of(node_info, key, _EXISTING, partial(_minds, state, key))
        if pods and state.averse.any_at(key, labels[key]):
            yield _broken(_EXISTING, key, labels[key], pods)


def _without_company(state: RequiredState, labels: Mapping[str, str]) -> Iterator[Evidence]:
    company = state.terms.company
    terms = () if company is None else company.terms
    for term in terms:
        key = term.topology_key
        domain = labels.get(key)
        if domain is None:
            found = f"no label {key}"
        elif not state.wanted.any_at(key, domain):
            every = " that matches all terms" if len(terms) > 1 else ""
            found = f"no such pod in {domain}{every}"
        else:
            continue
        selector = _text(term)
        yield Evidence(
            f"podAffinity on {key} to {selector}",
            found,
            values=FrozenDict(
                {"term": "podAffinity", "topologyKey": key, "selector": selector, "domain": domain}
            ),
        )


def _broken(term: str, key: str, domain: str, pods: list[str], selector: str | None = None) -> Evidence:
    named = ", ".join(pods[:MOST_NAMED])
    more = f" and {len(pods) - MOST_NAMED} more" if len(pods) > MOST_NAMED else ""
    return Evidence(
        f"{term} on {key}{'' if selector is None else f' to {selector}'}",
        f"{domain} has {named}{more}",
        values=FrozenDict(
            {
                "term": term,
                "topologyKey": key,
                "selector": selector,
                "domain": domain,
                "pods": len(pods),
                "pod": pods[0],
            }
        ),
    )


def _matches(query: TermQuery, existing: PodInfo) -> bool:
    return query.matches(existing.pod)


def _minds(state: RequiredState, key: str, existing: PodInfo) -> bool:
    return any(
        term.topology_key == key and term.matches(state.pod, state.namespace_labels)
        for term in existing.required_anti_affinity_terms
    )


def _text(term: AffinityTerm) -> str:
    """Return the term's selector and namespaces in words."""
    spaces = sorted(term.namespaces)
    if term.namespace_selector.everything:
        where = "any namespace"
    elif spaces:
        where = f"namespace {', '.join(spaces)}"
    else:
        where = f"namespaces with {selector_text(term.namespace_selector)}"
    return f"pods with {selector_text(term.selector)} in {where}"
