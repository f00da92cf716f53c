"""Arguments of the plugin NodeResourceTopologyMatch, named as in kubernetes-sigs/scheduler-plugins."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import attrs

from kschedfw import FieldError

_NOT_HERE: Final = 'see "Configurations of the original" in the README of kschedfw-topoaware'


class ScoringStrategyType(StrEnum):
    """The strategy that scores nodes with zones."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    BALANCED_ALLOCATION = "BalancedAllocation"
    LEAST_NUMA_NODES = "LeastNUMANodes"


@attrs.frozen
class ResourceWeight:
    """The weight of a resource in scores. Resources without an entry have the weight 1."""

    name: str
    # In a configuration file 0 is the same as leaving it out.
    weight: int = attrs.field(default=1, metadata={"zero_is_unset": True})


@attrs.frozen
class ScoringStrategy:
    """The scoring strategy. Only LeastAllocated and MostAllocated use the weights."""

    type: ScoringStrategyType = ScoringStrategyType.LEAST_ALLOCATED
    resources: tuple[ResourceWeight, ...] = ()


class ForeignPodsDetect(StrEnum):
    """The pods of other schedulers that scheduler-plugins looks for. Has no effect here."""

    NONE = "None"
    ALL = "All"
    ONLY_EXCLUSIVE_RESOURCES = "OnlyExclusiveResources"


class ResyncMethod(StrEnum):
    """The pods that scheduler-plugins compares with a report. Has no effect here."""

    AUTODETECT = "Autodetect"
    ALL = "All"
    ONLY_EXCLUSIVE_RESOURCES = "OnlyExclusiveResources"


class InformerMode(StrEnum):
    """The connection by which scheduler-plugins follows pods. Has no effect here."""

    SHARED = "Shared"
    DEDICATED = "Dedicated"


class ResyncScope(StrEnum):
    """The changes of a report after which scheduler-plugins checks its reservations again. Has no effect here."""

    ALL = "All"
    ONLY_RESOURCES = "OnlyResources"


class PreemptionMode(StrEnum):
    """The mode of preemption in scheduler-plugins: whether it considers freed zones. Can't be enabled here."""

    DISABLED = "Disabled"
    ENABLED = "Enabled"


@attrs.frozen
class Cache:
    """The settings of scheduler-plugins for comparing its reservations with the nodes' reports. Has no effect here."""

    foreign_pods_detect: ForeignPodsDetect = ForeignPodsDetect.ALL
    resync_method: ResyncMethod = ResyncMethod.AUTODETECT
    informer_mode: InformerMode = InformerMode.DEDICATED
    resync_scope: ResyncScope = ResyncScope.ALL


@attrs.frozen
class NodeResourceTopologyMatchArgs:
    """Arguments of NodeResourceTopologyMatch, as configuration files give them.

    Only `scoring_strategy` has an effect. The other fields exist so that configurations for scheduler-plugins can be
    loaded. `cache_resync_period_seconds` and `cache` are ignored. `discard_reserved_nodes` and `preemption_mode` must
    be off.
    """

    scoring_strategy: ScoringStrategy = ScoringStrategy()
    cache_resync_period_seconds: int = 0
    discard_reserved_nodes: bool = False
    cache: Cache = Cache()
    preemption_mode: PreemptionMode = PreemptionMode.DISABLED

    def validate(self) -> Iterator[FieldError]:
        seen = set()
        for index, resource in enumerate(self.scoring_strategy.resources):
            path = f"scoringStrategy.resources[{index}]"
            if resource.weight < 1:
                yield FieldError.invalid(f"{path}.weight", resource.weight, "must be at least 1")
            if resource.name in seen:
                yield FieldError.duplicate(f"{path}.name", resource.name)
            seen.add(resource.name)
        if self.discard_reserved_nodes:
            yield FieldError.forbidden("discardReservedNodes", _NOT_HERE)
        if self.preemption_mode is PreemptionMode.ENABLED:
            yield FieldError.forbidden("preemptionMode", _NOT_HERE)
