"""What the plugins that score resource usage share: which resources count, and how to read them off a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from kschedfw.api.field_errors import FieldError
from kschedfw.api.requests import ResourceAmounts
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from kschedfw.framework.node_info import NodeInfo

Reading = Callable[[NodeInfo], tuple[int, int]]
"""A node's allocatable amount of one resource, and how much of it the pods on the node have."""


@attrs.frozen
class ResourceSpec:
    """A resource that counts for the score, and how much."""

    name: str
    # In a configuration file 0 is the same as leaving it out.
    weight: int = attrs.field(default=1, metadata={"zero_is_unset": True})


DEFAULT_RESOURCES = (ResourceSpec(CPU), ResourceSpec(MEMORY))


def resources_or_default(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    return tuple(resources) or DEFAULT_RESOURCES


def duplicate_errors(resources: Sequence[ResourceSpec], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, resource in enumerate(resources):
        if resource.name in seen:
            yield FieldError.duplicate(f"{path}[{index}].name", resource.name)
        seen.add(resource.name)


def amount_of(amounts: ResourceAmounts, name: str) -> int:
    """A pod's request of a resource by its API name; 0 for `pods`, which is nothing that a pod requests."""
    match name:
        case "cpu":
            return amounts.milli_cpu
        case "memory":
            return amounts.memory
        case "ephemeral-storage":
            return amounts.ephemeral_storage
    return amounts.scalar.get(name, 0)


def counts(name: str, request: int) -> bool:
    """Whether a node's score should take the resource into account for a pod that requests this much of it.

    An extended resource doesn't matter to a pod that doesn't want it; the resources that every node has do.
    """
    return request != 0 or name in (CPU, MEMORY, EPHEMERAL_STORAGE)


def reading(name: str, *, non_zero: bool) -> Reading:
    """How to read a resource off a node; `non_zero` counts 100m CPU and 200 MiB for containers that request none."""
    match name:
        case "cpu":
            return _non_zero_cpu if non_zero else _cpu
        case "memory":
            return _non_zero_memory if non_zero else _memory
        case "ephemeral-storage":
            return _ephemeral_storage

    def scalar(info: NodeInfo) -> tuple[int, int]:
        return info.allocatable.scalar_resources.get(name, 0), info.requested.scalar_resources.get(name, 0)

    return scalar


def _cpu(info: NodeInfo) -> tuple[int, int]:
    return info.allocatable.milli_cpu, info.requested.milli_cpu


def _non_zero_cpu(info: NodeInfo) -> tuple[int, int]:
    return info.allocatable.milli_cpu, info.non_zero_requested.milli_cpu


def _memory(info: NodeInfo) -> tuple[int, int]:
    return info.allocatable.memory, info.requested.memory


def _non_zero_memory(info: NodeInfo) -> tuple[int, int]:
    return info.allocatable.memory, info.non_zero_requested.memory


def _ephemeral_storage(info: NodeInfo) -> tuple[int, int]:
    return info.allocatable.ephemeral_storage, info.requested.ephemeral_storage
