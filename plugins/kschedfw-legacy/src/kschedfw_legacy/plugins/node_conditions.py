"""CheckNode…: plugins for the conditions that a node reports (until v1.17).

Since then, taints express these conditions, and TaintToleration handles them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from kschedfw import Node, NodeInfo, Plugin, Pod, Status, hookimpl
from kschedfw.api import QosClass, pod_qos_class

_MEMORY_PRESSURE = Status.unresolvable("node(s) had memory pressure")
_DISK_PRESSURE = Status.unresolvable("node(s) had disk pressure")
_PID_PRESSURE = Status.unresolvable("node(s) had pid pressure")

_HEALTHY = {"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}
_UNHEALTHY = {
    "Ready": "node(s) were not ready",
    "OutOfDisk": "node(s) were out of disk space",
    "NetworkUnavailable": "node(s) had unavailable network",
}
_UNSCHEDULABLE = "node(s) were unschedulable"


class CheckNodeMemoryPressure(Plugin):
    """Refuses nodes under memory pressure to BestEffort pods, which request nothing."""

    name: ClassVar[str] = "CheckNodeMemoryPressure"
    pure = True

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        under_pressure = _reports(node_info.node, "MemoryPressure")
        return _MEMORY_PRESSURE if under_pressure and _is_best_effort(pod) else None


class CheckNodeDiskPressure(Plugin):
    """Refuses nodes under disk pressure."""

    name: ClassVar[str] = "CheckNodeDiskPressure"
    pure = True

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return _DISK_PRESSURE if _reports(node_info.node, "DiskPressure") else None


class CheckNodePIDPressure(Plugin):
    """Refuses nodes that are short of process ids."""

    name: ClassVar[str] = "CheckNodePIDPressure"
    pure = True

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return _PID_PRESSURE if _reports(node_info.node, "PIDPressure") else None


class CheckNodeCondition(Plugin):
    """Refuses nodes that are cordoned, or that report to be not ready, out of disk or without network.

    A condition that a node doesn't report is ignored.
    """

    name: ClassVar[str] = "CheckNodeCondition"
    pure = True

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        reasons = tuple(_reasons(node_info.node))
        return Status.unresolvable(*reasons) if reasons else None


def _reports(node: Node, condition: str) -> bool:
    return any(each.type == condition and each.status == "True" for each in node.status.conditions)


def _reasons(node: Node) -> Iterable[str]:
    for condition in node.status.conditions:
        healthy = _HEALTHY.get(condition.type)
        if healthy is not None and condition.status != healthy:
            yield _UNHEALTHY[condition.type]
    if node.spec.unschedulable:
        yield _UNSCHEDULABLE


def _is_best_effort(pod: Pod) -> bool:
    return pod_qos_class(pod) is QosClass.BEST_EFFORT
