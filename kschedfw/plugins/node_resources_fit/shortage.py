"""Checks of a pod's requests against a node's free amounts, and the shortages.

The demand is the pod's requests. A request of 0 is no demand: even an overcommitted node meets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import compress

import attrs
import numpy as np

from kschedfw import Code, FrozenDict, IntArray, NodeInfo, NodeTable, Resource, Status, Verdicts
from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended, wrapped
from kschedfw.framework.diagnosis import Evidence
from kschedfw.plugins._resources import amount_text

_MOST_RESOURCES = 62
"""The number of resources that have a bit in an int64, beside the bit for unresolvable."""

# Numbers below it are counted in an array: those of seven resources, and the bit for unresolvable.
_MOST_COUNTED = 256


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


@attrs.frozen
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
        free = self.capacity - self.used
        short = self.requested - free
        requested, left, all_, missing = (
            amount_text(self.resource, amount) for amount in (self.requested, free, self.capacity, short)
        )
        return Evidence(
            f"{self.resource}: {requested} requested",
            f"{left} free of {all_} allocatable, {missing} short",
            gap=short / self.requested,
            values={
                "resource": self.resource,
                "requested": self.requested,
                "free": free,
                "allocatable": self.capacity,
                "short": short,
            },
            code="insufficient-resource",
        )

    @property
    def unresolvable(self) -> bool:
        """True if even the empty node would be too small. Preemption can always reduce the number of pods."""
        return self.resource != PODS and self.requested > self.capacity


def fits(demand: Resource, info: NodeInfo) -> bool:
    """Tell whether nothing is short; faster than `shortages`, for the many nodes where the pod fits."""
    allocatable, requested = info.allocatable, info.requested
    if len(info.pods) >= allocatable.allowed_pod_number:
        return False
    # `wrapped`, here and below: kube-scheduler's difference of int64 overflows silently, and decides as it does.
    if demand.milli_cpu and demand.milli_cpu > wrapped(allocatable.milli_cpu - requested.milli_cpu):
        return False
    if demand.memory and demand.memory > wrapped(allocatable.memory - requested.memory):
        return False
    if demand.ephemeral_storage and demand.ephemeral_storage > wrapped(
        allocatable.ephemeral_storage - requested.ephemeral_storage
    ):
        return False
    if demand.scalar_resources:
        there, taken = allocatable.scalar_resources, requested.scalar_resources
        for name, amount in demand.scalar_resources.items():
            if amount and amount > wrapped(there.get(name, 0) - taken.get(name, 0)):
                return False
    return True


def shortages(demand: Resource, info: NodeInfo) -> Sequence[Shortage]:
    """Return all shortages, in the order: pods, CPU, memory, ephemeral storage, other resources by name."""
    short = []
    for name, amount in _wanted(demand):
        used = len(info.pods) if name == PODS else info.requested.get(name)
        capacity = info.allocatable.get(name)
        if amount > wrapped(capacity - used):
            short.append(Shortage(name, amount, used, capacity))
    return short


def verdict(demand: Resource, info: NodeInfo) -> Status | None:
    """Return the refusal of a node on which something is short; None if the pod fits."""
    if fits(demand, info):
        return None
    short = shortages(demand, info)
    return _refusal(tuple([each.resource for each in short]), any(each.unresolvable for each in short))


def verdicts(demand: Resource, nodes: NodeTable, rows: IntArray) -> Verdicts | None:
    """Return the `verdict` on each of the nodes; None if there are too many resources."""
    wanted = _wanted(demand)
    if len(wanted) > _MOST_RESOURCES:
        return None
    if not len(rows):
        return Verdicts.passing(0)
    # The bits of a node: one per short resource, and one for unresolvable. Those of all nodes are in `common`.
    common, short = 0, None
    refused: list[IntArray] = []
    for index, (name, amount) in enumerate(wanted):
        column, bit = nodes.columns.get(name), 2 << index
        if column is None:
            # Skip a request that has wrapped around int64, which always fits.
            if amount > 0:
                common |= bit | 1
            continue
        if nodes.all_have_free(column, amount):
            continue
        lacks = nodes.take(nodes.free[:, column], rows) < amount
        number = int(np.count_nonzero(lacks))
        if not number:
            continue
        if number == len(rows):
            common |= bit
            lacking = None
        else:
            lacking = lacks.nonzero()[0]
            refused.append(lacking)
            short = np.zeros(len(rows), dtype=np.int64) if short is None else short
            short[lacking] |= bit
        if name == PODS:
            continue
        allocatable = nodes.take(nodes.allocatable[:, column], rows)
        if lacking is not None and short is not None:
            short[lacking] |= amount > allocatable.take(lacking)
            continue
        unresolvable = amount > allocatable
        # Counting takes half the time of `all` and `any`.
        number = int(np.count_nonzero(unresolvable))
        if number == len(rows):
            common |= 1
        elif number:
            short = np.zeros(len(rows), dtype=np.int64) if short is None else short
            short |= unresolvable
    if short is None:
        if not common:
            return Verdicts.passing(len(rows))
        combinations: Sequence[int] = [common]
        codes = _ones(len(rows))
    else:
        combinations, codes = _numbered(short | common, None if common else np.concatenate(refused))
    names = [name for name, _ in wanted]
    statuses = [
        _refusal(tuple(compress(names, _bits(combination >> 1))), bool(combination & 1))
        for combination in combinations
    ]
    return Verdicts(codes, (Status.success(), *statuses))


def _numbered(short: IntArray, refused: IntArray | None) -> tuple[Sequence[int], IntArray]:
    """Return the distinct numbers except 0, and the index of each number among them, from 1 on; 0 has the index 0.

    `refused` are the positions of the numbers that aren't 0, possibly repeated: in most cases a small part. None: all.
    """
    occurring = short if refused is None else short.take(refused)
    if int(occurring[occurring.argmax()]) >= _MOST_COUNTED:
        # The appended 0 makes 0 the first combination, whether or not a node has it.
        combinations, codes = np.unique(np.append(short, 0), return_inverse=True)
        return combinations[1:].tolist(), codes[:-1]
    # The usual case, few resources: counting takes a fraction of the time of sorting.
    combinations = np.bincount(occurring).nonzero()[0]
    number_of = np.zeros(_MOST_COUNTED, dtype=np.int64)
    number_of[combinations] = np.arange(1, len(combinations) + 1)
    return combinations.tolist(), number_of.take(short)


@lru_cache(maxsize=16)
def _ones(count: int) -> IntArray:
    ones = np.ones(count, dtype=np.int64)
    # All callers share the array.
    ones.setflags(write=False)
    return ones


def _bits(number: int) -> Iterator[int]:
    """Yield the binary digits, lowest first."""
    while number:
        yield number & 1
        number >>= 1


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


@lru_cache(maxsize=1024)
def _refusal(resources: tuple[str, ...], unresolvable: bool) -> Status:
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Status(code, tuple(map(_reason, resources)))


def _reason(resource: str) -> str:
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"
