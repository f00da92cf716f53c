"""NodePorts: refuses nodes whose host ports are taken."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kschedfw import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    NodeInfo,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    hookimpl,
)
from kschedfw.api.pod import HostPort
from kschedfw.framework.nodes.node_info import HostPortInfo
from kschedfw.plugins._hints import queue_if, takes_a_place

_TAKEN = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")
_WANTED = StateKey[Sequence[HostPort]]("NodePorts.wanted")


class NodePorts(Plugin):
    """Refuses nodes on which another pod has a host port that the pod wants."""

    name = "NodePorts"
    pure = True
    reads = Reads.PODS

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        # As kube-scheduler's signature: the numbers alone, including those of all init containers.
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        return frozenset(
            port.host_port for container in containers for port in container.ports if port.host_port
        )

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        wanted = pod.host_ports
        if not wanted:
            return Status.skip()
        state.write(_WANTED, wanted)
        return None

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        return _TAKEN if conflicts(state.read(_WANTED), node_info.used_ports) else None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.POD, ActionType.DELETE, _after_pod_deletion),
            ClusterEvent(EventResource.NODE, ActionType.ADD),
        ]


def conflicts(wanted: Sequence[HostPort], used: HostPortInfo) -> bool:
    return any(used.conflicts(ip, protocol, port) for ip, protocol, port in wanted)


def _after_pod_deletion(pod: Pod, old: object | None, _new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or not takes_a_place(old):
        return QueueingHint.SKIP
    return queue_if(conflicts(pod.host_ports, HostPortInfo.of(old.host_ports)))
