"""The rules which pods a pod may preempt if there are elastic quotas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

from kschedfw import CycleState, Handle, NodeInfo, Pod, PodInfo, Status
from kschedfw.preemption import Candidate, DisruptionBudgets, PreemptionRules, Victims
from kschedfw_capacity.amounts import Amounts
from kschedfw_capacity.demand import Demand


class QuotaRules(PreemptionRules):
    """Preemption rules for one pod whose amounts `demand` gives.

    * Pods that are being deleted are removed first, in every namespace. They are victims without a cost.
    * A pod within its namespace's min takes back lent quota: it may preempt pods of any priority, only in other
      namespaces that use more than their min.
    * A pod beyond its namespace's min may preempt less important pods of its own namespace.
    * A pod without a quota may preempt less important pods in namespaces without a quota.
    """

    def __init__(self, handle: Handle, demand: Demand) -> None:
        super().__init__(handle)
        self._demand = demand

    def may_preempt(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        if victim.pod.is_terminating:
            return True
        theirs, quotas = victim.pod.namespace, self._demand.quotas
        if self._demand.takes_back:
            return theirs != pod.namespace and theirs in quotas and quotas[theirs].is_over_min
        is_peer = theirs == pod.namespace if self._demand.has_quota else theirs not in quotas
        return is_peer and super().may_preempt(pod, victim, node_info)

    def potential_victims(self, pod: Pod, node_info: NodeInfo) -> Sequence[PodInfo]:
        """Return the pods on the node that may be evicted together.

        When lent quota is taken back, a namespace loses pods only until it no longer borrows.
        """
        allowed = super().potential_victims(pod, node_info)
        going, staying = _by_fate(allowed)
        if not self._demand.takes_back or not staying:
            return allowed
        quotas = self._demand.quotas.clone()
        for info in going:
            quotas.remove(info.pod.namespace, Amounts.requested_by(info.pod))
        leaving = set(going)
        # The least important first, each only while its namespace still borrows.
        for info in reversed(self.by_importance(staying)):
            namespace = info.pod.namespace
            if quotas[namespace].is_over_min:
                quotas.remove(namespace, Amounts.requested_by(info.pod))
                leaving.add(info)
        # Keep the snapshot's order: it decides between equally important pods.
        return [info for info in allowed if info in leaving]

    def select_victims(
        self,
        state: CycleState,
        pod: Pod,
        node_info: NodeInfo,
        potential: Sequence[PodInfo],
        budgets: DisruptionBudgets,
    ) -> Victims | Status:
        """Return the victims: pods that must be evicted, then pods that are already being deleted."""
        going, staying = _by_fate(potential)
        for info in going:
            # They leave in any case, so the others are chosen as if they had left.
            node_info.remove_pod(info.pod)
            status = self.handle.framework.run_pre_filter_remove_pod(state, pod, info, node_info)
            if not status.is_success:
                return status
        evicted = super().select_victims(state, pod, node_info, staying, budgets)
        if isinstance(evicted, Status):
            return evicted
        freed = tuple(info.pod for info in self.by_importance(going))
        return attrs.evolve(evicted, pods=(*evicted.pods, *freed))

    def score_functions(self) -> Sequence[Callable[[Candidate], float]]:
        """Return DefaultPreemption's criteria, applied to pods that aren't being deleted already.

        A candidate without such pods scores highest.
        """
        return [_by_the_evicted(each) for each in super().score_functions()]

    def offset_and_num_candidates(self, num_nodes: int) -> tuple[int, int]:
        """Return that all nodes are candidates, starting at the first one."""
        # As in scheduler-plugins. So no random number is drawn, unlike in DefaultPreemption.
        return 0, num_nodes


def _by_fate(infos: Sequence[PodInfo]) -> tuple[Sequence[PodInfo], Sequence[PodInfo]]:
    """Split pods into those that are being deleted and the others."""
    going = [info for info in infos if info.pod.is_terminating]
    return going, [info for info in infos if not info.pod.is_terminating]


def _by_the_evicted(score: Callable[[Candidate], float]) -> Callable[[Candidate], float]:
    def score_of(candidate: Candidate) -> float:
        evicted = tuple(pod for pod in candidate.victims.pods if not pod.is_terminating)
        if not evicted:
            return math.inf
        victims = attrs.evolve(candidate.victims, pods=evicted)
        return score(attrs.evolve(candidate, victims=victims))

    return score_of
