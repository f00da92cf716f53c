"""The events that wake a pod which a pure pre_filter or filter refused, where the plugin names none itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.learning.learned import Hook, LearnedHook
from kschedfw.framework.learning.learned_plugin import UnreadNodes
from kschedfw.framework.learning.places import reads_of_node
from kschedfw.framework.learning.state_view import StateView
from kschedfw.framework.learning.views import Notes, object_view
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.results import PreFilterResult
from kschedfw.framework.status import Status

_MAY_REFUSE_TOO: Final = (
    *("pre_enqueue", "reserve", "permit"),
    *("pre_bind_pre_flight", "pre_bind", "bind", "placement_generate", "placement_feasible"),
    "pod_group_post_filter",
)
"""Hooks whose refusals other changes may turn, since they promise nothing."""
_IMAGES: Final = ("attribute", "image_states")


def learned_events(
    hooks: Mapping[str, Hook],
    learned: LearnedHook | None,
    find: Callable[[str], NodeInfo | None],
    *,
    is_pre_filter_pure: bool = True,
) -> tuple[ClusterEvent, ...] | None:
    """Return the subscriptions of a plugin that refuses pods by a pure pre_filter and filter alone.

    Return None where every event counts.

    Args:
        hooks: all hooks of the plugin, by name.
        learned: the learned form of its filter, if that is pure.
        find: returns the NodeInfo of a node by its name, as of the last cycle.
        is_pre_filter_pure: tells whether the plugin promises that of its pre_filter, if it has one.
    """
    # A profile may enable the plugin at other points alone; then it refuses nothing.
    if learned is None or "filter" not in hooks or any(hook in hooks for hook in _MAY_REFUSE_TOO):
        return None
    pre_filter = hooks.get("pre_filter")
    if pre_filter is not None and not is_pre_filter_pure:
        return None
    again = _FilterAgain(pre_filter, hooks["filter"], learned, find)
    return (
        ClusterEvent(EventResource.NODE, ActionType.ALL, again.after_node),
        ClusterEvent(EventResource.POD, ActionType.ALL, again.after_pod),
    )


@frozen
class _Answer:
    """An answer of the filter about a node, and what it may depend on besides the node object."""

    passes: bool
    reads_pods: bool = False
    reads_images: bool = False

    @property
    def is_by_node_object(self) -> bool:
        return not (self.reads_pods or self.reads_images)


_UNKNOWN: Final = _Answer(passes=True, reads_pods=True, reads_images=True)
"""The answer of hooks whose reads can't be followed."""


@frozen
class _FilterAgain:
    """Hints that ask the pre_filter and the filter again about a changed node.

    They may be called on another thread than that of the scheduling cycle, so they take notes of their own.
    """

    _pre_filter: Hook | None
    _filter: Hook
    _learned: LearnedHook
    _find: Callable[[str], NodeInfo | None]

    def after_node(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Return QUEUE if the pod passes on the node now and didn't before, or if more than the node object counts."""
        if _images_of(old) != _images_of(new) and self._reads_images():
            # Other nodes' images count on how many nodes they are.
            return QueueingHint.QUEUE
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        now = self._ask(pod, NodeInfo.of(new))
        if not now.is_by_node_object:
            # The pods on the node aren't known here.
            return QueueingHint.QUEUE
        if not now.passes or not isinstance(old, Node):
            return _queue_if(now.passes)
        # A node on which the pod passed before was refused by another plugin, whose hints tell of it.
        before = self._ask(pod, NodeInfo.of(old))
        return _queue_if(not (before.passes and before.is_by_node_object))

    def after_pod(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Return QUEUE if the pod itself has changed, or one on a node about whose pods the filter asks."""
        pods = [each for each in (old, new) if isinstance(each, Pod)]
        if any(each.uid == pod.uid for each in pods):
            return QueueingHint.QUEUE
        # Nominated pods count as if they were on their nodes. A pod that has lost its nomination names no node.
        names = {name for each in pods for name in (each.node_name, each.status.nominated_node_name) if name}
        if not names:
            return QueueingHint.QUEUE
        infos = [self._find(name) for name in sorted(names)]
        return _queue_if(any(info is None or self._ask(pod, info).reads_pods for info in infos))

    def _ask(self, pod: Pod, info: NodeInfo) -> _Answer:
        state, of_pod, of_node, of_state = CycleState(), Notes(), Notes(), Notes()
        if self._pre_filter is not None:
            nodes = UnreadNodes()
            found = self._pre_filter(state, pod, nodes)
            # A PreFilterResult's nodes may follow from reads that aren't noted here.
            if nodes.were_read or isinstance(found, PreFilterResult):
                return _UNKNOWN
            if isinstance(found, Status) and not found.is_success:
                # Without a filter that has something to do the pod passes; refused before it, it passes nowhere.
                return _Answer(passes=found.is_skip)
        answer = self._filter(
            StateView(state, of_state), object_view(pod, (), of_pod), object_view(info, (), of_node)
        )
        passes = answer is None or (isinstance(answer, Status) and answer.is_success)
        # The state that pre_filter wrote follows from the pod; without pre_filter, others wrote it.
        reads_state = bool(of_state.places) and self._pre_filter is None
        if of_pod.problem or of_node.problem or of_state.problem or reads_state:
            return _UNKNOWN
        places = of_node.places
        return _Answer(
            passes, reads_of_node(places) is Reads.PODS, any(place[:1] == (_IMAGES,) for place in places)
        )

    def _reads_images(self) -> bool:
        places = tuple(self._learned.of_node.places)
        return bool(self._learned.problem) or not places or any(place[:1] == (_IMAGES,) for place in places)


def _images_of(node: object | None) -> object:
    return node.status.images if isinstance(node, Node) else ()


def _queue_if(may_help: bool) -> QueueingHint:
    return QueueingHint.QUEUE if may_help else QueueingHint.SKIP
