"""The amounts that scores of resource usage are made of: what nodes have, what their pods use, what a pod requests.

A score is one function of `Usage`s, for a single node (of ints) and for the columns of many (of arrays) alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from kschedfw import MAX_NODE_SCORE, FieldError, IntArray, NodeInfo, NodeTable, Pod, Resource
from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, PodRequests, is_huge_pages
from kschedfw.api.records import frozen

_ATTRIBUTES = {CPU: "milli_cpu", MEMORY: "memory", EPHEMERAL_STORAGE: "ephemeral_storage"}
_NON_ZERO = (CPU, MEMORY)
"""The resources with a non-zero amount, in the order of `NodeTable.non_zero_requested`."""

# The sum of two such amounts, times 100, still fits int64.
_LARGEST_AMOUNT = np.iinfo(np.int64).max // (2 * MAX_NODE_SCORE)


@frozen
class ResourceSpec:
    """A resource that counts for the score, and its weight."""

    name: str
    # In a configuration file 0 is the same as omitting it.
    weight: int = attrs.field(default=1, metadata={"zero_is_unset": True})


DEFAULT_RESOURCES = (ResourceSpec(CPU), ResourceSpec(MEMORY))


def resources_or_default(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    return tuple(resources) or DEFAULT_RESOURCES


def duplicate_errors(resources: Sequence[ResourceSpec], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, resource in enumerate(resources):
        if resource.name in seen:
            yield FieldError.duplicate(f"{path}[{index}].name", resource.name)
        seen.add(resource.name)


def amount_text(name: str, amount: int) -> str:
    """Return an amount for people: `80m` or `4` of CPU, `1.5Gi` of memory, rounded to a tenth of the unit."""
    if name == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if name not in (MEMORY, EPHEMERAL_STORAGE) and not is_huge_pages(name):
        return str(amount)
    size = float(amount)
    for unit in ("", "Ki", "Mi", "Gi"):
        if abs(size) < 1024:
            return f"{size:.1f}".removesuffix(".0") + unit
        size /= 1024
    return f"{size:.1f}".removesuffix(".0") + "Ti"


def amount_columns(nodes: NodeTable, rows: IntArray, name: str) -> tuple[IntArray, IntArray]:
    """Return the allocatable and the requested amounts of a resource on these nodes; 0 if no node has the resource.

    Two arrays of shape (k,), int64, for k rows. Not to be changed.
    """
    column = nodes.columns.get(name)
    if column is None:
        nothing = np.zeros(len(rows), dtype=np.int64)
        return nothing, nothing
    return nodes.take(nodes.allocatable[:, column], rows), nodes.take(nodes.requested[:, column], rows)


@frozen
class ScoredResource:
    """A resource that counts for a score.

    With `non_zero`, scores use a pod's `scored` request, and the pods on nodes count as if their containers
    that request no CPU or memory had requested 100m and 200 MiB.
    """

    name: str
    weight: int
    non_zero: bool
    _amount: Callable[[Resource], int] = attrs.field(init=False)
    """A faster `Resource.get` of this name, by attribute where there is one: scores call it for every node."""

    @_amount.default
    def _amount_by_attribute(self) -> Callable[[Resource], int]:
        name = self.name
        attribute = _ATTRIBUTES.get(name)
        return (lambda amounts: amounts.get(name)) if attribute is None else attrgetter(attribute)

    @classmethod
    def of(cls, spec: ResourceSpec, *, non_zero: bool) -> ScoredResource:
        return cls(spec.name, spec.weight, non_zero)

    @property
    def on_every_node(self) -> bool:
        """True if the resource also counts for pods that don't request it."""
        return self.name in (CPU, MEMORY, EPHEMERAL_STORAGE)

    def request_of(self, requests: PodRequests) -> int:
        """Return a pod's request."""
        return self._amount(requests.scored if self.non_zero else requests.amounts)

    def on_node(self, info: NodeInfo) -> tuple[int, int]:
        """Return a node's allocatable amount, and the amount that its pods have."""
        taken = info.non_zero_requested if self.non_zero and self.name in _NON_ZERO else info.requested
        return self._amount(info.allocatable), self._amount(taken)

    def columns(self, nodes: NodeTable, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the amounts of `on_node` for the nodes in these rows: two int64 arrays of shape (k,). Read-only."""
        if self.non_zero and self.name in _NON_ZERO:
            used = nodes.non_zero_requested[:, _NON_ZERO.index(self.name)]
            return nodes.take(nodes.allocatable[:, nodes.columns[self.name]], rows), nodes.take(used, rows)
        return amount_columns(nodes, rows, self.name)


WeighedResources = Sequence[tuple[ScoredResource, int]]
"""The resources that count for a pod, each with the pod's request."""


class ScoredResources:
    """The resources that count for a score, and a function that reads a pod's requests of them."""

    def __init__(self, specs: Sequence[ResourceSpec], *, non_zero: bool) -> None:
        self.resources = tuple([ScoredResource.of(spec, non_zero=non_zero) for spec in specs])
        names = [spec.name for spec in specs]
        self.are_cpu_and_memory = names == [CPU, MEMORY]
        self.requests_of: Callable[[PodRequests], tuple[int, ...]] = self._requests_one_by_one
        """The pod's request of each resource, in order."""
        if len(names) > 1 and _ATTRIBUTES.keys() >= set(names):
            # Called for every pod that is scored: one call into C instead of one into Python for each resource.
            amounts = "scored" if non_zero else "amounts"
            self.requests_of = attrgetter(*(f"{amounts}.{_ATTRIBUTES[name]}" for name in names))

    def _requests_one_by_one(self, requests: PodRequests) -> tuple[int, ...]:
        return tuple([resource.request_of(requests) for resource in self.resources])

    def plan_for(self, pod: Pod) -> WeighedResources:
        """Return the scored resources that count for the pod, with its requests.

        An extended resource only counts for pods that request it; CPU, memory and ephemeral storage always
        count.
        """
        requests = self.requests_of(pod.requests)
        return [
            (resource, request)
            for resource, request in zip(self.resources, requests, strict=True)
            if request or resource.on_every_node
        ]


Amounts: TypeAlias = Any
"""The amounts of one node, an int, or of k nodes, an array of shape (k,). Formulas with `+ - * // < >` take both."""


class Usage(NamedTuple):
    """One resource: what there is, what pods have of it, what the pod requests, and the weight of its share."""

    allocatable: Amounts
    used: Amounts
    request: int
    weight: int


def usages_in(plan: WeighedResources, nodes: NodeTable, rows: IntArray) -> Sequence[Usage]:
    """Return the usage of each resource of the plan on these nodes."""
    usages = []
    for resource, request in plan:
        allocatable, used = resource.columns(nodes, rows)
        if not 0 <= request <= _LARGEST_AMOUNT or nodes.largest(resource.name) > _LARGEST_AMOUNT:
            # Arrays of Python's ints, in which sums and products can't overflow.
            allocatable, used = allocatable.astype(object), used.astype(object)
        usages.append(Usage(allocatable, used, request, resource.weight))
    return usages


def valid_score(score: int) -> int:
    """Return the score, cut to 0–100.

    Amounts that have wrapped around may give scores outside. kube-scheduler then fails every pod for which such
    a node is feasible; here a faulty node doesn't affect others.
    """
    return min(max(score, 0), MAX_NODE_SCORE)


def valid_scores(scores: Amounts, nodes: int) -> IntArray:
    """Return `valid_score` of so many nodes; `scores` is one int where all have the same."""
    return np.full(nodes, np.clip(scores, 0, MAX_NODE_SCORE), dtype=np.int64)
