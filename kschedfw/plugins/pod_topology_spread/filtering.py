"""Hard constraints: how full every domain is, and which nodes would make the skew too great."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.status import Status
from kschedfw.plugins.pod_topology_spread.constraints import Constraint
from kschedfw.plugins.pod_topology_spread.counting import NodeInclusion, PodCounter, has_topologies

REASON_SKEW = "node(s) didn't match pod topology spread constraints"
REASON_NO_LABEL = f"{REASON_SKEW} (missing required label)"

# Shared, since a refusal per node and pod would otherwise be the plugin's dearest part.
_TOO_SKEWED = Status.unschedulable(REASON_SKEW)
_NO_LABEL = Status.unresolvable(REASON_NO_LABEL)

_NO_MINIMUM = (1 << 31) - 1
"""The minimum over no domain at all; no skew above it exceeds anything."""


@attrs.define
class Domains:
    """Matching pods per domain of one constraint, with the least of these counts always at hand.

    The number of domains per count makes updates cheap: preemption makes one for every victim it considers.
    """

    counts: dict[str, int]
    _domains_with: Counter[int]
    least: int

    @classmethod
    def of(cls, counts: dict[str, int]) -> Domains:
        return cls(counts, Counter(counts.values()), min(counts.values(), default=_NO_MINIMUM))

    def change(self, domain: str, by: int) -> None:
        """Note that this many matching pods came to the domain, or left it."""
        old = self.counts.get(domain)
        new = self.counts[domain] = (old or 0) + by
        self._domains_with[new] += 1
        if old is not None:
            self._domains_with[old] -= 1
            if not self._domains_with[old]:
                del self._domains_with[old]
        if new < self.least:
            self.least = new
        elif old == self.least and old not in self._domains_with:
            self.least = min(self._domains_with)

    def clone(self) -> Domains:
        return Domains(dict(self.counts), self._domains_with.copy(), self.least)


@attrs.frozen
class HardSpread:
    """What pre_filter writes: the hard constraints of a pod, each with its domains."""

    constraints: tuple[Constraint, ...]
    domains: tuple[Domains, ...]

    @classmethod
    def of(cls, pod: Pod, constraints: tuple[Constraint, ...], nodes: Iterable[NodeInfo]) -> HardSpread:
        """Count over all nodes; only nodes that have all the topology labels take part."""
        inclusion = NodeInclusion.of(pod)
        counting = [(c, PodCounter(c.selector, pod.namespace), dict[str, int]()) for c in constraints]
        for info in nodes:
            labels = info.node.metadata.labels
            if not has_topologies(labels, constraints):
                continue
            for constraint, counter, per_domain in counting:
                if inclusion.includes(info.node, constraint):
                    domain = labels[constraint.topology_key]
                    per_domain[domain] = per_domain.get(domain, 0) + counter.count(info.pods)
        return cls(constraints, tuple(Domains.of(per_domain) for _, _, per_domain in counting))

    def clone(self) -> HardSpread:
        return HardSpread(self.constraints, tuple(domains.clone() for domains in self.domains))

    def change(self, pod: Pod, other: Pod, node: Node, by: int) -> None:
        """Count `other` as having come to the node (1) or left it (-1).

        As in kube-scheduler, this looks at neither of the two exceptions that counting makes: pods on their way
        out, and empty selectors.
        """
        labels = node.metadata.labels
        if other.namespace != pod.namespace or not has_topologies(labels, self.constraints):
            return
        inclusion = NodeInclusion.of(pod)
        for constraint, domains in zip(self.constraints, self.domains, strict=True):
            if constraint.selector.matches(other.labels) and inclusion.includes(node, constraint):
                domains.change(labels[constraint.topology_key], by)

    def refusal(self, node_labels: Mapping[str, str]) -> Status | None:
        """Why the pod can't go to a node with these labels, if it can't."""
        for constraint, domains in zip(self.constraints, self.domains, strict=True):
            domain = node_labels.get(constraint.topology_key)
            if domain is None:
                return _NO_LABEL
            # While there are fewer domains than wanted, an imaginary empty one is the emptiest.
            least = domains.least if len(domains.counts) >= constraint.min_domains else 0
            if domains.counts.get(domain, 0) + constraint.self_match - least > constraint.max_skew:
                return _TOO_SKEWED
        return None
