"""One attempt to schedule one pod, from the queue to its end."""

from __future__ import annotations

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.framework import Framework
from kschedfw.scheduler.generic_scheduler import ScheduleResult

CLEAR_NOMINATION = PostFilterResult.nominate("")
"""A post_filter result that clears the pod's nomination."""


@attrs.define(eq=False)
class Attempt:
    """The state of one attempt, from the scheduling cycle to the end of the binding cycle.

    `started` is on the clock's monotonic scale, in seconds. `assumed` is the pod bound to the chosen node, once there
    is one. From `is_binding` on, its binding cycle sees to its end; of one that `is_bound` nothing is undone, whatever
    still happens. Without `may_preempt`, no post_filter plugin is asked.
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
