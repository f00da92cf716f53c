"""Amounts of resources, as a value (kube-scheduler `framework.Resource`)."""

from __future__ import annotations

from typing import Self

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.quantity import wrapped
from kschedfw.api.requests import ResourceAmounts

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@attrs.frozen
class Resource:
    """CPU in millicores, memory and ephemeral storage in bytes, everything else in its own whole units.

    Sums are int64, as kube-scheduler's: beyond that they wrap around, perhaps below 0.
    """

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    allowed_pod_number: int = 0
    scalar_resources: FrozenDict[str, int] = attrs.field(default=EMPTY, repr=dict.__repr__)

    @classmethod
    def of(cls, amounts: ResourceAmounts) -> Self:
        return cls(
            amounts.milli_cpu,
            amounts.memory,
            amounts.ephemeral_storage,
            amounts.pods,
            amounts.scalar_resources,
        )

    def plus(self, other: ResourceAmounts) -> Resource:
        """The sum of everything but the pod count, which stays."""
        scalar = self.scalar_resources
        if other.scalar_resources:
            scalar = FrozenDict(
                {
                    **scalar,
                    **{
                        name: int64(scalar.get(name, 0) + amount)
                        for name, amount in other.scalar_resources.items()
                    },
                }
            )
        return Resource(
            int64(self.milli_cpu + other.milli_cpu),
            int64(self.memory + other.memory),
            int64(self.ephemeral_storage + other.ephemeral_storage),
            self.allowed_pod_number,
            scalar,
        )

    def minus(self, other: ResourceAmounts) -> Resource:
        """The difference of everything but the pod count. A scalar stays, as 0, when its last user goes."""
        scalar = self.scalar_resources
        if other.scalar_resources:
            scalar = FrozenDict(
                {
                    **scalar,
                    **{
                        name: int64(scalar.get(name, 0) - amount)
                        for name, amount in other.scalar_resources.items()
                    },
                }
            )
        return Resource(
            int64(self.milli_cpu - other.milli_cpu),
            int64(self.memory - other.memory),
            int64(self.ephemeral_storage - other.ephemeral_storage),
            self.allowed_pod_number,
            scalar,
        )

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


def int64(amount: int) -> int:
    """The amount as an int64 holds it: beyond that it wraps around."""
    return amount if _LEAST <= amount <= _MOST else wrapped(amount)
