"""Amounts of resources that can be added up in place (kube-scheduler `framework.Resource`)."""

from __future__ import annotations

from typing import Self

import attrs

from kschedfw.api.quantity import wrapped
from kschedfw.api.requests import ResourceAmounts

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@attrs.define
class Resource:
    """CPU in millicores, memory and ephemeral storage in bytes, everything else in its own whole units.

    Sums are int64, as kube-scheduler's: beyond that they wrap around, perhaps below 0.
    """

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    allowed_pod_number: int = 0
    scalar_resources: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, amounts: ResourceAmounts) -> Self:
        return cls(
            amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage, amounts.pods, dict(amounts.scalar)
        )

    def add(self, other: ResourceAmounts) -> None:
        """Add everything but the pod count, in place."""
        self.milli_cpu += other.milli_cpu
        self.memory += other.memory
        self.ephemeral_storage += other.ephemeral_storage
        for name, amount in other.scalar.items():
            self.scalar_resources[name] = wrapped(self.scalar_resources.get(name, 0) + amount)
        self.wrap()

    def subtract(self, other: ResourceAmounts) -> None:
        """Take away everything but the pod count, in place. A scalar stays, as 0, when its last user goes."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        self.ephemeral_storage -= other.ephemeral_storage
        for name, amount in other.scalar.items():
            self.scalar_resources[name] = wrapped(self.scalar_resources.get(name, 0) - amount)
        self.wrap()

    def wrap(self) -> None:
        """Bring what every node has back into int64; whoever changes an amount by hand has to call it."""
        if not _LEAST <= self.milli_cpu <= _MOST:
            self.milli_cpu = wrapped(self.milli_cpu)
        if not _LEAST <= self.memory <= _MOST:
            self.memory = wrapped(self.memory)
        if not _LEAST <= self.ephemeral_storage <= _MOST:
            self.ephemeral_storage = wrapped(self.ephemeral_storage)

    def get(self, name: str) -> int:
        """The amount of a resource by its API name (`cpu` in millicores); 0 where there is none."""
        match name:
            case "cpu":
                return self.milli_cpu
            case "memory":
                return self.memory
            case "ephemeral-storage":
                return self.ephemeral_storage
            case "pods":
                return self.allowed_pod_number
        return self.scalar_resources.get(name, 0)

    def clone(self) -> Resource:
        return Resource(
            self.milli_cpu,
            self.memory,
            self.ephemeral_storage,
            self.allowed_pod_number,
            dict(self.scalar_resources),
        )
