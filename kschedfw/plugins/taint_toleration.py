"""TaintToleration: nodes that repel pods."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from kschedfw.api.node import Node, TaintEffect
from kschedfw.api.pod import Pod, Toleration
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.results import IntArray
from kschedfw.framework.status import Status
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._normalize import normalized
from kschedfw.plugins._tolerations import has_untolerated_taint, tolerates

_UNTOLERATED = Status.unresolvable("node(s) had untolerated taint(s)")
_SOFT_TOLERATIONS = StateKey[tuple[Toleration, ...]]("TaintToleration.soft_tolerations")


class TaintToleration(Plugin):
    """Refuses nodes with a NoSchedule or NoExecute taint that the pod doesn't tolerate.

    Among the others those with fewer untolerated PreferNoSchedule taints score higher.
    """

    name: ClassVar[str] = "TaintToleration"
    reads: ClassVar[Reads | None] = Reads.NODE

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.spec.tolerations

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        taints = node_info.node.spec.taints
        if taints and has_untolerated_taint(taints, pod.spec.tolerations):
            return _UNTOLERATED
        return None

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> None:
        soft = (None, TaintEffect.PREFER_NO_SCHEDULE)
        tolerations = tuple(toleration for toleration in pod.spec.tolerations if toleration.effect in soft)
        state.write(_SOFT_TOLERATIONS, tolerations)

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        """How many PreferNoSchedule taints the pod doesn't tolerate; fewer are better."""
        tolerations = state.read(_SOFT_TOLERATIONS)
        count = 0
        for taint in node_info.node.spec.taints:
            if taint.effect is TaintEffect.PREFER_NO_SCHEDULE and not tolerates(tolerations, taint):
                count += 1
        return count

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        return normalized(scores, reverse=True)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(
                EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _after_node_change
            ),
            ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION, _after_toleration_change),
        ]


def _after_node_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    return queue_if(not _accepts(old, pod) and _accepts(new, pod))


def _accepts(node: object | None, pod: Pod) -> bool:
    return isinstance(node, Node) and not has_untolerated_taint(node.spec.taints, pod.spec.tolerations)


def _after_toleration_change(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    return queue_if(isinstance(new, Pod) and new.uid == pod.uid)
