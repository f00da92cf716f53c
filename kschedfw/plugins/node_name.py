"""NodeName: refuses all nodes but the one that the pod names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kschedfw import (
    ActionType,
    ClusterEvent,
    EventResource,
    NodeInfo,
    Plugin,
    Pod,
    Reads,
    Status,
    hookimpl,
)

_WRONG_NODE = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName(Plugin):
    """Refuses every node but the one in the pod's `nodeName`, if it has one."""

    name = "NodeName"
    pure = True
    reads = Reads.NODE

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return pod.spec.node_name

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        wanted = pod.spec.node_name
        return _WRONG_NODE if wanted and wanted != node_info.name else None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD)]
