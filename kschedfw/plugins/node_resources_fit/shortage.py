"""Checks of a pod's requests against a node's free amounts, and the shortages.

The demand is the pod's requests. A request of 0 is no demand: even an overcommitted node meets it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import Code, FrozenDict, IntArray, NodeInfo, NodeTable, Resource, Status, Verdicts
from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended, wrapped
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Evidence
from kschedfw.plugins._resources import Amounts, amount_text

_MOST_RESOURCES = 14
"""The number of resources that have a bit in an int16, beside the bit for unresolvable."""

_SUCCESS = Status.success()
_Codes: TypeAlias = npt.NDArray[np.integer]


def without_ignored(amounts: Resource, resources: Set[str], groups: Set[str]) -> Resource:
    """Return requested amounts without the ignored extended resources (by name, or by group before the slash)."""
    kept = {
        name: amount
        for name, amount in amounts.scalar_resources.items()
        if not (is_extended(name) and (name in resources or name.partition("/")[0] in groups))
    }
    return (
        amounts
        if len(kept) == len(amounts.scalar_resources)
        else attrs.evolve(amounts, scalar_resources=FrozenDict(kept))
    )


@frozen
class Shortage:
    """A resource of which a node has too little left."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def reason(self) -> str:
        return _reason(self.resource)

    @property
    def evidence(self) -> Evidence:
        """The evidence with the numbers. The free amount is negative on an overcommitted node."""
        return _evidence(self.resource, self.requested, self.used, self.capacity)


# In a large cluster, many nodes are equally full.
@lru_cache(maxsize=1 << 12)
def _evidence(resource: str, requested: int, used: int, capacity: int) -> Evidence:
    free = capacity - used
    short = requested - free
    wanted, left, all_, missing = (
        amount_text(resource, amount) for amount in (requested, free, capacity, short)
    )
    return Evidence(
        f"{resource}: {wanted} requested",
        f"{left} free of {all_} allocatable, {missing} short",
        gap=short / requested,
        values={
            "resource": resource,
            "requested": requested,
            "free": free,
            "allocatable": capacity,
            "short": short,
        },
        code="insufficient-resource",
    )


def shortages(demand: Resource, info: NodeInfo) -> Sequence[Shortage]:
    """Return all shortages, in the order: pods, CPU, memory, ephemeral storage, other resources by name."""
    found = []
    for name, amount in _wanted(demand):
        used, capacity = _on_node(name, info)
        if _bits(2, name, amount, wrapped(capacity - used), capacity):
            found.append(Shortage(name, amount, used, capacity))
    return found


def verdict(demand: Resource, info: NodeInfo) -> Status | None:
    """Return the refusal of a node on which something is short; None if the pod fits."""
    wanted, short = _wanted(demand), 0
    for index, (name, amount) in enumerate(wanted):
        used, capacity = _on_node(name, info)
        # kube-scheduler's difference of int64 overflows silently, and decides as it does.
        short |= _bits(2 << index, name, amount, wrapped(capacity - used), capacity)
    return _refusal(wanted, short) if short else None


def verdicts(demand: Resource, nodes: NodeTable, rows: IntArray) -> Verdicts:
    """Return the `verdict` on each of the nodes."""
    wanted = _wanted(demand)
    # Python's ints have bits for any number of resources.
    kind = np.dtype(np.int16 if len(wanted) <= _MOST_RESOURCES else object)
    short: Amounts = np.array(0, dtype=kind)
    for index, (name, amount) in enumerate(wanted):
        column, bit = nodes.columns.get(name), np.array(2 << index, dtype=kind)
        if column is None or (name != PODS and amount > nodes.largest(name)):
            # No node has so much: one number for all nodes.
            short = short | _bits(bit, name, amount, 0, 0)
        elif not nodes.all_have_free(column, amount):
            free, capacity = nodes.free[:, column], nodes.allocatable[:, column]
            short = short | _bits(bit, name, amount, nodes.take(free, rows), nodes.take(capacity, rows))
    combinations: Sequence[int]
    if np.ndim(short) == 0:
        combinations, codes = ([int(short)], _ones(len(rows))) if short else ([], _ones(0))
    else:
        combinations, codes = _numbered(short)
    if not combinations:
        return Verdicts.passing(len(rows))
    return Verdicts(codes, (_SUCCESS, *[_refusal(wanted, each) for each in combinations]))


def _bits(bit: Amounts, name: str, amount: int, free: Amounts, capacity: Amounts) -> Amounts:
    """Return what is said of one resource, for one node (ints) or for many (columns); 0 where enough is free.

    Otherwise `bit` is set, and bit 0 if even the empty node would be too small, so that preemption makes no room there.
    The number of pods on a node can always be reduced.
    """
    lacks = amount > free
    return lacks * bit if name == PODS else lacks * bit | lacks & (amount > capacity)


def _on_node(name: str, info: NodeInfo) -> tuple[int, int]:
    """Return the used and the allocatable amount of a resource."""
    return len(info.pods) if name == PODS else info.requested.get(name), info.allocatable.get(name)


@lru_cache(maxsize=16)
def _ones(count: int) -> _Codes:
    ones = np.ones(count, dtype=np.int8)
    # All callers share the array.
    ones.setflags(write=False)
    return ones


def _numbered(short: Amounts) -> tuple[Sequence[int], _Codes]:
    """Return the distinct numbers except 0, and the index of each number among them, from 1 on; 0 has the index 0."""
    if short.dtype == object:
        # The appended 0 makes 0 the first combination, whether or not a node has it.
        combinations, codes = np.unique(np.append(short, 0), return_inverse=True)
        return combinations[1:].tolist(), codes[:-1]
    # Counting takes a fraction of the time of sorting.
    there = np.bincount(short, minlength=1) > 0
    there[0] = False
    found: list[int] = there.nonzero()[0].tolist()
    if len(found) == 1:
        return found, (short != 0).view(np.int8)
    return found, (there.cumsum() * there).take(short)


def _wanted(demand: Resource) -> Sequence[tuple[str, int]]:
    """Return the amounts that must be free on a node, in the order of reasons."""
    wanted = [(PODS, 1)]
    if demand.milli_cpu:
        wanted.append((CPU, demand.milli_cpu))
    if demand.memory:
        wanted.append((MEMORY, demand.memory))
    if demand.ephemeral_storage:
        wanted.append((EPHEMERAL_STORAGE, demand.ephemeral_storage))
    if demand.scalar_resources:
        wanted += [each for each in sorted(demand.scalar_resources.items()) if each[1]]
    return wanted


def _refusal(wanted: Sequence[tuple[str, int]], short: int) -> Status:
    resources = tuple([name for index, (name, _) in enumerate(wanted) if short >> index + 1 & 1])
    return _refusal_for(resources, bool(short & 1))


@lru_cache(maxsize=1024)
def _refusal_for(resources: tuple[str, ...], is_unresolvable: bool) -> Status:
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_unresolvable else Code.UNSCHEDULABLE
    return Status(code, tuple(map(_reason, resources)))


def _reason(resource: str) -> str:
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"
