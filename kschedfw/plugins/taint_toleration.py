"""TaintToleration: refuses nodes whose taints the pod doesn't tolerate."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    IntArray,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw.api import Taint, TaintEffect, Toleration
from kschedfw.framework.gate_table import TAINT_TOLERATION_COMPARISON_OPERATORS
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins._normalize import normalized
from kschedfw.plugins._tolerations import has_untolerated_taint, sorted_tolerations, tolerates

_UNTOLERATED = Status.unresolvable("node(s) had untolerated taint(s)")
# A toleration without an effect matches taints of all effects.
_SOFT = (None, TaintEffect.PREFER_NO_SCHEDULE)
_SOFT_TOLERATIONS = StateKey[tuple[Toleration, ...]]("TaintToleration.soft_tolerations")


class TaintToleration(Plugin):
    """Refuses nodes with a NoSchedule or NoExecute taint that the pod doesn't tolerate.

    Of the other nodes, those with fewer untolerated PreferNoSchedule taints score higher.
    """

    name = "TaintToleration"
    pure = True
    reads = Reads.NODE

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.compares = handle.feature_gates.enabled(TAINT_TOLERATION_COMPARISON_OPERATORS)

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return sorted_tolerations(pod)

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        taints = node_info.node.spec.taints
        if taints and has_untolerated_taint(taints, pod.spec.tolerations, compares=self.compares):
            return _UNTOLERATED
        return None

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> None:
        tolerations = pod.spec.tolerations
        state.write(_SOFT_TOLERATIONS, tuple(each for each in tolerations if each.effect in _SOFT))

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        """Return the number of untolerated PreferNoSchedule taints; `normalize_score` makes fewer better."""
        tolerations = state.read(_SOFT_TOLERATIONS)
        return _untolerated_soft(node_info.node.spec.taints, tolerations, compares=self.compares)

    @hookimpl
    def normalize_score(self, scores: IntArray) -> IntArray:
        return normalized(scores, reverse=True)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(
                EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, self._after_node_change
            ),
            ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION, _after_toleration_change),
        ]

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        return queue_if(not self._accepts(old, pod) and self._accepts(new, pod))

    def _accepts(self, node: object | None, pod: Pod) -> bool:
        return isinstance(node, Node) and not has_untolerated_taint(
            node.spec.taints, pod.spec.tolerations, compares=self.compares
        )


def _untolerated_soft(taints: Sequence[Taint], tolerations: Sequence[Toleration], *, compares: bool) -> int:
    count = 0
    for taint in taints:
        if taint.effect is TaintEffect.PREFER_NO_SCHEDULE and not tolerates(
            tolerations, taint, compares=compares
        ):
            count += 1
    return count


def _after_toleration_change(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
    # The API lets tolerations only be added, so any change may help.
    return queue_if(isinstance(new, Pod) and new.uid == pod.uid)
