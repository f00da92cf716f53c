"""A node with the pods on it and the sums that filters and scores read (kube-scheduler `NodeInfo`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import HostPort, Pod
from kschedfw.api.requests import node_allocatable
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.resource import Resource

ANY_IP = "0.0.0.0"  # the API's spelling of "every address of the node", nothing is bound here
DEFAULT_PROTOCOL = "TCP"

# Snapshots compare generations to find what changed, so no two states of any node may share one.
_generations = itertools.count(1)


@attrs.frozen
class ImageStateSummary:
    """An image on a node: size in bytes, and on how many nodes of the cluster it is."""

    size: int
    num_nodes: int


class HostPortInfo:
    """The host ports taken on a node, by address."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: dict[str, set[tuple[str, int]]] = {}

    @classmethod
    def of(cls, ports: Iterable[HostPort]) -> HostPortInfo:
        info = cls()
        for ip, protocol, port in ports:
            info.add(ip, protocol, port)
        return info

    def taken(self) -> frozenset[HostPort]:
        """The ports as a value of their own, which later changes don't reach."""
        return frozenset(
            (ip, protocol, port) for ip, ports in self._taken.items() for protocol, port in ports
        )

    def add(self, ip: str, protocol: str, port: int) -> None:
        if port > 0:
            self._taken.setdefault(ip or ANY_IP, set()).add((protocol or DEFAULT_PROTOCOL, port))

    def remove(self, ip: str, protocol: str, port: int) -> None:
        ip = ip or ANY_IP
        taken = self._taken.get(ip)
        if taken is not None:
            taken.discard((protocol or DEFAULT_PROTOCOL, port))
            if not taken:
                del self._taken[ip]

    def conflicts(self, ip: str, protocol: str, port: int) -> bool:
        """Whether the port is taken on this address; 0.0.0.0 meets every address."""
        if port <= 0 or not self._taken:
            return False
        ip = ip or ANY_IP
        wanted = (protocol or DEFAULT_PROTOCOL, port)
        if ip == ANY_IP:
            return any(wanted in taken for taken in self._taken.values())
        return any(wanted in self._taken.get(address, ()) for address in (ANY_IP, ip))

    def __len__(self) -> int:
        return sum(map(len, self._taken.values()))

    def clone(self) -> HostPortInfo:
        copy = HostPortInfo()
        copy._taken = {ip: set(taken) for ip, taken in self._taken.items()}
        return copy


@attrs.define(eq=False)
class NodeInfo:
    """A node and its pods. Filters and scores read it; only the cache, and hooks on their own clone, change it."""

    node: Node
    pods: list[PodInfo] = attrs.field(factory=list)
    pods_with_affinity: list[PodInfo] = attrs.field(factory=list)
    pods_with_required_anti_affinity: list[PodInfo] = attrs.field(factory=list)
    pods_with_volumes: list[PodInfo] = attrs.field(factory=list)
    """Pods whose volumes others may want, too, or that count against a limit of the node."""
    used_ports: HostPortInfo = attrs.field(factory=HostPortInfo)
    requested: Resource = attrs.field(factory=Resource)
    """Sum of the requests of all pods on the node."""
    non_zero_requested: Resource = attrs.field(factory=Resource)
    """The same with 100m CPU and 200 MiB for containers that request none; scores read this."""
    allocatable: Resource = attrs.field(factory=Resource)
    image_states: dict[str, ImageStateSummary] = attrs.field(factory=dict)
    generation: int = 0

    @classmethod
    def of(cls, node: Node, pods: Iterable[Pod] = ()) -> NodeInfo:
        info = cls(node, allocatable=Resource.of(node_allocatable(node)), generation=next(_generations))
        for pod in pods:
            info.add_pod(PodInfo.of(pod))
        return info

    @property
    def name(self) -> str:
        return self.node.metadata.name

    def set_node(self, node: Node) -> None:
        """Take the node's new state."""
        self.node = node
        self.allocatable = Resource.of(node_allocatable(node))
        self.generation = next(_generations)

    def add_pod(self, info: PodInfo) -> None:
        self.pods.append(info)
        self._count(info)

    def remove_pod(self, pod: Pod) -> bool:
        """Take the pod (by uid) off the node; False where it isn't on it."""
        uid = pod.uid
        for position, info in enumerate(self.pods):
            if info.pod.uid == uid:
                del self.pods[position]
                self._discount(info)
                return True
        return False

    def replace_pod(self, old: PodInfo, new: PodInfo) -> None:
        """Take the new state of a pod, whose old one is here."""
        self.pods[self.pods.index(old)] = new
        self._discount(old)
        self._count(new)

    def _count(self, info: PodInfo) -> None:
        if info.has_affinity:
            self.pods_with_affinity.append(info)
        if info.required_anti_affinity_terms:
            self.pods_with_required_anti_affinity.append(info)
        if info.pod.spec.volumes and info.pod.storage:
            self.pods_with_volumes.append(info)
        requests = info.requests
        self.requested.add(requests.amounts)
        self.non_zero_requested.milli_cpu += requests.non_zero_milli_cpu
        self.non_zero_requested.memory += requests.non_zero_memory
        self.non_zero_requested.wrap()
        for ip, protocol, port in info.pod.host_ports:
            self.used_ports.add(ip, protocol, port)
        self.generation = next(_generations)

    def _discount(self, info: PodInfo) -> None:
        if info.has_affinity:
            self.pods_with_affinity.remove(info)
        if info.required_anti_affinity_terms:
            self.pods_with_required_anti_affinity.remove(info)
        if info.pod.spec.volumes and info.pod.storage:
            self.pods_with_volumes.remove(info)
        requests = info.requests
        self.requested.subtract(requests.amounts)
        self.non_zero_requested.milli_cpu -= requests.non_zero_milli_cpu
        self.non_zero_requested.memory -= requests.non_zero_memory
        self.non_zero_requested.wrap()
        for ip, protocol, port in info.pod.host_ports:
            self.used_ports.remove(ip, protocol, port)
        self.generation = next(_generations)

    def clone(self) -> NodeInfo:
        """A copy whose pods and sums may be changed; node, pods and image states themselves are shared."""
        return NodeInfo(
            node=self.node,
            pods=list(self.pods),
            pods_with_affinity=list(self.pods_with_affinity),
            pods_with_required_anti_affinity=list(self.pods_with_required_anti_affinity),
            pods_with_volumes=list(self.pods_with_volumes),
            used_ports=self.used_ports.clone(),
            requested=self.requested.clone(),
            non_zero_requested=self.non_zero_requested.clone(),
            allocatable=self.allocatable,
            image_states=self.image_states,
            generation=self.generation,
        )
