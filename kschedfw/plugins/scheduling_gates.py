"""SchedulingGates: holds back pods with scheduling gates."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw import ActionType, ClusterEvent, EventResource, Plugin, Pod, QueueingHint, Status, hookimpl
from kschedfw.plugins._hints import queue_if


class SchedulingGates(Plugin):
    """Keeps a pod out of the queue as long as it has a scheduling gate."""

    name = "SchedulingGates"

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        eliminated = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return [ClusterEvent(EventResource.POD, eliminated, _after_pod_update)]


def _after_pod_update(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    return queue_if(isinstance(new, Pod) and new.uid == pod.uid and not new.spec.scheduling_gates)
