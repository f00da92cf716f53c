"""Amounts of resources by name, as quotas count them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedfw import Pod

STANDARD = ("cpu", "memory", "ephemeral-storage")
"""Resources that are always compared with a quota. Other resources are compared only if the pod requests them."""


def _without_zeros(by_name: Mapping[str, int]) -> Mapping[str, int]:
    return {name: amount for name, amount in by_name.items() if amount}


@attrs.frozen
class Amounts:
    """Amounts of resources by name: CPU in millicores, other resources in whole units. Unnamed resources are 0."""

    _by_name: Mapping[str, int] = attrs.field(factory=dict, converter=_without_zeros)

    @classmethod
    def requested_by(cls, pod: Pod) -> Amounts:
        """Return the pod's requests, as NodeResourcesFit counts them."""
        amounts = pod.requests.amounts
        standard = (amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage)
        return cls({**dict(zip(STANDARD, standard, strict=True)), **amounts.scalar_resources})

    def __getitem__(self, name: str) -> int:
        return self._by_name.get(name, 0)

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts({name: self[name] + other[name] for name in {**self._by_name, **other._by_name}})

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts({name: self[name] - other[name] for name in {**self._by_name, **other._by_name}})

    @property
    def names(self) -> frozenset[str]:
        """The resources with a nonzero amount."""
        return frozenset(self._by_name)

    @property
    def compared(self) -> frozenset[str]:
        """The resources that are compared with a quota: the nonzero ones and `STANDARD`."""
        return self.names.union(STANDARD)


NOTHING = Amounts()
