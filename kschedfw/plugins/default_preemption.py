"""DefaultPreemption: lower-priority pods make room for one that fits nowhere.

Semantics: kube-scheduler v1.36 `defaultpreemption`, with eviction before post_filter returns (see
`kschedfw.framework.preemption.eviction`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from kschedfw import (
    Code,
    CycleState,
    FieldError,
    Handle,
    NodeToStatus,
    Plugin,
    Pod,
    PostFilterResult,
    PreemptionEvaluator,
    PreemptionPlan,
    PreemptionRules,
    Status,
    hookimpl,
)
from kschedfw.framework.preemption.rules import (
    DEFAULT_MIN_CANDIDATE_NODES_ABSOLUTE,
    DEFAULT_MIN_CANDIDATE_NODES_PERCENTAGE,
)

_PERCENTAGE = "minCandidateNodesPercentage"
_ABSOLUTE = "minCandidateNodesAbsolute"


@attrs.frozen
class DefaultPreemptionArgs:
    """How many candidates to look for (kubescheduler.config.k8s.io DefaultPreemptionArgs).

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

    name: ClassVar[str] = "DefaultPreemption"
    args_type: ClassVar[type[object] | None] = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        rules = PreemptionRules(
            handle,
            min_candidate_nodes_percentage=args.min_candidate_nodes_percentage,
            min_candidate_nodes_absolute=args.min_candidate_nodes_absolute,
        )
        self._evaluator = PreemptionEvaluator(self.name, handle, rules)

    def plan(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> PreemptionPlan:
        """What `post_filter` would do, without doing it; for explanations."""
        plan = self._evaluator.plan(state, pod, node_to_status)
        return attrs.evolve(plan, status=self._introduced(plan.status))

    @hookimpl
    def post_filter(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        result, status = self._evaluator.preempt(state, pod, node_to_status)
        return result, self._introduced(status)

    def _introduced(self, status: Status) -> Status:
        """The status with words before its message that tell it from the filters' in the pod's condition."""
        if not status.reasons:
            return status
        if status.code is Code.ERROR:
            return status.prefixed("preemption", self.name)
        return Status(status.code, (f"preemption: {status.message}",))
