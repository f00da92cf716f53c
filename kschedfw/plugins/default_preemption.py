"""DefaultPreemption: evicts pods of lower priority for a pod that fits nowhere.

Semantics: kube-scheduler v1.36 `defaultpreemption`, with eviction before post_filter returns unless pods are
scheduled in groups (see `kschedfw.framework.eviction`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import attrs

from kschedfw import (
    ActionType,
    ClusterEvent,
    Code,
    CycleState,
    EventResource,
    FieldError,
    Handle,
    NodeToStatus,
    Plugin,
    Pod,
    PostFilterResult,
    QueueingHint,
    Status,
    hookimpl,
)
from kschedfw.api import PodGroup, group_key
from kschedfw.api.records import frozen
from kschedfw.framework.gate_table import (
    GENERIC_WORKLOAD,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    WORKLOAD_AWARE_PREEMPTION,
)
from kschedfw.framework.preemption.group_rules import GroupAwareRules
from kschedfw.framework.preemption.rules import (
    DEFAULT_MIN_CANDIDATE_NODES_ABSOLUTE,
    DEFAULT_MIN_CANDIDATE_NODES_PERCENTAGE,
)
from kschedfw.framework.versions.v1_37 import GROUP_POST_FILTER, GROUP_VICTIMS
from kschedfw.preemption import PreemptionEvaluator, PreemptionPlan, PreemptionRules

_PERCENTAGE = "minCandidateNodesPercentage"
_ABSOLUTE = "minCandidateNodesAbsolute"


@frozen
class DefaultPreemptionArgs:
    """The number of candidates to look for (kubescheduler.config.k8s.io DefaultPreemptionArgs).

    A percentage (0–100) of the nodes where preemption may help, but at least the absolute number; not both 0.
    """

    min_candidate_nodes_percentage: int = DEFAULT_MIN_CANDIDATE_NODES_PERCENTAGE
    min_candidate_nodes_absolute: int = DEFAULT_MIN_CANDIDATE_NODES_ABSOLUTE

    def validate(self) -> Iterator[FieldError]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            yield FieldError.invalid(_PERCENTAGE, percentage, "not in valid range [0, 100]")
        if absolute < 0:
            yield FieldError.invalid(_ABSOLUTE, absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            for path, other in ((_PERCENTAGE, _ABSOLUTE), (_ABSOLUTE, _PERCENTAGE)):
                yield FieldError.invalid(path, 0, f"cannot be zero at the same time as {other}")


class DefaultPreemption(Plugin[DefaultPreemptionArgs]):
    """Evicts pods of lower priority, where that does least harm, and nominates the pod to their node."""

    name = "DefaultPreemption"
    args_type: ClassVar[type[object] | None] = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        # Gates never change, and the queue asks pre_enqueue about every pod.
        self._knows_groups = handle.feature_gates.enabled(GENERIC_WORKLOAD)
        takes_groups = self._knows_groups and handle.feature_gates.follows(GROUP_VICTIMS)
        rules = (GroupAwareRules if takes_groups else PreemptionRules)(
            handle,
            min_candidate_nodes_percentage=args.min_candidate_nodes_percentage,
            min_candidate_nodes_absolute=args.min_candidate_nodes_absolute,
        )
        self._evaluator = PreemptionEvaluator(self.name, handle, rules)

    def plan(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> PreemptionPlan:
        """Return the preemption that `post_filter` would carry out, without effects; for explanations."""
        objection = self._objection_to(pod)
        if objection:
            return PreemptionPlan(self._introduced(Status.unschedulable(objection)))
        plan = self._evaluator.plan(state, pod, node_to_status)
        return attrs.evolve(plan, status=self._introduced(plan.status))

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        evictions = self.handle.evictions
        if (key := self._group_of(pod)) and evictions.holds_back(self._uid_of(key)):
            return Status.unresolvable("waiting for the preemption for this pod group to be finished")
        if evictions.holds_back(pod.uid):
            return Status.unresolvable("waiting for the preemption for this pod to be finished")
        return None

    @hookimpl
    def post_filter(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        if objection := self._objection_to(pod):
            # kube-scheduler counts each call of PostFilter, whatever comes of it.
            self.handle.metrics.preemption_attempt()
            return None, self._introduced(Status.unschedulable(objection))
        result, status = self._evaluator.preempt(state, pod, node_to_status)
        return result, self._introduced(status)

    @hookimpl
    def pod_group_post_filter(self, preempt: Callable[[], Status]) -> Status:
        status = preempt()
        self.handle.metrics.group_preemption_attempt(status.code)
        return status

    def takes_members_alike(self, pod: Pod) -> bool:
        return bool(self._objection_to(pod))

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        # No pod is woken by these hints: a pod that waits for evictions is woken by the plugin that refused
        # it. A plugin without registered events would have its pods retried after every event.
        return [ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, _skip)]

    def _group_of(self, pod: Pod) -> str:
        return group_key(pod) if self._knows_groups else ""

    def _uid_of(self, key: str) -> str:
        group = self.handle.cluster.get(PodGroup, key)
        return "" if group is None else group.uid

    def _objection_to(self, pod: Pod) -> str:
        """Return why the pod, a member of a group, doesn't preempt by itself; empty if it does."""
        key = self._group_of(pod)
        if not key:
            return ""
        gates = self.handle.feature_gates
        if gates.follows(GROUP_POST_FILTER):
            return "not eligible due to workload aware preemption enabled"
        if gates.enabled(TOPOLOGY_AWARE_WORKLOAD_SCHEDULING):
            # Only with this gate the group matters at all, so that only then one that is gone is a reason by itself.
            group = self.handle.cluster.get(PodGroup, key)
            if group is None:
                return "pod group for pod not found"
            if group.spec.scheduling_constraints is not None:
                return "not eligible due to placement-based pod group scheduling limitation"
        if gates.enabled(WORKLOAD_AWARE_PREEMPTION):
            return "not eligible due to workload aware preemption enabled"
        return ""

    def _introduced(self, status: Status) -> Status:
        """Return the status with a prefix that tells it from the filters' messages in the pod's condition."""
        if not status.reasons:
            return status
        if status.code is Code.ERROR:
            return status.prefixed("preemption", self.name)
        return Status(status.code, (f"preemption: {status.message}",))


def _skip(_pod: Pod, _old: object | None, _new: object | None) -> QueueingHint:
    return QueueingHint.SKIP
