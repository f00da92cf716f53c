"""Whether a pod's requests fit into what is left on a node, and what is short where they don't."""

from __future__ import annotations

from collections.abc import Sequence, Set

import attrs

from kschedfw.api.requests import ResourceAmounts
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from kschedfw.framework.node_info import NodeInfo


@attrs.frozen
class Demand:
    """What a pod needs of a node; 0 is no demand at all, which even an overcommitted node meets."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalar: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(
        cls,
        amounts: ResourceAmounts,
        ignored_resources: Set[str] = frozenset(),
        ignored_groups: Set[str] = frozenset(),
    ) -> Demand:
        def ignored(name: str) -> bool:
            return is_extended(name) and (
                name in ignored_resources or name.partition("/")[0] in ignored_groups
            )

        return cls(
            amounts.milli_cpu,
            amounts.memory,
            amounts.ephemeral_storage,
            # Sorted, so that reasons come in the same order every time.
            tuple(
                (name, amount)
                for name, amount in sorted(amounts.scalar.items())
                if amount and not ignored(name)
            ),
        )


@attrs.frozen
class Shortage:
    """A resource that a node has too little left of."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def reason(self) -> str:
        return "Too many pods" if self.resource == PODS else f"Insufficient {self.resource}"

    @property
    def unresolvable(self) -> bool:
        """Whether even the empty node would be too small. The number of pods is always something to be freed."""
        return self.resource != PODS and self.requested > self.capacity


def fits(demand: Demand, info: NodeInfo) -> bool:
    """The question alone, for the many nodes on which the answer is yes."""
    allocatable, requested = info.allocatable, info.requested
    if len(info.pods) >= allocatable.allowed_pod_number:
        return False
    if demand.milli_cpu and demand.milli_cpu > allocatable.milli_cpu - requested.milli_cpu:
        return False
    if demand.memory and demand.memory > allocatable.memory - requested.memory:
        return False
    if (
        demand.ephemeral_storage
        and demand.ephemeral_storage > allocatable.ephemeral_storage - requested.ephemeral_storage
    ):
        return False
    for name, amount in demand.scalar:
        if amount > allocatable.scalar_resources.get(name, 0) - requested.scalar_resources.get(name, 0):
            return False
    return True


def shortages(demand: Demand, info: NodeInfo) -> Sequence[Shortage]:
    """Everything that is short, in the order: pods, CPU, memory, ephemeral storage, other resources by name."""
    allocatable, requested = info.allocatable, info.requested
    candidates = [
        Shortage(PODS, 1, len(info.pods), allocatable.allowed_pod_number),
        Shortage(CPU, demand.milli_cpu, requested.milli_cpu, allocatable.milli_cpu),
        Shortage(MEMORY, demand.memory, requested.memory, allocatable.memory),
        Shortage(
            EPHEMERAL_STORAGE,
            demand.ephemeral_storage,
            requested.ephemeral_storage,
            allocatable.ephemeral_storage,
        ),
    ]
    for name, amount in demand.scalar:
        used, capacity = requested.scalar_resources.get(name, 0), allocatable.scalar_resources.get(name, 0)
        candidates.append(Shortage(name, amount, used, capacity))
    return [c for c in candidates if c.requested and c.requested > c.capacity - c.used]
