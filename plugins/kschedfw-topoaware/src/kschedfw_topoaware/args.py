"""The arguments, named as in the original."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import attrs

from kschedfw import FieldError

_HIGHEST_WEIGHT: Final = 100


class ScoringStrategyType(StrEnum):
    """What makes a node with zones a good one."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    BALANCED_ALLOCATION = "BalancedAllocation"
    LEAST_NUMA_NODES = "LeastNUMANodes"


@attrs.frozen
class ResourceWeight:
    """How much a resource counts; those that aren't named count 1."""

    name: str
    weight: int = 1


@attrs.frozen
class ScoringStrategy:
    """How to score; weights are for LeastAllocated and MostAllocated."""

    type: ScoringStrategyType = ScoringStrategyType.LEAST_ALLOCATED
    resources: tuple[ResourceWeight, ...] = ()


@attrs.frozen
class NodeResourceTopologyMatchArgs:
    """How nodes with zones are scored."""

    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def validate(self) -> Iterator[FieldError]:
        seen = set()
        for index, resource in enumerate(self.scoring_strategy.resources):
            path = f"scoringStrategy.resources[{index}]"
            if not 1 <= resource.weight <= _HIGHEST_WEIGHT:
                yield FieldError.invalid(f"{path}.weight", resource.weight, "must be from 1 to 100")
            if resource.name in seen:
                yield FieldError.duplicate(f"{path}.name", resource.name)
            seen.add(resource.name)
