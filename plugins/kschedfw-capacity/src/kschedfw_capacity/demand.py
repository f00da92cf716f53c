"""What a pod asks of the quotas in its scheduling cycle."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kschedfw import Pod, PodInfo
from kschedfw_capacity.amounts import Amounts
from kschedfw_capacity.quota import Quotas


@attrs.define
class Demand:
    """The quotas as the pod finds them, and what it asks of them together with pods that have the first claim.

    These are nominated pods, which wait for their victims to go. In the pod's own namespace, they are those of its
    priority or a higher one; elsewhere, all those whose namespace doesn't borrow.
    """

    quotas: Quotas
    namespace: str
    from_own: Amounts
    """What it asks of its own quota: its request and those of nominated pods in its namespace."""
    from_all: Amounts
    """What it asks of all quotas: the same with the requests of nominated pods in other namespaces."""
    _counted: frozenset[str] = frozenset()
    """The uids of the nominated pods that are among these."""

    @classmethod
    def of(cls, pod: Pod, quotas: Quotas, nominated: Iterable[Pod]) -> Demand:
        from_own = from_all = Amounts.requested_by(pod)
        counted = set()
        for other in nominated:
            theirs = other.namespace
            if other.uid == pod.uid or theirs not in quotas:
                continue
            request = Amounts.requested_by(other)
            if theirs == pod.namespace:
                if other.priority < pod.priority:
                    continue
                from_own += request
            elif quotas[theirs].is_over_min:
                continue
            from_all += request
            counted.add(other.uid)
        return cls(quotas, pod.namespace, from_own, from_all, frozenset(counted))

    @property
    def has_quota(self) -> bool:
        return self.namespace in self.quotas

    @property
    def is_over_max(self) -> bool:
        """True if the pod's namespace would use more than its max."""
        return self.has_quota and self.quotas[self.namespace].is_over_max_with(self.from_own)

    @property
    def is_over_all_mins(self) -> bool:
        """True if there isn't enough left to borrow."""
        return self.has_quota and self.quotas.are_over_min_with(self.from_all)

    @property
    def takes_back(self) -> bool:
        """True if the pod asks for no more than its namespace is sure to get."""
        return self.has_quota and not self.quotas[self.namespace].is_over_min_with(self.from_own)

    def add(self, info: PodInfo) -> None:
        """Count a pod as if it were on a node; nominated pods that are counted already aren't counted twice."""
        if info.pod.uid not in self._counted:
            self.quotas.add(info.pod.namespace, Amounts.requested_by(info.pod))

    def remove(self, info: PodInfo) -> None:
        """Count it as if it weren't."""
        if info.pod.uid not in self._counted:
            self.quotas.remove(info.pod.namespace, Amounts.requested_by(info.pod))

    def clone(self) -> Demand:
        return attrs.evolve(self, quotas=self.quotas.clone())
