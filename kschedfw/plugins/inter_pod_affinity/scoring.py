"""Scores of preferred terms, the pod's own and existing pods', by domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from kschedfw import MAX_NODE_SCORE, ByDomain, DomainScores, IntArray, NodeTable, Normalizing
from kschedfw.framework.nodes.topology import TermKind, TermTally, TopologyIndex
from kschedfw.framework.nodes.topology.domains import Domains, DomainSums
from kschedfw.plugins.inter_pod_affinity.terms import OwnTerm


@attrs.frozen(eq=False)
class DomainWeights:
    """The sum of weights by the code of the domain, negative for repulsion; the extra last entry is 0."""

    domains: Domains
    weights: IntArray

    def add(self, sums: DomainSums, weight: int) -> None:
        self.weights[:-1] += sums.sums if weight == 1 else sums.sums * weight


@attrs.frozen(eq=False)
class Attraction:
    """State written by pre_score: the weight of each domain of each topology key."""

    by_key: Mapping[str, DomainWeights]

    @classmethod
    def of(cls, parts: Iterator[tuple[DomainSums, int]]) -> Attraction:
        """Return the weights of all parts, summed by domain.

        Parts without any pod in a domain don't count. A domain whose weights cancel each other out does, as in
        kube-scheduler.
        """
        by_key: dict[str, DomainWeights] = {}
        for sums, weight in parts:
            if sums.count:
                domains = sums.domains
                if domains.key not in by_key:
                    zeros = np.zeros(len(sums.sums) + 1, dtype=np.int64)
                    by_key[domains.key] = DomainWeights(domains, zeros)
                by_key[domains.key].add(sums, weight)
        return cls(by_key)

    def score(self, node_labels: Mapping[str, str]) -> int:
        score = 0
        for key, of_key in self.by_key.items():
            domain = node_labels.get(key)
            if domain is not None:
                score += int(of_key.weights[of_key.domains.column.code_of(domain)])
        return score

    def scores(self, nodes: NodeTable, rows: IntArray) -> IntArray:
        """Return the scores of many nodes, shape (k,)."""
        scores: IntArray | None = None
        for of_key in self.by_key.values():
            # Nodes without the label have domain -1, and so the last weight of all.
            its = of_key.weights.take(nodes.take(of_key.domains.column.codes, rows))
            scores = its if scores is None else scores + its
        return np.zeros(len(rows), dtype=np.int64) if scores is None else scores

    def by_domain(self) -> DomainScores:
        """Return the scores of all nodes, by domain."""
        parts = [ByDomain(each.domains.column.codes, each.weights) for each in self.by_key.values()]
        return DomainScores(parts, Normalizing.STRETCHED)


def parts_of_own_terms(terms: tuple[OwnTerm, ...], index: TopologyIndex) -> Iterator[tuple[DomainSums, int]]:
    """Yield the domains with pods that the pod's own preferred terms select, with the terms' weights."""
    for term in terms:
        yield index.counter(term.query).in_domains(term.topology_key), term.weight


_LISTED = ((TermKind.PREFERRED, TermKind.REQUIRED_AFFINITY),)
_ALL = (*_LISTED, (TermKind.UNLISTED_PREFERRED, TermKind.UNLISTED_REQUIRED_AFFINITY))


def parts_of_existing_terms(
    tally: TermTally, hard_weight: int, *, unlisted: bool
) -> Iterator[tuple[DomainSums, int]]:
    """Yield the terms of existing pods that select the pod. Required terms have the weight `hard_weight`.

    With `unlisted`, include terms of pods on trial whose nodes aren't listed as having pods with affinity.
    """
    for preferred, required in _ALL if unlisted else _LISTED:
        for sums in tally.of(preferred).values():
            yield sums, 1
        if hard_weight > 0:
            for sums in tally.of(required).values():
                yield sums, hard_weight


def normalized(scores: IntArray) -> IntArray:
    """Return scores with the range from lowest to highest stretched to 0–100; all 0 if there is no range.

    In float64 and in kube-scheduler's order of operations, then cut off: 100 × 0.29 is 28 to both.
    """
    # NumPy finds the position of an extreme much faster than its value.
    lowest = int(scores[scores.argmin()])
    spread = int(scores[scores.argmax()]) - lowest
    if not spread:
        return np.zeros_like(scores)
    fractions = (scores - lowest) / float(spread)
    fractions *= float(MAX_NODE_SCORE)
    return fractions.astype(np.int64)
