"""Amounts of resources by name, as quotas count them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedfw import Pod

STANDARD = ("cpu", "memory", "ephemeral-storage")
"""What is compared with a quota even if nobody asks for it just now; of other resources, only what is asked for."""


def _without_zeros(by_name: Mapping[str, int]) -> Mapping[str, int]:
    return {name: amount for name, amount in by_name.items() if amount}


@attrs.frozen
class Amounts:
    """How much of each resource: CPU in millicores, all else in whole units. What isn't named is 0."""

    _by_name: Mapping[str, int] = attrs.field(factory=dict, converter=_without_zeros)

    @classmethod
    def requested_by(cls, pod: Pod) -> Amounts:
        """What the pod takes on a node, as NodeResourcesFit counts it."""
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
        """The resources of which there is any."""
        return frozenset(self._by_name)

    @property
    def compared(self) -> frozenset[str]:
        """The resources in which this is compared with a quota."""
        return self.names.union(STANDARD)


NOTHING = Amounts()
