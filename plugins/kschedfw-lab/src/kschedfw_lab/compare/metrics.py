"""Metrics of a cluster's utilisation: allocation, imbalance, fragmentation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import attrs
import numpy as np

from kschedfw import NodeInfo, Pod, Resource
from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kschedfw.cluster import belongs_to_its_node
from kschedfw.simulator import Spread


class Unit(Enum):
    """The unit of a metric."""

    COUNT = "a count"
    SHARE = "a share"
    SECONDS = "seconds"
    NUMBER = "a number"


_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


@attrs.frozen
class NodeAllocation:
    """A node's requested and allocatable amounts by resource, including `pods`; units as in `Utilisation`.

    `own` is how many of the pods belong to the node: those of DaemonSets and static ones.
    """

    node: str
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]
    own: int = 0

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
            sum(belongs_to_its_node(each.pod) for each in info.pods),
        )

    @property
    def pods(self) -> int:
        return self.requested.get(PODS, 0)

    @property
    def has_only_its_own(self) -> bool:
        """True if the node has pods, all of which belong to it: it could go."""
        return 0 < self.pods == self.own

    def share(self, resource: str) -> float | None:
        """Return the requested share of the allocatable amount; None if the node doesn't have the resource."""
        offered = self.allocatable.get(resource)
        return self.requested[resource] / offered if offered else None

    def free(self, resource: str) -> int:
        """Return the amount that isn't requested; never negative."""
        return max(0, self.allocatable.get(resource, 0) - self.requested.get(resource, 0))


@attrs.frozen
class RequestMix:
    """The requests of a cluster's pods: the number of pods for each combination of amounts.

    `pending` counts only the pods to be scheduled. `resources` are all resources that any pod requests, including
    bound ones, in the order in which they are shown.
    """

    pending: Mapping[Resource, int]
    resources: tuple[str, ...]

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> RequestMix:
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
    """The amount of a resource that is free, but unusable to a typical pod that requests it.

    `unusable` is in the resource's unit. It is the sum over the nodes of the free amount, times the share of such pods
    that don't fit on the node. `free` is the sum without this factor. This is the fragmentation measure of Weng et al.,
    "Beware of Fragmentation" (USENIX ATC '23), applied to any resource, and without pods that don't request it.
    """

    resource: str
    unusable: float
    free: int

    @property
    def share(self) -> float:
        """The probability that a typical pod can't use a free unit: unusable divided by free; 0 if none is free."""
        return self.unusable / self.free if self.free else 0.0


def fragmentation(nodes: Sequence[NodeAllocation], workload: RequestMix) -> list[Fragmentation]:
    """Return the fragmentation of each resource that pending pods request and nodes have."""
    counts = np.array(list(workload.pending.values()), dtype=np.int64)
    # Include requests for resources that no node has: a pod with such a request fits nowhere.
    names = [*workload.resources, PODS]
    asked = np.array(
        [[each.get(name) for name in names[:-1]] + [1] for each in workload.pending], dtype=np.int64
    )
    free = np.array([[node.free(name) for name in names] for node in nodes], dtype=np.int64)
    # Without rows, an array has only one dimension.
    asked, free = asked.reshape(-1, len(names)), free.reshape(-1, len(names))
    refused = np.zeros(free.shape, dtype=np.int64)
    for request, count in zip(asked, counts, strict=True):
        too_small = ~(request <= free).all(axis=1)
        refused += np.outer(too_small, request > 0) * count
    found = []
    for column, name in enumerate(workload.resources):
        asking = int(counts[asked[:, column] > 0].sum())
        if asking and any(name in node.allocatable for node in nodes):
            # An exact sum, so that the order of the nodes doesn't matter.
            unusable = math.fsum((free[:, column] * (refused[:, column] / asking)).tolist())
            found.append(Fragmentation(name, unusable, int(free[:, column].sum())))
    return found


def imbalance_within(nodes: Iterable[NodeAllocation], workload: RequestMix) -> Spread:
    """Return how unevenly each node's resources are used, as a distribution over the nodes.

    The unevenness of a node is the standard deviation of its requested shares, over the resources that any pod requests
    and the node has. NodeResourcesBalancedAllocation keeps it small.
    """
    deviations = []
    for node in nodes:
        shares = [share for name in workload.resources if (share := node.share(name)) is not None]
        deviations.append(Spread.of(shares).stddev)
    return Spread.of(deviations)
