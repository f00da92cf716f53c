"""The arguments of NodeResourcesFit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

import attrs

from kschedfw import FieldError
from kschedfw.api.names import qualified_name_problems
from kschedfw.api.records import frozen
from kschedfw.plugins._resources import DEFAULT_RESOURCES, ResourceSpec, resources_or_default

MAX_UTILIZATION = 100
MAX_SHAPE_SCORE = 10
_MAX_WEIGHT = 100


class ScoringStrategyType(StrEnum):
    LEAST_ALLOCATED = "LeastAllocated"
    """Spread pods: emptier nodes score higher."""
    MOST_ALLOCATED = "MostAllocated"
    """Pack pods: fuller nodes score higher."""
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
    """Score by the shape in the arguments."""


@frozen
class UtilizationShapePoint:
    """A point of the function: a resource at this utilization (0–100 %) earns this score (0–10)."""

    utilization: int = 0
    score: int = 0


@frozen
class RequestedToCapacityRatio:
    """The points of a function, by rising utilization; it is linear between them and constant outside."""

    shape: tuple[UtilizationShapePoint, ...] = ()

    def validate(self, path: str) -> Iterator[FieldError]:
        if not self.shape:
            yield FieldError.required(f"{path}.shape", "at least one point must be specified")
        yield from shape_errors(self.shape, f"{path}.shape")


@frozen
class ScoringStrategy:
    """The strategy of scoring requested against allocatable amounts, over weighted resources."""

    type: ScoringStrategyType
    resources: tuple[ResourceSpec, ...] = attrs.field(
        default=DEFAULT_RESOURCES, converter=resources_or_default
    )
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None

    def validate(self, path: str) -> Iterator[FieldError]:
        supported = tuple(sorted(known.value for known in ScoringStrategyType))
        if self.type not in supported:
            yield FieldError.unsupported(f"{path}.type", self.type, supported)
        for index, resource in enumerate(self.resources):
            if not 0 < resource.weight <= _MAX_WEIGHT:
                why = f"resource weight of {resource.name} not in valid range (0, {_MAX_WEIGHT}]"
                yield FieldError.invalid(f"{path}.resources[{index}].weight", resource.weight, why)
        ratio_path = f"{path}.requestedToCapacityRatio"
        if self.requested_to_capacity_ratio is not None:
            yield from self.requested_to_capacity_ratio.validate(ratio_path)
        elif self.type == ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            yield FieldError.required(ratio_path, f"must be specified when type is {self.type}")


@frozen
class NodeResourcesFitArgs:
    """Arguments of NodeResourcesFit.

    `ignored_resources` and `ignored_resource_groups` (the part before the slash) name extended resources that
    something else manages, for example an extender.
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = attrs.field(
        factory=lambda: ScoringStrategy(ScoringStrategyType.LEAST_ALLOCATED)
    )

    def validate(self) -> Iterator[FieldError]:
        for index, name in enumerate(self.ignored_resources):
            yield from _bad_name(f"ignoredResources[{index}]", name)
        for index, group in enumerate(self.ignored_resource_groups):
            path = f"ignoredResourceGroups[{index}]"
            if "/" in group:
                yield FieldError.invalid(path, group, "resource group name can't contain '/'")
            yield from _bad_name(path, group)
        yield from self.scoring_strategy.validate("scoringStrategy")


def shape_errors(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[FieldError]:
    """Yield the errors of the points of a function of utilization."""
    for index, (point, following) in enumerate(pairwise(shape), start=1):
        if point.utilization >= following.utilization:
            why = "values must be sorted in increasing order"
            yield FieldError.invalid(f"{path}[{index}].utilization", following.utilization, why)
            break
    for index, point in enumerate(shape):
        yield from _in_range(f"{path}[{index}].utilization", point.utilization, MAX_UTILIZATION)
        yield from _in_range(f"{path}[{index}].score", point.score, MAX_SHAPE_SCORE)


def _bad_name(path: str, name: str) -> Iterator[FieldError]:
    for text in qualified_name_problems(name):
        yield FieldError.invalid(path, name, text)


def _in_range(path: str, value: int, highest: int) -> Iterator[FieldError]:
    if not 0 <= value <= highest:
        yield FieldError.invalid(path, value, f"not in valid range [0, {highest}]")
