"""The kind ElasticQuota, as kubernetes-sigs/scheduler-plugins defines it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kschedfw import CustomKind, CustomResource, FieldError, FrozenDict, ObjectMeta, Quantity
from kschedfw_capacity.amounts import Amounts
from kschedfw_capacity.quota import Bounds


@attrs.frozen
class ElasticQuotaSpec:
    """`min` is guaranteed to the namespace; it may borrow up to `max` of what others don't use of theirs.

    If `min` of a resource is above its `max`, `max` is guaranteed: nobody can be sure to get what he may not use. It
    isn't refused, as scheduler-plugins has no webhook that would.
    """

    min: FrozenDict[str, Quantity] = attrs.field(factory=FrozenDict)
    max: FrozenDict[str, Quantity] = attrs.field(factory=FrozenDict)

    @property
    def bounds(self) -> Bounds:
        """The same in the integers in which scheduling counts."""
        least, most = _counted(self.min), _counted(self.max)
        guaranteed = {name: min(amount, most.get(name, amount)) for name, amount in least.items()}
        return Bounds(Amounts(guaranteed), most)


@attrs.frozen
class ElasticQuota(CustomResource):
    """What a namespace may use. Of several in one namespace, the oldest counts."""

    kind = CustomKind("scheduling.x-k8s.io/v1alpha1", "ElasticQuota")

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: ElasticQuotaSpec = attrs.field(factory=ElasticQuotaSpec)

    def validate(self) -> Iterator[FieldError]:
        for field, resources in (("min", self.spec.min), ("max", self.spec.max)):
            for name, quantity in resources.items():
                if quantity.sign < 0:
                    yield FieldError.invalid(
                        f"spec.{field}[{name}]", str(quantity), "must be greater than or equal to 0"
                    )


def _counted(resources: Mapping[str, Quantity]) -> Mapping[str, int]:
    return {
        name: quantity.milli_value() if name == "cpu" else quantity.value()
        for name, quantity in resources.items()
    }
