"""Hard constraints: the counts of every domain, and the nodes that would make the skew too great."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import ByDomain, DomainVerdicts, IntArray, Node, Pod, Snapshot, Status
from kschedfw.api import selector_text
from kschedfw.api.records import define
from kschedfw.framework.diagnosis import Evidence, EvidenceValue
from kschedfw.plugins.pod_topology_spread.constraints import SpreadConstraint, has_topologies
from kschedfw.plugins.pod_topology_spread.extents import Extent, Extents, NodeInclusion

REASON_SKEW = "node(s) didn't match pod topology spread constraints"
REASON_NO_LABEL = f"{REASON_SKEW} (missing required label)"

# Shared, since making a refusal per node and pod would cost more than the rest of the plugin.
_TOO_SKEWED = Status.unschedulable(REASON_SKEW)
_NO_LABEL = Status.unresolvable(REASON_NO_LABEL)

# kube-scheduler's, math.MaxInt32.
_NO_MINIMUM = (1 << 31) - 1
"""The minimum over no domain: so large that no count exceeds it."""


@define(eq=False)
class ConstraintCounts:
    """The matching pods per domain of one constraint.

    The counts of pre_filter, `counts` by code and their minimum `least`, are shared by all clones and never
    change. `changed` has the present counts of domains with added or removed pods, by name, since these may be
    domains without a node in the snapshot.
    """

    constraint: SpreadConstraint
    extent: Extent
    counts: IntArray
    least: int
    changed: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, constraint: SpreadConstraint, extent: Extent, counts: IntArray) -> ConstraintCounts:
        return cls(constraint, extent, counts, _least(counts, extent.occupied, extent.domains))

    def clone(self) -> ConstraintCounts:
        return ConstraintCounts(self.constraint, self.extent, self.counts, self.least, dict(self.changed))

    def change(self, domain: str, by: int) -> None:
        """Add this many matching pods to the domain; a negative number removes them."""
        self.changed[domain] = self.count(domain) + by

    def count(self, domain: str) -> int:
        """Return the number of matching pods in a domain; 0 for an unknown one."""
        changed = self.changed.get(domain)
        return self._counted(domain) if changed is None else changed

    def allowed(self) -> int:
        """Return the greatest count at which a domain can still take the pod."""
        constraint = self.constraint
        # With fewer domains than minDomains, the global minimum is 0 (KEP-3022).
        least = 0 if self._number_of_domains() < constraint.min_domains else self._present_least()
        return constraint.max_skew - constraint.self_match + least

    def evidence(self, domain: str | None) -> Evidence | None:
        """Return evidence of the counts that keep the pod out of a domain; None if it may go there.

        Domain None stands for a node without label.
        """
        constraint = self.constraint
        key, max_skew = constraint.topology_key, constraint.max_skew
        selector = selector_text(constraint.siblings.selector)
        asked = f"spread over {key}, maxSkew {max_skew}, of pods with {selector}"
        values: dict[str, EvidenceValue] = {
            "topologyKey": key,
            "domain": domain,
            "maxSkew": max_skew,
            "selector": selector,
        }
        if domain is None:
            return Evidence(asked, f"no label {key}", values=values, code="topology-spread-no-label")
        count, allowed = self.count(domain), self.allowed()
        if count <= allowed:
            return None
        least = allowed - max_skew + constraint.self_match
        skew = count + constraint.self_match - least
        values |= {"matching": count, "minimum": least, "skew": skew}
        minimum = f", {least} in the emptiest domain"
        if self._present_least() != least:
            there, wanted = self._number_of_domains(), constraint.min_domains
            values |= {"domains": there, "minDomains": wanted}
            minimum = f"; the minimum counts as 0 with {there} of the {wanted} domains of minDomains"
        return Evidence(
            asked,
            f"{count} of them in {domain}{minimum}: the skew would be {skew}",
            gap=(skew - max_skew) / max_skew,
            values=values,
            code="topology-spread",
        )

    def refused(self) -> Iterator[tuple[ByDomain, Status]]:
        """Yield the domains that are too full, and the nodes without label, if there are any, with the reason."""
        counts, column = self.counts, self.extent.column
        if self.changed:
            counts = counts.copy()
            for domain, count in self.changed.items():
                if (code := column.code_of(domain)) >= 0:
                    counts[code] = count
        # NumPy finds the position of an extreme much faster than its value.
        if len(counts) and int(counts[counts.argmax()]) > (allowed := self.allowed()):
            too_full = np.zeros(len(counts) + 1, dtype=np.bool_)
            np.greater(counts, allowed, out=too_full[:-1])
            yield ByDomain(column, too_full), _TOO_SKEWED
        if self.extent.unlabelled is not None:
            lacking = np.zeros(len(counts) + 1, dtype=np.bool_)
            lacking[-1] = True
            yield ByDomain(column, lacking), _NO_LABEL

    def _number_of_domains(self) -> int:
        # A domain that a pod was added to or removed from is in kube-scheduler's map of counts, even without a counted
        # node in the snapshot.
        changed = self.changed
        return self.extent.domains + sum([not self._is_occupied(domain) for domain in changed])

    def _present_least(self) -> int:
        if not self.changed:
            return self.least
        least_changed = min(self.changed.values())
        # Otherwise the minimum is in an unchanged domain, whose count is at least the former minimum …
        if least_changed <= self.least:
            return least_changed
        # … and equal to it, unless all domains that had it have changed.
        if all(self._counted(domain) > self.least for domain in self.changed):
            return self.least
        unchanged = self.extent.occupied.copy()
        for domain in self.changed:
            if (code := self.extent.column.code_of(domain)) >= 0:
                unchanged[code] = False
        return min(least_changed, _least(self.counts, unchanged, int(np.count_nonzero(unchanged))))

    def _counted(self, domain: str) -> int:
        code = self.extent.column.code_of(domain)
        return 0 if code < 0 else int(self.counts[code])

    def _is_occupied(self, domain: str) -> bool:
        code = self.extent.column.code_of(domain)
        return code >= 0 and bool(self.extent.occupied[code])


@define(eq=False)
class HardSpread:
    """State written by pre_filter: the pod counts by domain of each hard constraint."""

    inclusion: NodeInclusion
    constraints: tuple[SpreadConstraint, ...]
    domains: tuple[ConstraintCounts, ...]

    @classmethod
    def of(
        cls, pod: Pod, constraints: tuple[SpreadConstraint, ...], snapshot: Snapshot, extents: Extents
    ) -> HardSpread:
        """Return the state with pods counted on all nodes; only nodes that have all topology labels take part."""
        inclusion = NodeInclusion(pod, extents.compares)
        required = tuple([constraint.topology_key for constraint in constraints])
        domains = []
        for constraint in constraints:
            extent = extents.of(snapshot.table, inclusion, constraint, required)
            domains.append(
                ConstraintCounts.of(constraint, extent, extent.count(constraint.siblings, snapshot))
            )
        return cls(inclusion, constraints, tuple(domains))

    def clone(self) -> HardSpread:
        return HardSpread(
            self.inclusion, self.constraints, tuple(domains.clone() for domains in self.domains)
        )

    def change(self, other: Pod, node: Node, by: int) -> None:
        """Count `other` as added to the node (1) or removed from it (-1).

        As in kube-scheduler, terminating pods and empty selectors aren't excepted here, unlike in counting.
        """
        labels = node.metadata.labels
        if not has_topologies(labels, self.constraints):
            return
        for constraint, domains in zip(self.constraints, self.domains, strict=True):
            if constraint.siblings.matches_regardless(other) and self.inclusion.includes(node, constraint):
                domains.change(labels[constraint.topology_key], by)

    def evidence(self, node_labels: Mapping[str, str]) -> Iterator[Evidence]:
        """Yield evidence for the refusal of a node: one entry for each constraint that it breaks."""
        for constraint, domains in zip(self.constraints, self.domains, strict=True):
            found = domains.evidence(node_labels.get(constraint.topology_key))
            if found is not None:
                yield found

    def verdicts(self) -> DomainVerdicts:
        """Return the verdicts by domain of the constraints that may refuse a node."""
        found = [each for domains in self.domains for each in domains.refused()]
        return DomainVerdicts([part for part, _ in found], [status for _, status in found])


def _least(counts: IntArray, among: npt.NDArray[np.bool_], how_many: int) -> int:
    if how_many == 0:
        return _NO_MINIMUM
    counted = counts if how_many == len(counts) else counts[among]
    return int(counted[counted.argmin()])
