"""One attempt to schedule one pod, from the queue to binding or failure."""

from __future__ import annotations

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.framework import Framework
from kschedfw.scheduler.generic_scheduler import ScheduleResult

CLEAR_NOMINATION = PostFilterResult.nominate("")
"""The post_filter result that clears an earlier nomination of the pod."""


@attrs.define(eq=False)
class Attempt:
    """An attempt to schedule a pod: the values that its steps share.

    `started` is on the clock's monotonic scale, in seconds. `assumed` is the pod with the chosen node, once a
    node is chosen. Once `is_binding` is set, the binding cycle ends the attempt; once `is_bound` is set,
    nothing is undone any more. Without `may_preempt`, post_filter plugins don't run.
    """

    info: QueuedPodInfo
    framework: Framework
    started: float
    state: CycleState = attrs.field(factory=CycleState)
    result: ScheduleResult | None = None
    assumed: Pod | None = None
    is_binding: bool = False
    may_preempt: bool = True
    is_bound: bool = False

    @property
    def pod(self) -> Pod:
        return self.info.pod
