"""A node with its pods, and the sums that filters and scores read (kube-scheduler `NodeInfo`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NoReturn

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.node import Node
from kschedfw.api.pod import HostPort, Pod
from kschedfw.api.records import define, frozen
from kschedfw.api.requests import node_allocatable
from kschedfw.api.resource import Resource
from kschedfw.api.words import counted
from kschedfw.framework.nodes.pod_info import PodInfo

ANY_IP = "0.0.0.0"  # the API's spelling of "every address of the node", nothing is bound here
DEFAULT_PROTOCOL = "TCP"

# Snapshots compare generations to find what changed, so no two states of any node may share one.
_generations = itertools.count(1)


@frozen
class ImageStateSummary:
    """An image on a node: its size in bytes, and the number of nodes of the cluster that have it."""

    size: int
    num_nodes: int


class HostPortInfo:
    """The host ports taken on a node, by address. Immutable: `plus` and `minus` return changed copies."""

    __slots__ = ("_taken",)

    def __init__(self, taken: Mapping[str, frozenset[tuple[str, int]]] = EMPTY) -> None:
        self._taken = taken

    @classmethod
    def of(cls, ports: Iterable[HostPort]) -> HostPortInfo:
        return cls().plus(ports)

    def taken(self) -> frozenset[HostPort]:
        """Return all taken (address, protocol, port) triples in one set."""
        return frozenset(
            (ip, protocol, port) for ip, ports in self._taken.items() for protocol, port in ports
        )

    def plus(self, ports: Iterable[HostPort]) -> HostPortInfo:
        """Return a copy in which these ports are taken, too. Ports of 0 or below are ignored."""
        taken = dict(self._taken)
        for ip, protocol, port in ports:
            if port > 0:
                ip = ip or ANY_IP
                taken[ip] = taken.get(ip, frozenset()) | {(protocol or DEFAULT_PROTOCOL, port)}
        return HostPortInfo(taken)

    def minus(self, ports: Iterable[HostPort]) -> HostPortInfo:
        """Return a copy in which these ports are free."""
        taken = dict(self._taken)
        for ip, protocol, port in ports:
            ip = ip or ANY_IP
            left = taken.pop(ip, frozenset()) - {(protocol or DEFAULT_PROTOCOL, port)}
            if left:
                taken[ip] = left
        return HostPortInfo(taken)

    def conflicts(self, ip: str, protocol: str, port: int) -> bool:
        """Return whether the port is taken on this address; 0.0.0.0 stands for every address."""
        if port <= 0 or not self._taken:
            return False
        ip = ip or ANY_IP
        wanted = (protocol or DEFAULT_PROTOCOL, port)
        if ip == ANY_IP:
            return any(wanted in taken for taken in self._taken.values())
        return any(wanted in self._taken.get(address, ()) for address in (ANY_IP, ip))

    def __len__(self) -> int:
        return sum(map(len, self._taken.values()))

    # By value: nodes with the same ports are alike to a hook that reads them.
    def __eq__(self, other: object) -> bool:
        return self._taken == other._taken if isinstance(other, HostPortInfo) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._taken.items()))


_NO_PORTS = HostPortInfo()
_NOTHING = Resource()


@define(eq=False)
class NodeInfo:
    """A node and its pods, with sums over them. Its parts are immutable values, which are replaced and never changed.

    Pods are in the order in which they came, but the last one takes the place of one that goes, and a pod with a new
    state goes to the end. kube-scheduler's are in this order, which decides who is evicted among equals.

    NodeInfos of a snapshot are read-only; a hook that needs to change one makes a `clone`.
    """

    node: Node
    pods: tuple[PodInfo, ...] = ()
    pods_with_affinity: tuple[PodInfo, ...] = ()
    pods_with_required_anti_affinity: tuple[PodInfo, ...] = ()
    pods_with_volumes: tuple[PodInfo, ...] = ()
    """The pods whose volumes matter to other pods, or count against a limit of the node."""
    used_ports: HostPortInfo = _NO_PORTS
    requested: Resource = _NOTHING
    """Sum of the requests of all pods on the node."""
    non_zero_requested: Resource = _NOTHING
    """The sum of requests with 100m CPU and 200 MiB for containers that request none; scores read this."""
    allocatable: Resource = _NOTHING
    image_states: FrozenDict[str, ImageStateSummary] = EMPTY
    generation: int = 0

    def __repr__(self) -> str:
        return f"<NodeInfo {self.node.name}: {counted(len(self.pods), 'pod')}>"

    @classmethod
    def of(cls, node: Node, pods: Iterable[Pod] = ()) -> NodeInfo:
        info = cls(node, allocatable=node_allocatable(node), generation=next(_generations))
        for pod in pods:
            info.add_pod(PodInfo.of(pod))
        return info

    @property
    def name(self) -> str:
        return self.node.metadata.name

    def set_node(self, node: Node) -> None:
        """Set the node's new state."""
        self.node = node
        self.allocatable = node_allocatable(node)
        self.generation = next(_generations)

    def add_pod(self, info: PodInfo) -> None:
        self.pods = (*self.pods, info)
        if info.has_affinity:
            self.pods_with_affinity = (*self.pods_with_affinity, info)
            if info.terms.required_anti_affinity:
                self.pods_with_required_anti_affinity = (*self.pods_with_required_anti_affinity, info)
        pod, requests = info.pod, info.requests
        if pod.spec.volumes and pod.storage:
            self.pods_with_volumes = (*self.pods_with_volumes, info)
        self.requested = self.requested.plus(requests.amounts)
        self.non_zero_requested = self.non_zero_requested.plus(requests.non_zero)
        if ports := pod.host_ports:
            self.used_ports = self.used_ports.plus(ports)
        self.generation = next(_generations)

    def remove_pod(self, pod: Pod) -> bool:
        """Remove the pod (by uid) from the node; return False if it isn't there."""
        uid = pod.uid
        for info in self.pods:
            if info.pod.uid == uid:
                self._remove(info)
                return True
        return False

    def replace_pod(self, old: PodInfo, new: PodInfo) -> None:
        """Replace a pod of this node by its new state, which goes to the end."""
        # In every list the new state goes to the end, as in kube-scheduler, whose cache removes the old one
        # and adds the new one.
        if _count_the_same(old, new):
            self.pods = (*_without(self.pods, old), new)
            # Snapshots find changed nodes by it, and the pod object is another.
            self.generation = next(_generations)
            return
        self._remove(old)
        self.add_pod(new)

    def _remove(self, info: PodInfo) -> None:
        self.pods = _without(self.pods, info)
        if info.has_affinity:
            self.pods_with_affinity = _without(self.pods_with_affinity, info)
            if info.terms.required_anti_affinity:
                self.pods_with_required_anti_affinity = _without(self.pods_with_required_anti_affinity, info)
        if info.pod.spec.volumes and info.pod.storage:
            self.pods_with_volumes = _without(self.pods_with_volumes, info)
        self.requested = self.requested.minus(info.requests.amounts)
        self.non_zero_requested = self.non_zero_requested.minus(info.requests.non_zero)
        if ports := info.pod.host_ports:
            self.used_ports = self.used_ports.minus(ports)
        self.generation = next(_generations)

    def take_over(self, other: NodeInfo) -> None:
        """Copy everything of another NodeInfo of this node except the images' states."""
        self.node, self.allocatable = other.node, other.allocatable
        self.pods = other.pods
        self.pods_with_affinity = other.pods_with_affinity
        self.pods_with_required_anti_affinity = other.pods_with_required_anti_affinity
        self.pods_with_volumes = other.pods_with_volumes
        self.used_ports = other.used_ports
        self.requested, self.non_zero_requested = other.requested, other.non_zero_requested
        self.generation = next(_generations)

    def seal(self) -> None:
        """Make every further change raise; a `clone` can be changed."""
        # A sealed one, of another snapshot's nodes, would refuse this assignment, too.
        if type(self) is NodeInfo:
            self.__class__ = _SealedNodeInfo

    def clone(self) -> NodeInfo:
        """Return a copy that may be changed. It shares the immutable parts."""
        # Without the constructor, whose arguments take as long again: each pod makes a copy.
        copy = object.__new__(NodeInfo)
        copy.node, copy.allocatable = self.node, self.allocatable
        copy.pods = self.pods
        copy.pods_with_affinity = self.pods_with_affinity
        copy.pods_with_required_anti_affinity = self.pods_with_required_anti_affinity
        copy.pods_with_volumes = self.pods_with_volumes
        copy.used_ports = self.used_ports
        copy.requested, copy.non_zero_requested = self.requested, self.non_zero_requested
        copy.image_states = self.image_states
        # The copy is the same state. A snapshot that has a copy must not take the original for changed.
        copy.generation = self.generation
        return copy


class _SealedNodeInfo(NodeInfo):
    # A class of its own, so that the cache's NodeInfos, which change all the time, pay nothing for it.

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"node {self.name!r}: {name} can't be set, since a snapshot's NodeInfo is read-only; change a clone() of it"
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)


def _count_the_same(old: PodInfo, new: PodInfo) -> bool:
    """Return whether two states of a pod surely add the same to the sums, as before and after its binding."""
    return (
        old.requests is new.requests
        and not (old.has_affinity or new.has_affinity)
        and not (old.pod.spec.volumes or new.pod.spec.volumes)
        and old.pod.host_ports == new.pod.host_ports
    )


def _without(pods: tuple[PodInfo, ...], info: PodInfo) -> tuple[PodInfo, ...]:
    """Return the pods without this one, whose place the last one takes."""
    # PodInfos compare by identity. Every list of the node has the same object, so one that was found in
    # `pods` is found in the others.
    if pods[-1] is info:
        return pods[:-1]
    position = pods.index(info)
    return (*pods[:position], pods[-1], *pods[position + 1 : -1])
