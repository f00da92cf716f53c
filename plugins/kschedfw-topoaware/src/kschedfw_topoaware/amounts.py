"""Amounts of resources as integers, and which resources belong to a NUMA zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kschedfw import FrozenDict, Quantity

Amounts: TypeAlias = FrozenDict[str, int]
"""Thousandths of each resource. Names are in order, so that sums over equal amounts are equal to the last digit."""


def amounts_of(resources: Mapping[str, Quantity]) -> Amounts:
    return FrozenDict({name: resources[name].milli_value() for name in sorted(resources)})


def whole(thousandths: int) -> int:
    """In units, rounded up, as scores count them: 1.5 CPUs are two."""
    return -(-thousandths // 1000)


def total(several: Iterable[Amounts]) -> Amounts:
    sums: dict[str, int] = {}
    for amounts in several:
        for name, amount in amounts.items():
            sums[name] = sums.get(name, 0) + amount
    return FrozenDict({name: sums[name] for name in sorted(sums)})


def highest(several: Iterable[Amounts]) -> Amounts:
    """The most of each resource that any of them has."""
    most: dict[str, int] = {}
    for amounts in several:
        for name, amount in amounts.items():
            most[name] = max(most.get(name, amount), amount)
    return FrozenDict({name: most[name] for name in sorted(most)})


def is_native(name: str) -> bool:
    """Return whether Kubernetes itself defines the resource; what others define are devices, as a rule."""
    return "/" not in name or "kubernetes.io/" in name


def may_be_of_the_host(name: str) -> bool:
    """Return whether a node may have the resource without any of its zones having it."""
    return name in ("ephemeral-storage", "storage") or not is_native(name)


def is_of_a_zone(name: str) -> bool:
    """Return whether the resource always belongs to a zone; the kubelet aligns it for Guaranteed pods only."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")
