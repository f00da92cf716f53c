"""How well nodes are used: what is requested on each, how unevenly, and how much of the rest is of no use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.resource import Resource
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.simulator import Spread

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


@attrs.frozen
class NodeAllocation:
    """What is requested on a node of what it has, by resource (units as in `Utilisation`), `pods` included."""

    node: str
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    @classmethod
    def of(cls, info: NodeInfo) -> NodeAllocation:
        names = [
            name
            for name in (*_FIRST, PODS, *sorted(info.allocatable.scalar_resources))
            if info.allocatable.get(name) > 0
        ]
        return cls(
            info.name,
            {name: len(info.pods) if name == PODS else info.requested.get(name) for name in names},
            {name: info.allocatable.get(name) for name in names},
        )

    @property
    def pods(self) -> int:
        return self.requested.get(PODS, 0)

    def share(self, resource: str) -> float | None:
        """Requested divided by allocatable; None where the node doesn't have the resource."""
        offered = self.allocatable.get(resource)
        return self.requested[resource] / offered if offered else None

    def free(self, resource: str) -> int:
        """What is left; never less than nothing."""
        return max(0, self.allocatable.get(resource, 0) - self.requested.get(resource, 0))


@attrs.frozen
class Workload:
    """What the pods of a cluster ask for: how many ask for each combination of amounts.

    `pending` are the pods to be scheduled; `resources` are those that any pod, bound ones included, asks for, in the
    order in which they are shown.
    """

    pending: Mapping[Resource, int]
    resources: tuple[str, ...]

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> Workload:
        pending: Counter[Resource] = Counter()
        asked: set[str] = set()
        for pod in pods:
            if pod.is_terminal:
                continue
            amounts = pod.requests.amounts
            asked.update(name for name, amount in amounts.items() if amount > 0)
            if not pod.node_name and not pod.is_terminating:
                pending[amounts] += 1
        first = [name for name in _FIRST if name in asked]
        return cls(pending, (*first, *sorted(asked.difference(first))))


@attrs.frozen
class Fragmentation:
    """How much of a resource is free and yet of no use to a typical pod of the workload that asks for it.

    For each node, its free amount times the share of these pods that the node hasn't enough of something left
    for, summed up: `unusable`, in the resource's unit. `free` is the sum without that factor. This is the
    fragmentation measure of Weng et al., "Beware of Fragmentation" (USENIX ATC '23), for any resource and with
    pods that don't ask for it left out.
    """

    resource: str
    unusable: float
    free: int

    @property
    def share(self) -> float:
        """Unusable divided by free: how likely a free unit is where a typical pod can't use it. 0 if none is free."""
        return self.unusable / self.free if self.free else 0.0


def fragmentation(nodes: Sequence[NodeAllocation], workload: Workload) -> list[Fragmentation]:
    """Of each resource that pending pods ask for and nodes have."""
    counts = np.array(list(workload.pending.values()), dtype=np.int64)
    # Also what a pod asks for that no node has decides whether it fits.
    names = [*workload.resources, PODS]
    asked = np.array(
        [[each.get(name) for name in names[:-1]] + [1] for each in workload.pending], dtype=np.int64
    )
    free = np.array([[node.free(name) for name in names] for node in nodes], dtype=np.int64)
    asked, free = asked.reshape(-1, len(names)), free.reshape(-1, len(names))
    refused = np.zeros(free.shape, dtype=np.int64)
    for request, count in zip(asked, counts, strict=True):
        too_small = ~(request <= free).all(axis=1)
        refused += np.outer(too_small, request > 0) * count
    found = []
    for column, name in enumerate(workload.resources):
        asking = int(counts[asked[:, column] > 0].sum())
        if asking and any(name in node.allocatable for node in nodes):
            unusable = math.fsum((free[:, column] * (refused[:, column] / asking)).tolist())
            found.append(Fragmentation(name, unusable, int(free[:, column].sum())))
    return found


def imbalance_within(nodes: Iterable[NodeAllocation], workload: Workload) -> Spread:
    """How unevenly each node's resources are used: the standard deviation of their requested shares, over the nodes.

    The resources are those that any pod asks for and the node has. What NodeResourcesBalancedAllocation keeps small.
    """
    deviations = []
    for node in nodes:
        shares = [share for name in workload.resources if (share := node.share(name)) is not None]
        deviations.append(Spread.of(shares).stddev)
    return Spread.of(deviations)
