"""Amounts of resources: of a pod's requests, of a node, or of all pods on a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from kschedfw.api.evolver import evolver
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.quantity import wrapped
from kschedfw.api.records import frozen
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY

_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


@frozen
class Resource:
    """Amounts by resource (kube-scheduler `framework.Resource`).

    CPU is in millicores, memory and ephemeral storage are in bytes. `scalar_resources` has extended resources,
    huge pages, attachable volumes and others of `kubernetes.io`, each in its own whole units.
    `allowed_pod_number` is the number of pods that a node takes; a pod's requests have 0 there.

    Sums are int64, as kube-scheduler's: beyond that they wrap around, perhaps below 0.
    """

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    allowed_pod_number: int = 0
    scalar_resources: FrozenDict[str, int] = attrs.field(default=EMPTY, repr=lambda each: repr({**each}))

    def minus(self, other: Resource) -> Resource:
        """Return the difference of everything except the pod number, which is kept.

        A scalar resource whose amount becomes 0 is kept.
        """
        return self.plus(other, sign=-1)

    def plus(self, other: Resource, *, sign: int = 1) -> Resource:
        """Return the sum of everything except the pod number, which is kept; with `sign` -1 the difference."""
        scalar = self.scalar_resources
        if other.scalar_resources:
            changed = {
                name: int64(scalar.get(name, 0) + sign * amount)
                for name, amount in other.scalar_resources.items()
            }
            scalar = FrozenDict({**scalar, **changed})
        cpu = self.milli_cpu + sign * other.milli_cpu
        memory = self.memory + sign * other.memory
        storage = self.ephemeral_storage + sign * other.ephemeral_storage
        # Without a call each: every pod that comes or goes is added or taken off.
        if not (_LEAST <= cpu <= _MOST and _LEAST <= memory <= _MOST and _LEAST <= storage <= _MOST):
            cpu, memory, storage = int64(cpu), int64(memory), int64(storage)
        return _with_amounts(self, cpu, memory, storage, scalar)

    def get(self, name: str) -> int:
        """Return the amount of a resource by its API name (`cpu` in millicores); 0 if there is none."""
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

    def items(self) -> Iterator[tuple[str, int]]:
        """Yield amounts by API name: CPU, memory, ephemeral storage, then the scalar resources; no pod number."""
        yield CPU, self.milli_cpu
        yield MEMORY, self.memory
        yield EPHEMERAL_STORAGE, self.ephemeral_storage
        yield from self.scalar_resources.items()


_with_amounts = evolver(Resource, "milli_cpu", "memory", "ephemeral_storage", "scalar_resources")


def int64(amount: int) -> int:
    """Return the amount wrapped around to int64."""
    return amount if _LEAST <= amount <= _MOST else wrapped(amount)
