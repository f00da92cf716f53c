"""NodeName: refuses all nodes but the one that the pod names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kschedfw import (
    ActionType,
    ClusterEvent,
    EventResource,
    IntArray,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    Reads,
    Status,
    Verdicts,
    hookimpl,
)

_WRONG_NODE = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName(Plugin):
    """Refuses every node but the one in the pod's `nodeName`, if it has one."""

    name = "NodeName"
    reads = Reads.NODE

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.spec.node_name

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return self.sign(pod)

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        wanted = pod.node_name
        return _WRONG_NODE if wanted and wanted != node_info.name else None

    @hookimpl
    def filter_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts:
        wanted = pod.node_name
        wrong = rows != nodes.rows.get(wanted, -1) if wanted else np.zeros(len(rows), dtype=np.bool_)
        return Verdicts.refuse(wrong, _WRONG_NODE)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD)]
