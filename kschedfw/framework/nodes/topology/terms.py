"""The affinity and anti-affinity terms of pods on nodes, and sums by domain of the terms that select a given pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.nodes.pod_info import AffinityTerm, PodInfo
from kschedfw.framework.nodes.topology.domains import Domains, DomainsOf, DomainSums, as_columns
from kschedfw.framework.nodes.topology.matching import AskedLabels, SelectorIndex

_MOST_TALLIES = 512
_MOST_CHANGES = 512  # beyond that, summing anew is cheaper than applying changes
_MOST_ADDED_SINGLY = 64


class TermKind(Enum):
    """The kind of a term: required or preferred, affinity or anti-affinity."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED = "preferred affinity or anti-affinity"
    """The weight is the term's, negative for anti-affinity; required terms have weight 1."""
    UNLISTED_REQUIRED_AFFINITY = "required affinity, see PodInfo.is_unlisted"
    UNLISTED_PREFERRED = "preferred affinity or anti-affinity, see PodInfo.is_unlisted"

    __hash__ = object.__hash__  # Enum's is written in Python


_NO_SUMS: Mapping[str, DomainSums] = EMPTY

_TermKey = tuple[TermKind, AffinityTerm, int]
_Change = tuple["TermGroup", int, int]
"""Terms of a group added to the node in a row, or removed: group, row, their number (negative if removed)."""

_PodKey = tuple[str, Hashable, FrozenDict[str, str]]


class TermGroup:
    """The equal terms of all pods on nodes."""

    __slots__ = ("_sums", "by_node", "domains", "kind", "term", "weight")

    def __init__(self, kind: TermKind, term: AffinityTerm, weight: int, domains: Domains) -> None:
        self.kind = kind
        self.term = term
        self.weight = weight
        self.domains = domains
        self.by_node: dict[str, int] = {}
        self._sums: DomainSums | None = None

    def add(self, terms: int, row: int, node_name: str) -> None:
        """Add terms on a node, or remove them if negative; `row` is -1 if the node itself is gone."""
        left = self.by_node.get(node_name, 0) + terms
        if left:
            self.by_node[node_name] = left
        else:
            del self.by_node[node_name]
        if self._sums is not None and row >= 0:
            self._sums.add(row, terms)

    def add_to(self, sums: DomainSums, rows: Mapping[str, int]) -> None:
        """Add all terms to fresh sums.

        If they are many, their own sums are kept for this. Each pod of a workload may have a label of its own,
        and so a tally of its own.
        """
        if len(self.by_node) <= _MOST_ADDED_SINGLY:
            for name, terms in self.by_node.items():
                sums.add(rows[name], terms, self.weight)
            return
        own = self._sums
        if own is None or not own.fresh:
            own = self._sums = DomainSums(self.domains)
            own.add_each(*as_columns(self.by_node, rows))
        sums.add_sums(own, self.weight)


class TermTally:
    """Sums of weights, by kind of term and topology key, of the terms on nodes that select pods with given labels.

    Made for a pod and the labels of its namespace, and valid for all pods of that namespace that no term tells
    apart by their labels. It isn't updated with each change, since many tallies may never be asked again.
    """

    __slots__ = ("_groups", "_pod", "_space", "_sums", "arrivals_seen", "changes_seen", "last_use")

    def __init__(self, pod: Pod, namespace_labels: Mapping[str, str]) -> None:
        self.arrivals_seen = 0
        self.changes_seen = 0
        self.last_use = 0
        self._pod = pod
        self._space = namespace_labels
        self._groups: dict[TermGroup, None] = {}
        self._sums: dict[TermKind, dict[str, DomainSums]] = {}

    @property
    def is_empty(self) -> bool:
        """True if no term selects the pod."""
        return not self._groups

    def of(self, kind: TermKind) -> Mapping[str, DomainSums]:
        """Return the sums over terms of one kind, by topology key; valid in this cycle, not to be changed."""
        return self._sums.get(kind, _NO_SUMS)

    def ask(self, group: TermGroup, rows: Mapping[str, int]) -> None:
        """Add a group that is new to this tally, if its term selects the pod."""
        if not group.by_node or not group.term.matches(self._pod, self._space):
            return
        self._groups[group] = None
        of_kind = self._sums.setdefault(group.kind, {})
        sums = of_kind.get(group.term.topology_key)
        if sums is None:
            sums = of_kind[group.term.topology_key] = DomainSums(group.domains)
        if sums.fresh:
            group.add_to(sums, rows)

    def follow(self, changes: Iterable[_Change]) -> None:
        """Apply the additions and removals of terms in the groups that this tally counts."""
        emptied = []
        for group, row, terms in changes:
            if group in self._groups:
                self._sums[group.kind][group.term.topology_key].add(row, terms, group.weight)
                if not group.by_node:
                    emptied.append(group)
        for group in emptied:
            self._groups.pop(group, None)

    def refresh(self, rows: Mapping[str, int], *, everything: bool = False) -> None:
        """Recompute the sums where nodes have changed domains, or everywhere."""
        for kind, of_kind in self._sums.items():
            for key, sums in of_kind.items():
                if everything or not sums.fresh:
                    sums.clear()
                    self._groups = {group: None for group in self._groups if group.by_node}
                    for group in self._groups:
                        if group.kind is kind and group.term.topology_key == key:
                            group.add_to(sums, rows)


@define(eq=False)
class TermGroups:
    """All terms of pods on nodes, and the tallies kept of them."""

    domains_of: DomainsOf
    groups: dict[_TermKey, TermGroup] = attrs.field(factory=dict)
    """The terms of pods on nodes; none if no pod has any."""
    _by_selector: SelectorIndex[TermGroup] = attrs.field(factory=SelectorIndex)
    _not_indexed: dict[TermGroup, None] = attrs.field(factory=dict)
    """Groups to be added to `_by_selector` when a tally is made next: most pods get one that is there."""
    _asked: AskedLabels = attrs.field(factory=AskedLabels)
    _arrivals: list[TermGroup] = attrs.field(factory=list)
    """Groups in the order of their creation, so that each tally can ask for the groups that are new to it."""
    _changes: list[_Change] = attrs.field(factory=list)
    """The latest changes, for tallies to apply; `_dropped` earlier ones are gone."""
    _dropped: int = 0
    _tallies: dict[_PodKey, TermTally] = attrs.field(factory=dict)
    _uses: int = 0

    def add(self, info: PodInfo, row: int, node_name: str) -> None:
        """Add the terms of a pod that is now on the node."""
        for key in _terms_of(info):
            group = self.groups.get(key)
            if group is None:
                # No tally has asked a new group yet, so none has to follow this change.
                self._add_group(key).add(1, row, node_name)
            else:
                self._change(group, 1, row, node_name)

    def remove(self, info: PodInfo, row: int, node_name: str) -> None:
        """Remove the terms of a pod that left the node; `row` is -1 if the node itself is gone."""
        for key in _terms_of(info):
            group = self.groups[key]
            self._change(group, -1, row, node_name)
            if not group.by_node:
                del self.groups[key]
                if group in self._not_indexed:
                    del self._not_indexed[group]
                else:
                    self._by_selector.discard(group.term.selector, group)

    def about(self, pod: Pod, namespace_labels: FrozenDict[str, str], rows: Mapping[str, int]) -> TermTally:
        """Return the tally of the terms that select the pod; `rows` are the table's rows by node name."""
        key = (pod.metadata.namespace, self._asked.key_of(pod.metadata.labels), namespace_labels)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = self._new_tally(pod, namespace_labels, rows)
        else:
            self._bring_up_to_date(tally, rows)
        tally.arrivals_seen = len(self._arrivals)
        tally.changes_seen = self._dropped + len(self._changes)
        self._uses += 1
        tally.last_use = self._uses
        return tally

    def _bring_up_to_date(self, tally: TermTally, rows: Mapping[str, int]) -> None:
        start = tally.changes_seen - self._dropped
        if 0 <= start < len(self._changes):
            tally.follow(self._changes[start:])
        tally.refresh(rows, everything=start < 0)
        if tally.arrivals_seen < len(self._arrivals):
            for group in self._arrivals[tally.arrivals_seen :]:
                tally.ask(group, rows)

    def _new_tally(
        self, pod: Pod, namespace_labels: FrozenDict[str, str], rows: Mapping[str, int]
    ) -> TermTally:
        if len(self._tallies) >= _MOST_TALLIES:
            by_use = sorted(self._tallies, key=lambda key: self._tallies[key].last_use)
            for key in by_use[: (len(by_use) + 1) // 2]:
                del self._tallies[key]
        for group in self._not_indexed:
            self._by_selector.add(group.term.selector, group)
        self._not_indexed.clear()
        tally = TermTally(pod, namespace_labels)
        for group in self._by_selector.candidates(pod.metadata.labels):
            tally.ask(group, rows)
        return tally

    def _add_group(self, key: _TermKey) -> TermGroup:
        kind, term, weight = key
        group = TermGroup(kind, term, weight, self.domains_of(term.topology_key))
        self.groups[key] = group
        self._not_indexed[group] = None
        if self._asked.ask_for(term.selector.keys):
            self._tallies = {}
        self._arrivals.append(group)
        if len(self._arrivals) > 2 * (len(self.groups) + _MOST_CHANGES):
            # Most of these groups are gone again, and each tally would have to skip them.
            self._tallies = {}
            self._arrivals = list(self.groups.values())
        return group

    def _change(self, group: TermGroup, terms: int, row: int, node_name: str) -> None:
        group.add(terms, row, node_name)
        self._changes.append((group, row, terms))
        if len(self._changes) > 2 * _MOST_CHANGES:
            del self._changes[:_MOST_CHANGES]
            self._dropped += _MOST_CHANGES


def _terms_of(info: PodInfo) -> Iterator[_TermKey]:
    required, preferred = TermKind.REQUIRED_AFFINITY, TermKind.PREFERRED
    if info.is_unlisted:
        required, preferred = TermKind.UNLISTED_REQUIRED_AFFINITY, TermKind.UNLISTED_PREFERRED
    terms = info.terms
    for term in terms.required_affinity:
        yield required, term, 1
    for term in terms.required_anti_affinity:
        yield TermKind.REQUIRED_ANTI_AFFINITY, term, 1
    for weighted in terms.preferred_affinity:
        yield preferred, weighted.term, weighted.weight
    for weighted in terms.preferred_anti_affinity:
        yield preferred, weighted.term, -weighted.weight
