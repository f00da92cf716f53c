"""NodeUnschedulable: refuses cordoned nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kschedfw import (
    ActionType,
    ClusterEvent,
    EventResource,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    Status,
    hookimpl,
)
from kschedfw.api import Taint, TaintEffect
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._tolerations import sorted_tolerations, tolerates

_CORDONED = Status.unresolvable("node(s) were unschedulable")

# Cordoning a node also taints it; a pod that tolerates the taint passes both checks.
_TAINT = Taint("node.kubernetes.io/unschedulable", TaintEffect.NO_SCHEDULE)


class NodeUnschedulable(Plugin):
    """Refuses nodes with `unschedulable: true`, unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"
    pure = True
    reads = Reads.NODE

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return sorted_tolerations(pod)

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        if node_info.node.spec.unschedulable and not tolerates(pod.spec.tolerations, _TAINT):
            return _CORDONED
        return None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(
                EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _after_node_change
            ),
            ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION, _after_toleration_change),
        ]


def _after_node_change(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    was_schedulable = isinstance(old, Node) and not old.spec.unschedulable
    return queue_if(not was_schedulable and isinstance(new, Node) and not new.spec.unschedulable)


def _after_toleration_change(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    return queue_if(isinstance(new, Pod) and new.uid == pod.uid and tolerates(new.spec.tolerations, _TAINT))
