"""The amounts that a pod's scheduling cycle compares with the quotas."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kschedfw import Pod, PodInfo
from kschedfw_capacity.amounts import Amounts
from kschedfw_capacity.quota import Quotas


@attrs.define
class Demand:
    """The quotas at the start of a pod's scheduling cycle, and the amounts that are compared with them.

    The amounts include nominated pods, which wait until their victims are gone. In the pod's own namespace, nominated
    pods of the same or a higher priority are counted. In other namespaces, they are counted if the namespace doesn't
    borrow.
    """

    quotas: Quotas
    namespace: str
    from_own: Amounts
    """Amounts compared with the pod's own quota: its request, plus nominated pods of its namespace."""
    from_all: Amounts
    """Amounts compared with the sum of all quotas: `from_own`, plus nominated pods of other namespaces."""
    _counted: frozenset[str] = frozenset()
    """The uids of the nominated pods in `from_own` and `from_all`."""

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
        """Return whether the pod would bring its namespace above its max."""
        return self.has_quota and self.quotas[self.namespace].is_over_max_with(self.from_own)

    @property
    def is_over_all_mins(self) -> bool:
        """Return whether the pod would bring all namespaces above the sum of their mins.

        Then nothing is left to borrow.
        """
        return self.has_quota and self.quotas.are_over_min_with(self.from_all)

    @property
    def takes_back(self) -> bool:
        """Return whether the pod and its namespace's usage stay within the namespace's min."""
        return self.has_quota and not self.quotas[self.namespace].is_over_min_with(self.from_own)

    def add(self, info: PodInfo) -> None:
        """Count a pod as placed on a node. Nominated pods that `from_all` includes aren't counted twice."""
        if info.pod.uid not in self._counted:
            self.quotas.add(info.pod.namespace, Amounts.requested_by(info.pod))

    def remove(self, info: PodInfo) -> None:
        """Count a pod as removed from its node. Nominated pods that `from_all` includes are skipped, as in `add`."""
        if info.pod.uid not in self._counted:
            self.quotas.remove(info.pod.namespace, Amounts.requested_by(info.pod))

    def clone(self) -> Demand:
        return attrs.evolve(self, quotas=self.quotas.clone())
