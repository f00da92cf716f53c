"""Whom a pod may preempt where there are elastic quotas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from kschedfw import Handle, NodeInfo, Pod, PodInfo, PreemptionRules
from kschedfw_capacity.amounts import Amounts
from kschedfw_capacity.demand import Demand


class QuotaRules(PreemptionRules):
    """The rules for one pod, which asks for what `demand` says.

    * Within the min of its quota it takes back what others have borrowed: it may preempt pods of any priority in other
      namespaces that use more than their min, and no others.
    * Beyond its min it may preempt less important pods of its own namespace.
    * Without a quota it may preempt less important pods that have none either.
    """

    def __init__(self, handle: Handle, demand: Demand) -> None:
        super().__init__(handle)
        self._demand = demand

    def may_preempt(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        theirs, quotas = victim.pod.namespace, self._demand.quotas
        if self._demand.takes_back:
            return theirs != pod.namespace and theirs in quotas and quotas[theirs].is_over_min
        is_peer = theirs == pod.namespace if self._demand.has_quota else theirs not in quotas
        return is_peer and super().may_preempt(pod, victim, node_info)

    def potential_victims(self, pod: Pod, node_info: NodeInfo) -> Sequence[PodInfo]:
        """Pods on the node that may be evicted together: of a namespace that borrows, only until it does no longer."""
        allowed = super().potential_victims(pod, node_info)
        if not self._demand.takes_back or not allowed:
            return allowed
        quotas = self._demand.quotas.clone()
        leaving = set()
        for info in reversed(self._by_importance(allowed)):
            namespace = info.pod.namespace
            if quotas[namespace].is_over_min:
                quotas.remove(namespace, Amounts.requested_by(info.pod))
                leaving.add(info)
        # In their own order, by which it is decided among equals.
        return [info for info in allowed if info in leaving]

    def offset_and_num_candidates(self, num_nodes: int) -> tuple[int, int]:
        """All nodes, from the first one on."""
        return 0, num_nodes

    def _by_importance(self, infos: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """The most important first; those that are going anyway last."""

        def compare(first: PodInfo, second: PodInfo) -> int:
            one, other = first.pod, second.pod
            if one.is_terminating != other.is_terminating:
                return 1 if one.is_terminating else -1
            return self.more_important(other, one) - self.more_important(one, other)

        return sorted(infos, key=cmp_to_key(compare))
