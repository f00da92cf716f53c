"""NodePreferAvoidPods: avoids nodes whose annotation names the pod's controller (until v1.23).

Its default weight is 10000, so that no other plugin's score can outweigh it.
"""

from __future__ import annotations

import json
from typing import ClassVar

from kschedfw import MAX_NODE_SCORE, NodeInfo, Plugin, Pod, hookimpl

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"

_KINDS = ("ReplicationController", "ReplicaSet")

Controller = tuple[str, str]
"""A controller's kind and uid."""


class NodePreferAvoidPods(Plugin):
    """Scores nodes 0 if their annotation names the pod's ReplicaSet or ReplicationController, and others 100."""

    name: ClassVar[str] = "NodePreferAvoidPods"
    pure = True

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        controller = _controller(pod)
        annotation = node_info.node.annotations.get(ANNOTATION)
        if controller is None or annotation is None:
            return MAX_NODE_SCORE
        return 0 if controller in _avoided(annotation) else MAX_NODE_SCORE


def _controller(pod: Pod) -> Controller | None:
    owner = pod.metadata.controller
    return (owner.kind, owner.uid) if owner is not None and owner.kind in _KINDS else None


def _avoided(annotation: str) -> frozenset[Controller]:
    """Return the controllers that the annotation names; empty if it can't be parsed."""
    try:
        entries = json.loads(annotation).get("preferAvoidPods") or ()
        controllers = [entry.get("podSignature", {}).get("podController", {}) for entry in entries]
        return frozenset((each.get("kind", ""), each.get("uid", "")) for each in controllers)
    # The annotation may be any text, also JSON of another shape or of any depth.
    except (ValueError, AttributeError, TypeError, RecursionError):
        return frozenset()
