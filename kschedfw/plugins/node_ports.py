"""NodePorts: host ports that are free."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.node_info import HostPortInfo, NodeInfo, host_ports
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.status import Status
from kschedfw.plugins._hints import queue_if

HostPort = tuple[str, str, int]
"""Address, protocol and port."""

_TAKEN = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")
_WANTED = StateKey[Sequence[HostPort]]("NodePorts.wanted")


class NodePorts(Plugin):
    """Refuses nodes on which another pod has a host port that the pod wants."""

    name: ClassVar[str] = "NodePorts"
    reads: ClassVar[Reads | None] = Reads.PODS

    def sign(self, pod: Pod) -> Hashable | None:
        return frozenset(host_ports(pod))

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        wanted = host_ports(pod)
        if not wanted:
            return Status.skip()
        state.write(_WANTED, wanted)
        return None

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        return _TAKEN if _conflict(state.read(_WANTED), node_info.used_ports) else None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.POD, ActionType.DELETE, _after_pod_deletion),
            ClusterEvent(EventResource.NODE, ActionType.ADD),
        ]


def _conflict(wanted: Sequence[HostPort], used: HostPortInfo) -> bool:
    return any(used.conflicts(ip, protocol, port) for ip, protocol, port in wanted)


def _after_pod_deletion(pod: Pod, old: object | None, _new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or not (old.node_name or old.status.nominated_node_name):
        return QueueingHint.SKIP
    freed = HostPortInfo()
    for ip, protocol, port in host_ports(old):
        freed.add(ip, protocol, port)
    return queue_if(_conflict(host_ports(pod), freed))
