"""NodeName: pods that name their node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.results import Verdicts
from kschedfw.framework.status import Status

_WRONG_NODE = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName(Plugin):
    """Refuses every node but the one in the pod's `nodeName`, where it has one."""

    name: ClassVar[str] = "NodeName"
    reads: ClassVar[Reads | None] = Reads.NODE

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.node_name

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
