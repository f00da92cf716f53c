"""SelectorSpread: spreads the pods of a service or controller (until v1.22; replaced by PodTopologySpread)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import ClassVar

from kschedfw import (
    MAX_NODE_SCORE,
    CycleState,
    Handle,
    IntArray,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    Reads,
    StateKey,
    StateKeyError,
    Status,
    hookimpl,
)
from kschedfw.api import Selector
from kschedfw.plugins import DefaultSelectors

_ZONE_WEIGHT = 2.0 / 3.0
"""The zone's share of the score, if nodes have zones. The rest is the node's."""

# Former labels take precedence.
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")

_SELECTOR = StateKey[Selector]("SelectorSpread.selector")


class SelectorSpread(Plugin):
    """Prefers nodes, and even more zones, with few pods of the pod's services and controller.

    Pods with topology spread constraints of their own are ignored. The selector is looked up in the cluster, and
    normalize_score reads the zones of the nodes, so neither pre_score nor normalize_score is pure.
    """

    name: ClassVar[str] = "SelectorSpread"
    reads: ClassVar[Reads | None] = Reads.PODS

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._selectors = DefaultSelectors(handle.cluster)

    def sign(self, pod: Pod) -> Hashable | None:
        # Sign by the selector itself: services and controllers may change without a change of nodes or pods.
        return () if _is_left_alone(pod) else (pod.namespace, self._selector(pod))

    @hookimpl
    def pre_score(self, state: CycleState, pod: Pod) -> Status | None:
        if _is_left_alone(pod):
            return Status.skip()
        state.write(_SELECTOR, self._selector(pod))
        return None

    @hookimpl
    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the number of pods on the node that the selector of the pod's services and controller matches."""
        if _is_left_alone(pod):
            return 0
        try:
            selector = state.read(_SELECTOR)
        except StateKeyError:
            # The plugin may be enabled at score, but not at pre_score.
            selector = self._selector(pod)
        if selector.everything:
            return 0
        return sum(
            other.pod.namespace == pod.namespace
            and other.pod.metadata.deletion_timestamp is None
            and selector.matches(other.pod.labels)
            for other in node_info.pods
        )

    @hookimpl
    def normalize_score(self, pod: Pod, nodes: Sequence[NodeInfo], scores: IntArray) -> IntArray:
        if _is_left_alone(pod):
            return scores
        zones = [_zone(info.node) for info in nodes]
        by_zone: dict[tuple[str, str], int] = defaultdict(int)
        for zone, count in zip(zones, scores, strict=True):
            if any(zone):
                by_zone[zone] += int(count)
        most, most_in_zone = int(scores.max(initial=0)), max(by_zone.values(), default=0)
        for index, zone in enumerate(zones):
            score = _fewer_is_better(int(scores[index]), most)
            if any(zone):
                in_zone = _fewer_is_better(by_zone[zone], most_in_zone)
                # Computed in v1.20's order and truncated as by Go's conversion: the last bit of a float may decide.
                score = score * (1.0 - _ZONE_WEIGHT) + _ZONE_WEIGHT * in_zone
            scores[index] = int(score)
        return scores

    def _selector(self, pod: Pod) -> Selector:
        return self._selectors.of(pod)


class DefaultPodTopologySpread(SelectorSpread):
    """SelectorSpread under the name that it had in v1.17–v1.19."""

    name: ClassVar[str] = "DefaultPodTopologySpread"


def _is_left_alone(pod: Pod) -> bool:
    return bool(pod.spec.topology_spread_constraints)


def _fewer_is_better(count: int, most: int) -> float:
    return MAX_NODE_SCORE * ((most - count) / most) if most else float(MAX_NODE_SCORE)


def _zone(node: Node) -> tuple[str, str]:
    """Return the node's region and zone; a missing one is empty."""
    return _first(node, _REGION_LABELS), _first(node, _ZONE_LABELS)


def _first(node: Node, labels: Sequence[str]) -> str:
    return next((node.labels[label] for label in labels if label in node.labels), "")
