"""The kind ElasticQuota, as kubernetes-sigs/scheduler-plugins defines it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kschedfw import CustomKind, CustomResource, FieldError, FrozenDict, ObjectMeta, Quantity
from kschedfw_capacity.amounts import Amounts
from kschedfw_capacity.quota import Bounds


@attrs.frozen
class ElasticQuotaSpec:
    """The spec of an ElasticQuota.

    `min` is guaranteed to the namespace. It may borrow what other namespaces don't use of theirs, up to `max`.

    If a resource's `min` is above its `max`, only `max` is guaranteed, since the namespace may not use more. Such a
    quota isn't refused, because scheduler-plugins has no webhook that would refuse it.
    """

    min: FrozenDict[str, Quantity] = attrs.field(factory=FrozenDict)
    max: FrozenDict[str, Quantity] = attrs.field(factory=FrozenDict)

    @property
    def bounds(self) -> Bounds:
        """`min` and `max` in the integers that scheduling counts in."""
        least, most = _counted(self.min), _counted(self.max)
        guaranteed = {name: min(amount, most.get(name, amount)) for name, amount in least.items()}
        return Bounds(Amounts(guaranteed), most)


@attrs.frozen
class ElasticQuota(CustomResource):
    """The quota of a namespace. Of several quotas in one namespace, the oldest counts."""

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
