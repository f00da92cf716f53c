"""Required affinity and anti-affinity terms: counts of matching pods by domain, and the nodes that they rule out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs
import numpy as np

from kschedfw import ByDomain, DomainVerdicts, FrozenDict, NodeTable, Pod, PodInfo, Status
from kschedfw.api.records import define
from kschedfw.framework.nodes.arrays import Mask
from kschedfw.framework.nodes.encoded_column import EncodedColumn
from kschedfw.framework.nodes.pod_info import AffinityTerms
from kschedfw.framework.nodes.topology import TermKind, TermTally, TopologyIndex
from kschedfw.framework.nodes.topology.domains import DomainSums
from kschedfw.plugins.inter_pod_affinity.terms import company_keys, company_query, is_company

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

# Shared, since making a refusal per node and pod would cost more than the rest of the plugin. Evictions can't bring
# pods that an affinity term needs (unresolvable), but can remove pods that an anti-affinity term avoids.
_NO_COMPANY = Status.unresolvable(REASON_AFFINITY)
_BAD_COMPANY = Status.unschedulable(REASON_ANTI_AFFINITY)
_UNWELCOME = Status.unschedulable(REASON_EXISTING_ANTI_AFFINITY)

# Codes of refusals. Pods are counted by the refusal that they lead to.
_STATUSES = (Status.success(), _UNWELCOME, _BAD_COMPANY, _NO_COMPANY)
AVERSE = _STATUSES.index(_UNWELCOME)
"""The existing pods' anti-affinity terms that match the pod."""
AVOIDED = _STATUSES.index(_BAD_COMPANY)
"""The pods that match an anti-affinity term of the pod."""
WANTED = _STATUSES.index(_NO_COMPANY)
"""The pods that match all affinity terms of the pod, by the terms' keys."""

_NO_SUMS: Mapping[int, Sequence[DomainSums]] = {AVERSE: ()}


@define(eq=False)
class RequiredState:
    """State written by pre_filter: the pod's terms, and the domains with pods that match or repel it.

    Counts are the sum of an index's counts, which are shared, and of hypothetical changes, which belong to this
    object.
    """

    pod: Pod
    namespace_labels: FrozenDict[str, str]
    terms: AffinityTerms
    existing: TermTally | None
    """The terms of existing pods that select the pod; None if there are none."""
    _sums: Mapping[int, Sequence[DomainSums]]
    """The index's counts, by what is counted."""
    _changes: dict[tuple[int, str, str], int] = attrs.field(factory=dict)
    """The changes, by what is counted, topology key and domain."""

    @classmethod
    def of(
        cls,
        pod: Pod,
        namespace_labels: FrozenDict[str, str],
        terms: AffinityTerms,
        index: TopologyIndex,
        existing: TermTally | None,
    ) -> RequiredState:
        if existing is None and not terms.are_required:
            return cls(pod, namespace_labels, terms, existing, _NO_SUMS)
        sums: dict[int, Sequence[DomainSums]] = {AVERSE: ()}
        if existing is not None:
            averse = existing.of(TermKind.REQUIRED_ANTI_AFFINITY)
            sums[AVERSE] = [each for each in averse.values() if each.count]
        if terms.required_anti_affinity:
            avoided = [
                index.counter(term).in_domains(term.topology_key) for term in terms.required_anti_affinity
            ]
            sums[AVOIDED] = [each for each in avoided if each.count]
        if (query := company_query(terms)) is not None:
            company = index.counter(query)
            sums[WANTED] = [company.in_domains(key) for key in company_keys(terms)]
        return cls(pod, namespace_labels, terms, existing, sums)

    @property
    def rules_out(self) -> bool:
        """True if the pod or existing pods have required terms that may rule out a node."""
        return self.terms.are_required or bool(self._sums[AVERSE])

    def change(self, existing: PodInfo, node_labels: Mapping[str, str], by: int) -> None:
        """Count a pod as added to the node (1) or removed from it (-1)."""
        terms, found = self.terms, []
        for theirs in existing.required_anti_affinity_terms:
            if theirs.matches(self.pod, self.namespace_labels):
                found.append((AVERSE, theirs.topology_key))
        if is_company(terms, existing.pod):
            found += [(WANTED, key) for key in company_keys(terms)]
        for term in terms.required_anti_affinity:
            if term.matches(existing.pod):
                found.append((AVOIDED, term.topology_key))
        for what, key in found:
            if (domain := node_labels.get(key)) is not None:
                where = what, key, domain
                self._changes[where] = self._changes.get(where, 0) + by

    def any_at(self, what: int, topology_key: str, domain: str) -> bool:
        """Tell whether there is any of what is counted (WANTED, AVOIDED or AVERSE) in the domain."""
        count = self._changes.get((what, topology_key, domain), 0)
        for each in self._sums.get(what, ()):
            if each.domains.key == topology_key and (code := each.domains.column.code_of(domain)) >= 0:
                count += int(each.sums[code])
        return count > 0

    def keys(self, what: int) -> Collection[str]:
        """Return the topology keys for which there may be any of what is counted."""
        counted = [each.domains.key for each in self._sums.get(what, ())]
        return dict.fromkeys([*counted, *(key for changed, key, _ in self._changes if changed == what)])

    def verdicts(self, nodes: NodeTable) -> DomainVerdicts:
        """Return the verdicts by domain."""
        parts, statuses = [], []
        # In kube-scheduler's order of checks, since the first one gives the reason.
        for what in (WANTED, AVOIDED, AVERSE):
            for column, occupied in self._occupied(what, nodes):
                refused = self._without_company(column, occupied) if what == WANTED else occupied
                if refused is not None:
                    parts.append(ByDomain(column, refused))
                    statuses.append(_STATUSES[what])
        return DomainVerdicts(parts, statuses)

    def clone(self) -> RequiredState:
        return attrs.evolve(self, changes=dict(self._changes))

    @property
    def _may_be_first(self) -> bool:
        """True if the pod may be the first of its group: no pod matches its affinity terms yet, but it does itself."""
        matching = sum([each.count for each in self._sums[WANTED]])
        matching += sum([by for (what, _, _), by in self._changes.items() if what == WANTED])
        # Otherwise no pod of a group with affinity to itself could ever be placed.
        return matching <= 0 and is_company(self.terms, self.pod)

    def _without_company(self, column: EncodedColumn[str | None], occupied: Mask) -> Mask | None:
        """Return the domains that lack what is WANTED, True for nodes without label; None if no node is refused."""
        if column.is_on_all and (np.count_nonzero(occupied) == column.size or self._may_be_first):
            return None
        refused = ~occupied
        if self._may_be_first:
            refused[:-1] = False
        return refused

    def _occupied(self, what: int, nodes: NodeTable) -> Sequence[tuple[EncodedColumn[str | None], Mask]]:
        """Return by topology key in which domains there is any of what is counted, by code. Not to be changed.

        The extra last entry (nodes without label) is False.
        """
        counted = self._sums.get(what, ())
        if not self._changes:
            return [(each.domains.column, each.occupied) for each in counted]
        found: dict[str, Mask] = {}
        for each in counted:
            others = found.get(each.domains.key)
            # A copy to be changed below: the index's own is shared by all pods.
            found[each.domains.key] = each.occupied.copy() if others is None else others | each.occupied
        for changed, key, domain in self._changes:
            if changed == what:
                column = nodes.label(key)
                occupied = found.setdefault(key, np.zeros(column.size + 1, dtype=np.bool_))
                if (code := column.code_of(domain)) >= 0:
                    occupied[code] = self.any_at(what, key, domain)
        return [(nodes.label(key), occupied) for key, occupied in found.items()]
