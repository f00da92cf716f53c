"""Amounts of resources as integers, and the rules which resources belong to a NUMA zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kschedfw import FrozenDict, Quantity

Amounts: TypeAlias = FrozenDict[str, int]
"""Thousandths by resource name, ordered by name.

The order makes float sums over equal amounts equal to the last digit.
"""


def amounts_of(resources: Mapping[str, Quantity]) -> Amounts:
    return FrozenDict({name: resources[name].milli_value() for name in sorted(resources)})


def whole(thousandths: int) -> int:
    """Convert thousandths to whole units, rounded up as in scores: 1.5 CPUs are two."""
    # Python rounds towards minus infinity, so the negation rounds up, in integers.
    return -(-thousandths // 1000)


def total(several: Iterable[Amounts]) -> Amounts:
    sums: dict[str, int] = {}
    for amounts in several:
        for name, amount in amounts.items():
            sums[name] = sums.get(name, 0) + amount
    return FrozenDict({name: sums[name] for name in sorted(sums)})


def highest(several: Iterable[Amounts]) -> Amounts:
    """Return the largest amount of each resource in any of `several`."""
    most: dict[str, int] = {}
    for amounts in several:
        for name, amount in amounts.items():
            most[name] = max(most.get(name, amount), amount)
    return FrozenDict({name: most[name] for name in sorted(most)})


def is_native(name: str) -> bool:
    """Return whether Kubernetes itself defines the resource. Resources defined by others usually are devices."""
    return "/" not in name or "kubernetes.io/" in name


def may_be_of_the_host(name: str) -> bool:
    """Return whether a node may have the resource outside of its zones."""
    return name in ("ephemeral-storage", "storage") or not is_native(name)


def is_of_a_zone(name: str) -> bool:
    """Return whether the resource always belongs to a zone.

    The kubelet aligns such resources for Guaranteed pods only.
    """
    return name in ("cpu", "memory") or name.startswith("hugepages-")
