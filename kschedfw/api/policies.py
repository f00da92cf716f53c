"""Objects by which an API server changes new pods or refuses them: RuntimeClass, LimitRange, ResourceQuota.

The scheduler never sees them. `kschedfw.api.admission` applies them to the pods of manifests.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.affinity import Toleration
from kschedfw.api.frozendict import EMPTY, FrozenDict, string_map
from kschedfw.api.meta import Named
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.records import frozen

CONTAINER: Final = "Container"
POD: Final = "Pod"


@frozen
class Overhead:
    """The overhead of a pod of a RuntimeClass beside its containers (node/v1 Overhead)."""

    pod_fixed: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)


@frozen
class RuntimeScheduling:
    """The nodes that support a RuntimeClass (node/v1 Scheduling)."""

    node_selector: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)
    tolerations: tuple[Toleration, ...] = ()


@frozen
class RuntimeClass(Named):
    """A way to run the containers of a pod (node/v1 RuntimeClass)."""

    overhead: Overhead | None = None
    scheduling: RuntimeScheduling | None = None


@frozen
class LimitRangeItem:
    """Bounds and defaults for the amounts of each container, or each pod (core/v1 LimitRangeItem).

    `default` are limits. `type` may also be another object's, such as PersistentVolumeClaim.
    """

    type: str = ""
    max: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    min: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    default: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    default_request: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    max_limit_request_ratio: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)


@frozen
class LimitRangeSpec:
    """The items of a LimitRange (core/v1 LimitRangeSpec)."""

    limits: tuple[LimitRangeItem, ...] = ()


@frozen
class LimitRange(Named):
    """Bounds and defaults for the resources of a namespace's pods (core/v1 LimitRange)."""

    spec: LimitRangeSpec = attrs.field(factory=LimitRangeSpec)


class QuotaScope(StrEnum):
    """A class of pods, or claims, that a quota counts (core/v1 ResourceQuotaScope)."""

    TERMINATING = "Terminating"
    NOT_TERMINATING = "NotTerminating"
    BEST_EFFORT = "BestEffort"
    NOT_BEST_EFFORT = "NotBestEffort"
    PRIORITY_CLASS = "PriorityClass"
    CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"
    VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"


class ScopeOperator(StrEnum):
    """The comparison of a scope with its values (core/v1 ScopeSelectorOperator)."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@frozen
class ScopeRequirement:
    """A condition on the pods that a quota counts (core/v1 ScopedResourceSelectorRequirement)."""

    scope_name: QuotaScope
    operator: ScopeOperator = ScopeOperator.EXISTS
    values: tuple[str, ...] = ()


@frozen
class ScopeSelector:
    """Conditions all of which have to hold (core/v1 ScopeSelector)."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


@frozen
class ResourceQuotaSpec:
    """The limits by resource, and the scope of a quota (core/v1 ResourceQuotaSpec)."""

    hard: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    scopes: tuple[QuotaScope, ...] = ()
    scope_selector: ScopeSelector | None = None

    @property
    def requirements(self) -> tuple[ScopeRequirement, ...]:
        """All conditions on the pods that the quota counts."""
        selected = self.scope_selector.match_expressions if self.scope_selector is not None else ()
        return (*map(ScopeRequirement, self.scopes), *selected)


@frozen
class ResourceQuota(Named):
    """The amounts that the pods of a namespace may use together (core/v1 ResourceQuota).

    Its status isn't read: the known pods are counted.
    """

    spec: ResourceQuotaSpec = attrs.field(factory=ResourceQuotaSpec)
