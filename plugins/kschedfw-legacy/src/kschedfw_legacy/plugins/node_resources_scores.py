"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio (until v1.22).

NodeResourcesFit's scoring strategies do their work now. They differ in what they leave out: here every resource counts
with its weight, also one that the node hasn't got or the pod doesn't want.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

import attrs

from kschedfw import MAX_NODE_SCORE, FieldError, Handle, NodeInfo, Plugin, Pod, Reads, hookimpl
from kschedfw.plugins import (
    MAX_UTILIZATION,
    ResourceSpec,
    ScoredResource,
    UtilizationShapePoint,
    duplicate_errors,
    resources_or_default,
    valid_score,
    value_at,
)
from kschedfw.plugins import (
    RequestedToCapacityRatio as Shape,
)

_MAX_WEIGHT = 100


@attrs.frozen
class WeightedResource(ResourceSpec):
    """A resource with its weight, which has to be given: v1.20 took none for 0, and refused it."""

    weight: int = 0


def _resources_or_default(resources: Sequence[ResourceSpec]) -> tuple[WeightedResource, ...]:
    return tuple(WeightedResource(each.name, each.weight) for each in resources_or_default(resources))


_DEFAULT_RESOURCES = _resources_or_default(())


@attrs.frozen
class NodeResourcesAllocatedArgs:
    """The resources that count, and how much."""

    resources: tuple[WeightedResource, ...] = attrs.field(
        default=_DEFAULT_RESOURCES, converter=_resources_or_default
    )

    def validate(self) -> Iterator[FieldError]:
        yield from duplicate_errors(self.resources, "resources")
        for index, resource in enumerate(self.resources):
            if not 0 < resource.weight <= _MAX_WEIGHT:
                why = f"resource weight of {resource.name} not in valid range (0, {_MAX_WEIGHT}]"
                yield FieldError.invalid(f"resources[{index}].weight", resource.weight, why)


@attrs.frozen
class RequestedToCapacityRatioArgs:
    """A score (0–10) by utilization (0–100), and the resources that count."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[WeightedResource, ...] = attrs.field(
        default=_DEFAULT_RESOURCES, converter=_resources_or_default
    )

    def validate(self) -> Iterator[FieldError]:
        for error in Shape(self.shape).validate(""):
            yield attrs.evolve(error, path=error.path.removeprefix("."))
        yield from duplicate_errors(self.resources, "resources")
        for index, resource in enumerate(self.resources):
            if resource.weight < 1:
                why = f"resource weight of {resource.name} must be at least 1"
                yield FieldError.invalid(f"resources[{index}].weight", resource.weight, why)


class _Readings:
    """Reads off a node what would be requested of each resource with the pod, what there is, and its weight."""

    def __init__(self, resources: Sequence[ResourceSpec]) -> None:
        self._resources = [ScoredResource.of(resource, non_zero=True) for resource in resources]

    def usages(self, pod: Pod, node_info: NodeInfo) -> Iterator[tuple[int, int, int]]:
        for resource in self._resources:
            allocatable, used = resource.on_node(node_info)
            yield used + resource.request_of(pod.requests), allocatable, resource.weight


class _AverageShare(Plugin[NodeResourcesAllocatedArgs]):
    """Scores by the average, over the resources, of a share of what the node has; what is overcommitted counts 0."""

    args_type: ClassVar[type[object] | None] = NodeResourcesAllocatedArgs
    reads: ClassVar[Reads | None] = Reads.PODS
    _counts_what_is_free: ClassVar[bool]

    def __init__(self, args: NodeResourcesAllocatedArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._readings = _Readings(args.resources)

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.requests

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        score = weights = 0
        for requested, allocatable, weight in self._readings.usages(pod, node_info):
            weights += weight
            if requested <= allocatable and allocatable:
                share = allocatable - requested if self._counts_what_is_free else requested
                score += share * MAX_NODE_SCORE // allocatable * weight
        return valid_score(score // weights)


class NodeResourcesLeastAllocated(_AverageShare):
    """Prefers nodes on which much would be left: the average of the free shares."""

    name: ClassVar[str] = "NodeResourcesLeastAllocated"
    _counts_what_is_free = True


class NodeResourcesMostAllocated(_AverageShare):
    """Prefers nodes that would be full: the average of the used shares; what is overcommitted counts as unused."""

    name: ClassVar[str] = "NodeResourcesMostAllocated"
    _counts_what_is_free = False


class RequestedToCapacityRatio(Plugin[RequestedToCapacityRatioArgs]):
    """Scores nodes by what the shape gives for the utilization of each resource.

    A resource to which it gives 0 doesn't count at all, not even its weight.
    """

    name: ClassVar[str] = "RequestedToCapacityRatio"
    args_type: ClassVar[type[object] | None] = RequestedToCapacityRatioArgs
    reads: ClassVar[Reads | None] = Reads.PODS

    def __init__(self, args: RequestedToCapacityRatioArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._readings = _Readings(args.resources)
        self._table = [value_at(args.shape, utilization) for utilization in range(MAX_UTILIZATION + 1)]

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.requests

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        score = weights = 0
        for requested, allocatable, weight in self._readings.usages(pod, node_info):
            value = self._table[_utilization(requested, allocatable)]
            if value > 0:
                score += value * weight
                weights += weight
        return (2 * score + weights) // (2 * weights) if weights else 0


def _utilization(requested: int, allocatable: int) -> int:
    """In percent, rounded up: v1.20 rounded what is free down."""
    if requested > allocatable or not allocatable:
        return MAX_UTILIZATION
    # Amounts that have wrapped around are outside of the table; the shape is constant out there.
    return min(
        max(MAX_UTILIZATION - (allocatable - requested) * MAX_UTILIZATION // allocatable, 0), MAX_UTILIZATION
    )
