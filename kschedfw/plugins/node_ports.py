"""NodePorts: refuses nodes whose host ports are taken."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from kschedfw import (
    IDLE,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    IntArray,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.api.pod import HostPort
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.nodes.node_info import ANY_IP, DEFAULT_PROTOCOL, HostPortInfo
from kschedfw.plugins._hints import queue_if, takes_a_place

_TAKEN = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")
_WANTED = StateKey[Sequence[HostPort]]("NodePorts.wanted")


class NodePorts(Plugin):
    """Refuses nodes on which another pod has a host port that the pod wants."""

    name = "NodePorts"
    reads = Reads.PODS

    def sign(self, pod: Pod) -> Hashable | None:
        return frozenset(ports) if (ports := pod.host_ports) else IDLE

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
        return _TAKEN if _conflict(state.read(_WANTED), node_info.used_ports) else None

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:  # noqa: ARG002  # see GivesEvidence
        for wanted in state.read(_WANTED):
            for holder in node_info.pods:
                # Pod by pod, since the node's `used_ports` don't tell whose they are.
                if _conflict([wanted], HostPortInfo.of(holder.pod.host_ports)):
                    yield _held(wanted, holder.pod)

    @hookimpl
    def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts:
        wanted = state.read(_WANTED)
        used = nodes.encoded("host ports", lambda info: info.used_ports.taken() or None, Reads.PODS)
        taken = [ports is not None and _conflict(wanted, HostPortInfo.of(ports)) for ports in used.values]
        return Verdicts.refuse(np.array(taken, dtype=np.bool_)[used.codes.take(rows)], _TAKEN)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.POD, ActionType.DELETE, _after_pod_deletion),
            ClusterEvent(EventResource.NODE, ActionType.ADD),
        ]


def _conflict(wanted: Sequence[HostPort], used: HostPortInfo) -> bool:
    return any(used.conflicts(ip, protocol, port) for ip, protocol, port in wanted)


def _held(wanted: HostPort, holder: Pod) -> Evidence:
    ip, protocol, port = wanted
    protocol = protocol or DEFAULT_PROTOCOL
    address = "" if ip in ("", ANY_IP) else f" on {ip}"
    return Evidence(
        f"hostPort {port}/{protocol}{address}",
        f"held by {holder.key}",
        values={"port": port, "protocol": protocol, "hostIP": ip or ANY_IP, "pod": holder.key},
        code="host-port",
    )


def _after_pod_deletion(pod: Pod, old: object | None, _new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or not takes_a_place(old):
        return QueueingHint.SKIP
    return queue_if(_conflict(pod.host_ports, HostPortInfo.of(old.host_ports)))
