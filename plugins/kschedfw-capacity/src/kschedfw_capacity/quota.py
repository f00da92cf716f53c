"""The arithmetic of elastic quotas: who is over what, and what that leaves for others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kschedfw_capacity.amounts import NOTHING, Amounts


@attrs.frozen
class Bounds:
    """What a namespace is sure to get, and what it may use at most.

    `min` guarantees nothing of a resource that it doesn't name; `max` sets no limit to one that it doesn't name.
    """

    min: Amounts = NOTHING
    max: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Quota:
    """The bounds of a namespace, and what its pods use."""

    bounds: Bounds
    used: Amounts = NOTHING

    @property
    def is_over_min(self) -> bool:
        """True if the namespace uses more than its min of some resource, which it then borrows from others."""
        return exceeds(self.used, NOTHING, self.bounds.min)

    def is_over_min_with(self, request: Amounts) -> bool:
        """Return whether the namespace would use more than its min, were this used as well."""
        return exceeds(request, self.used, self.bounds.min)

    def is_over_max_with(self, request: Amounts) -> bool:
        """Return whether the namespace would use more than its max, were this used as well."""
        limits = self.bounds.max
        return any(
            name in limits and request[name] + self.used[name] > limits[name] for name in request.compared
        )


def exceeds(amounts: Amounts, beside: Amounts, bound: Amounts) -> bool:
    """Return whether the sum of the first two is over the bound, in one of the resources that the first is about."""
    return any(amounts[name] + beside[name] > bound[name] for name in amounts.compared)


class Quotas:
    """The quotas of a cluster by namespace, and what all of them use together. Changes of a clone don't show here."""

    __slots__ = ("_by_namespace", "_guaranteed", "_used")

    def __init__(self, quotas: Mapping[str, Quota]) -> None:
        self._by_namespace = dict(quotas)
        self._guaranteed = sum((quota.bounds.min for quota in quotas.values()), NOTHING)
        self._used = sum((quota.used for quota in quotas.values()), NOTHING)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._by_namespace

    def __getitem__(self, namespace: str) -> Quota:
        return self._by_namespace[namespace]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_namespace)

    def add(self, namespace: str, amounts: Amounts) -> None:
        """Count what a pod uses; where the namespace has no quota, nothing is counted."""
        if (quota := self._by_namespace.get(namespace)) is not None:
            self._by_namespace[namespace] = attrs.evolve(quota, used=quota.used + amounts)
            self._used += amounts

    def remove(self, namespace: str, amounts: Amounts) -> None:
        """Count it no longer."""
        if (quota := self._by_namespace.get(namespace)) is not None:
            self._by_namespace[namespace] = attrs.evolve(quota, used=quota.used - amounts)
            self._used -= amounts

    def are_over_min_with(self, request: Amounts) -> bool:
        """Return whether all namespaces would use more than the sum of their mins, were this used as well.

        Then nobody has anything left to lend.
        """
        return exceeds(self._used + request, NOTHING, self._guaranteed)

    def clone(self) -> Quotas:
        copy = Quotas({})
        copy._by_namespace = dict(self._by_namespace)
        copy._guaranteed, copy._used = self._guaranteed, self._used
        return copy
