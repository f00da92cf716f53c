"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio (until v1.22).

The scoring strategies of NodeResourcesFit have replaced them. They skip some resources; these plugins don't: every
resource counts with its weight, even if the node doesn't have it or the pod doesn't request it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs

from kschedfw import MAX_NODE_SCORE, FieldError, Handle, NodeInfo, Plugin, Pod, hookimpl
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
    """A resource with its weight. The weight must be given: v1.20 treated a missing weight as 0 and refused it."""

    weight: int = 0


def _resources_or_default(resources: Sequence[ResourceSpec]) -> tuple[WeightedResource, ...]:
    return tuple(WeightedResource(each.name, each.weight) for each in resources_or_default(resources))


_DEFAULT_RESOURCES = _resources_or_default(())


@attrs.frozen
class NodeResourcesAllocatedArgs:
    """The scored resources with their weights."""

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
    """Scores (0–10) by utilization (0–100), and the scored resources."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[WeightedResource, ...] = attrs.field(
        default=_DEFAULT_RESOURCES, converter=_resources_or_default
    )

    def validate(self) -> Iterator[FieldError]:
        # The shape puts a dot before its paths, since it usually is inside another field.
        for error in Shape(self.shape).validate(""):
            yield attrs.evolve(error, path=error.path.removeprefix("."))
        yield from duplicate_errors(self.resources, "resources")
        for index, resource in enumerate(self.resources):
            if resource.weight < 1:
                why = f"resource weight of {resource.name} must be at least 1"
                yield FieldError.invalid(f"resources[{index}].weight", resource.weight, why)


class _Readings:
    """Yields, by resource of a node, the requested amount with the pod, the allocatable amount, and the weight."""

    def __init__(self, resources: Sequence[ResourceSpec]) -> None:
        self._resources = [ScoredResource.of(resource, non_zero=True) for resource in resources]

    def usages(self, pod: Pod, node_info: NodeInfo) -> Iterator[tuple[int, int, int]]:
        for resource in self._resources:
            allocatable, used = resource.on_node(node_info)
            yield used + resource.request_of(pod.requests), allocatable, resource.weight


class _AverageShare(Plugin[NodeResourcesAllocatedArgs]):
    """Scores by the weighted average of the free or used shares of the node's resources.

    Overcommitted ones count as 0.
    """

    args_type: ClassVar[type[object] | None] = NodeResourcesAllocatedArgs
    pure = True
    _counts_what_is_free: ClassVar[bool]

    def __init__(self, args: NodeResourcesAllocatedArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._readings = _Readings(args.resources)

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        score = weights = 0
        for requested, allocatable, weight in self._readings.usages(pod, node_info):
            weights += weight
            if requested <= allocatable and allocatable:
                share = allocatable - requested if self._counts_what_is_free else requested
                # Divided before it is weighted, as in v1.20: the order decides how it is rounded.
                score += share * MAX_NODE_SCORE // allocatable * weight
        return valid_score(score // weights)


class NodeResourcesLeastAllocated(_AverageShare):
    """Prefers nodes with much left after placing the pod: scores by the average of the free shares."""

    name: ClassVar[str] = "NodeResourcesLeastAllocated"
    _counts_what_is_free = True


class NodeResourcesMostAllocated(_AverageShare):
    """Prefers full nodes: scores by the average of the used shares. Overcommitted resources count as 0."""

    name: ClassVar[str] = "NodeResourcesMostAllocated"
    _counts_what_is_free = False


class RequestedToCapacityRatio(Plugin[RequestedToCapacityRatioArgs]):
    """Scores nodes by the shape's score for each resource's utilization.

    A resource with a score of 0 is left out of the average, with its weight.
    """

    name: ClassVar[str] = "RequestedToCapacityRatio"
    args_type: ClassVar[type[object] | None] = RequestedToCapacityRatioArgs
    pure = True

    def __init__(self, args: RequestedToCapacityRatioArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._readings = _Readings(args.resources)
        # Utilisation is a whole percentage, so that 101 values are all.
        self._table = [value_at(args.shape, utilization) for utilization in range(MAX_UTILIZATION + 1)]

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        score = weights = 0
        for requested, allocatable, weight in self._readings.usages(pod, node_info):
            value = self._table[_utilization(requested, allocatable)]
            if value > 0:
                score += value * weight
                weights += weight
        # v1.20's `math.Round` of the quotient, in integers.
        return (2 * score + weights) // (2 * weights) if weights else 0


def _utilization(requested: int, allocatable: int) -> int:
    """Return the utilization in percent, rounded up: v1.20 computed it from the free share, rounded down."""
    if requested > allocatable or not allocatable:
        return MAX_UTILIZATION
    # Amounts that have overflowed would be beyond the table. The shape is constant there, so the limits give its value.
    return min(
        max(MAX_UTILIZATION - (allocatable - requested) * MAX_UTILIZATION // allocatable, 0), MAX_UTILIZATION
    )
