"""Arithmetic of elastic quotas: which namespaces exceed their bounds, and how much is left to lend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from kschedfw_capacity.amounts import NOTHING, Amounts


@attrs.frozen
class Bounds:
    """The bounds of a namespace: `min` is guaranteed, `max` is the limit.

    A resource that `min` doesn't name has no guarantee. A resource that `max` doesn't name has no limit.
    """

    min: Amounts = NOTHING
    max: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Quota:
    """The bounds of a namespace, and the requests of its pods on nodes."""

    bounds: Bounds
    used: Amounts = NOTHING

    @property
    def is_over_min(self) -> bool:
        """Return whether the namespace uses more than its min of some resource.

        It then borrows from other namespaces.
        """
        return exceeds(self.used, NOTHING, self.bounds.min)

    def is_over_min_with(self, request: Amounts) -> bool:
        """Return whether the namespace would use more than its min if `request` were added."""
        return exceeds(request, self.used, self.bounds.min)

    def is_over_max_with(self, request: Amounts) -> bool:
        """Return whether the namespace would use more than its max if `request` were added."""
        limits = self.bounds.max
        return any(
            name in limits and request[name] + self.used[name] > limits[name] for name in request.compared
        )


def exceeds(amounts: Amounts, beside: Amounts, bound: Amounts) -> bool:
    """Return whether `amounts` plus `beside` is above `bound` in a resource that `amounts` is compared in."""
    return any(amounts[name] + beside[name] > bound[name] for name in amounts.compared)


class Quotas:
    """Quotas by namespace, and the sums of their mins and usages. Changes of a clone don't affect the original."""

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
        """Add a pod's requests to its namespace's usage. Do nothing if the namespace has no quota."""
        if (quota := self._by_namespace.get(namespace)) is not None:
            self._by_namespace[namespace] = attrs.evolve(quota, used=quota.used + amounts)
            self._used += amounts

    def remove(self, namespace: str, amounts: Amounts) -> None:
        """Subtract a pod's requests from its namespace's usage. Do nothing if the namespace has no quota."""
        if (quota := self._by_namespace.get(namespace)) is not None:
            self._by_namespace[namespace] = attrs.evolve(quota, used=quota.used - amounts)
            self._used -= amounts

    def are_over_min_with(self, request: Amounts) -> bool:
        """Return whether usage plus `request` would be above the sum of all mins.

        Then no namespace can lend any more.
        """
        return exceeds(self._used + request, NOTHING, self._guaranteed)

    def clone(self) -> Quotas:
        copy = Quotas({})
        # Quotas are frozen, so a copy of the dict is enough.
        copy._by_namespace = dict(self._by_namespace)
        copy._guaranteed, copy._used = self._guaranteed, self._used
        return copy
