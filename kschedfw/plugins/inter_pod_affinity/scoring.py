"""Scores of preferred terms, the pod's own and existing pods', by domain."""

from __future__ import annotations

import attrs

from kschedfw import ByDomain, DomainScores, IntArray, Normalizing
from kschedfw.api.records import define
from kschedfw.framework.nodes.encoded_column import EncodedColumn
from kschedfw.framework.nodes.pod_info import AffinityTerms
from kschedfw.framework.nodes.topology import TermKind, TermTally, TopologyIndex
from kschedfw.framework.nodes.topology.domains import DomainSums

_LISTED = ((TermKind.PREFERRED, TermKind.REQUIRED_AFFINITY),)
_ALL = (*_LISTED, (TermKind.UNLISTED_PREFERRED, TermKind.UNLISTED_REQUIRED_AFFINITY))


@define(eq=False)
class Attraction:
    """State written by pre_score: the weight of each domain of each topology key.

    Weights are summed by the code of the domain, negative for repulsion; the extra last entry is 0.
    """

    by_key: dict[str, tuple[EncodedColumn[str | None], IntArray]] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, own: AffinityTerms, existing: TermTally | None, index: TopologyIndex, hard_weight: int
    ) -> Attraction:
        """Return the weights of the pod's preferred terms, and of existing pods' terms that select the pod.

        Required terms have the weight `hard_weight`.
        """
        found = cls()
        for sign, terms in ((1, own.preferred_affinity), (-1, own.preferred_anti_affinity)):
            for each in terms:
                sums = index.counter(each.term).in_domains(each.term.topology_key)
                found._add(sums, sign * each.weight)
        if existing is not None:
            # kube-scheduler looks at all nodes for a pod with preferred terms, else only at its lists of nodes with
            # affinity, which lack the nodes of pods on trial.
            for preferred, required in _ALL if own.are_preferred else _LISTED:
                for sums in existing.of(preferred).values():
                    found._add(sums, 1)
                if hard_weight > 0:
                    for sums in existing.of(required).values():
                        found._add(sums, hard_weight)
        return found

    def _add(self, sums: DomainSums, weight: int) -> None:
        """Add sums, unless no domain has a pod. Weights that cancel each other out count, as in kube-scheduler."""
        if sums.count:
            key, its = sums.domains.key, sums.padded if weight == 1 else sums.padded * weight
            column, others = self.by_key.get(key, (sums.domains.column, None))
            # Not in place, since `padded` is the index's own.
            self.by_key[key] = column, its if others is None else others + its

    def scores(self) -> DomainScores:
        """Return the scores of all nodes, by domain."""
        parts = [ByDomain(column, weights) for column, weights in self.by_key.values()]
        return DomainScores(parts, Normalizing.STRETCHED)
