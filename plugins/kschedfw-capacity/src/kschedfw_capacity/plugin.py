"""The plugin CapacityScheduling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    NodeToStatus,
    Plugin,
    Pod,
    PodInfo,
    PostFilterResult,
    QueueingHint,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.preemption import PreemptionEvaluator, PreemptionPlan
from kschedfw_capacity.demand import Demand
from kschedfw_capacity.elastic_quota import ElasticQuota
from kschedfw_capacity.quota import Quotas
from kschedfw_capacity.rules import QuotaRules
from kschedfw_capacity.usage import Usage

_DEMAND = StateKey[Demand]("CapacityScheduling.demand")

_MAY_SUIT = (
    ActionType.ADD
    | ActionType.UPDATE_NODE_ALLOCATABLE
    | ActionType.UPDATE_NODE_LABEL
    | ActionType.UPDATE_NODE_TAINT
)

_NO_ROOM = Status.unschedulable("node(s) left no room within the elastic quotas")


class CapacityScheduling(Plugin):
    """Keeps namespaces within their elastic quotas, and lets a namespace take back what it has lent.

    Semantics: kubernetes-sigs/scheduler-plugins `CapacityScheduling`. Pods in namespaces without an ElasticQuota are
    not restricted.

    No hook is pure: pre_filter reads quotas and all pods with one, and preemption changes what it wrote.
    """

    name = "CapacityScheduling"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._listed: Sequence[ElasticQuota] = ()

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        quotas = self._quotas()
        if pod.namespace not in quotas:
            return Status.skip()
        # A copy: preemption's dry runs add and remove pods in it, while `Usage` keeps the original up to date.
        demand = Demand.of(pod, quotas.clone(), self._nominated())
        state.write(_DEMAND, demand)
        if demand.is_over_max:
            why = f"ElasticQuota {pod.namespace} is more than Max"
        elif demand.is_over_all_mins:
            why = "total ElasticQuota used is more than min"
        else:
            return None
        return Status.unschedulable(f"Pod {pod.key} is rejected in PreFilter because {why}")

    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, pod_info_to_add: PodInfo) -> None:
        state.read(_DEMAND).add(pod_info_to_add)

    @hookimpl
    def pre_filter_remove_pod(self, state: CycleState, pod_info_to_remove: PodInfo) -> None:
        state.read(_DEMAND).remove(pod_info_to_remove)

    @hookimpl
    def filter(self, state: CycleState) -> Status | None:
        """Check the quotas again, as `pre_filter` did.

        The result may differ: nominated pods may have been added to the demand, or victims removed from it.
        """
        demand = state.read(_DEMAND)
        return _NO_ROOM if demand.is_over_max or demand.is_over_all_mins else None

    @hookimpl
    def filter_batch(self, state: CycleState, rows: npt.NDArray[np.int64]) -> Verdicts:
        # Quotas don't depend on the node, so one answer holds for all rows.
        code = 0 if self.filter(state) is None else 1
        return Verdicts(np.full(len(rows), code, dtype=np.int64), (Status.success(), _NO_ROOM))

    @hookimpl
    def post_filter(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        return self._evaluator(state, pod).preempt(state, pod, node_to_status)

    def plan(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> PreemptionPlan:
        """Return what `post_filter` would do, without doing it. Explanations use this."""
        return self._evaluator(state, pod).plan(state, pod, node_to_status)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        gone = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        return [
            # Any pod that goes, with a quota or without, may leave enough room beside the victims of a preemption.
            ClusterEvent(EventResource.ASSIGNED_POD, gone),
            ClusterEvent(ElasticQuota.kind, ActionType.ALL, self._after_quota_change),
            # The pods of a deleted node no longer count against quotas, although they may exist for a while longer.
            # Preempting may be enough on a node that is new, larger, or open to the pod now.
            ClusterEvent(EventResource.NODE, ActionType.DELETE | _MAY_SUIT),
        ]

    def _evaluator(self, state: CycleState, pod: Pod) -> PreemptionEvaluator:
        # A pod without a quota was skipped by `pre_filter`, but may preempt others without one.
        known = _DEMAND in state
        demand = state.read(_DEMAND) if known else Demand.of(pod, self._quotas(), self._nominated())
        return PreemptionEvaluator(self.name, self.handle, QuotaRules(self.handle, demand))

    @cached_property
    def _usage(self) -> Usage:
        return Usage(self.handle.snapshot.table)

    def _quotas(self) -> Quotas:
        """Return the quotas in this cycle. Callers must not change them."""
        listed = self.handle.cluster.list(ElasticQuota)
        # By identity: a cluster returns the same list until an ElasticQuota changes.
        if listed is not self._listed:
            # Go from the youngest quota to the oldest, so that the oldest of a namespace overwrites the others.
            self._usage.measure_by({quota.namespace: quota.spec.bounds for quota in reversed(listed)})
            self._listed = listed
        return self._usage.quotas

    def _nominated(self) -> Iterator[Pod]:
        """Yield the pods that are nominated to existing nodes."""
        nominator, snapshot = self.handle.nominator, self.handle.snapshot
        for name in nominator.nominated_nodes():
            # Nominations may outlive their node.
            if name in snapshot:
                for info in nominator.nominated_pods_for_node(name):
                    yield info.pod

    def _after_quota_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:  # noqa: ARG002
        """Wake the pod when a quota's spec changes: there may be more to borrow, or a borrower to preempt."""
        before, after = ElasticQuota.of(old), ElasticQuota.of(new)
        if before is not None and after is not None and before.spec == after.spec:
            return QueueingHint.SKIP
        return QueueingHint.QUEUE
