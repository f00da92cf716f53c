"""Helpers of the plugins that score resource usage: amounts on nodes, requests of pods, compiled scores.

Nodes are read one by one (`NodeInfo`) or many at once (`NodeTable`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Protocol

import attrs
import numpy as np

from kschedfw import MAX_NODE_SCORE, FieldError, IntArray, NodeInfo, NodeTable, Pod, Resource
from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, PodRequests, is_huge_pages
from kschedfw.framework.nodes.arrays import LARGEST_EXACT, FloatArray

_ATTRIBUTES = {CPU: "milli_cpu", MEMORY: "memory", EPHEMERAL_STORAGE: "ephemeral_storage"}
_NON_ZERO = (CPU, MEMORY)
"""The resources with a non-zero amount, in the order of `NodeTable.non_zero_requested`."""

# The sum of two such amounts, times 100, still fits int64.
_LARGEST_AMOUNT = np.iinfo(np.int64).max // (2 * MAX_NODE_SCORE)


_FEWEST_COMPILED = 256
"""The least number of nodes for which loading the compiled loops pays."""
_ROWS_BEFORE_LOADING = 20_000_000
"""The number of nodes that are scored before Numba is loaded for the compiled loops. NumPy takes half a second for so
many, as loading does. A what-if question about a thousand nodes scores fewer."""


@attrs.frozen
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


@attrs.frozen
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

    def float_columns(self, nodes: NodeTable, rows: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the amounts of `columns` in float64; None if no node has the resource, or amounts may be inexact."""
        if not 0 < nodes.largest(self.name) <= LARGEST_EXACT:
            return None
        column = nodes.columns[self.name]
        allocatable = nodes.allocatable_floats[:, column]
        if self.non_zero and self.name in _NON_ZERO:
            used = nodes.non_zero_floats[:, _NON_ZERO.index(self.name)]
        else:
            used = nodes.requested_floats[:, column]
        if rows is nodes.all_rows:
            return allocatable, used
        return nodes.take(allocatable, rows), nodes.take(used, rows)


Plan = Sequence[tuple[ScoredResource, int]]
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

    def plan_for(self, pod: Pod) -> Plan:
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


def plan_columns(plan: Plan, nodes: NodeTable, rows: IntArray) -> Sequence[tuple[IntArray, IntArray]] | None:
    """Return the `columns` of each resource of the plan; None if amounts are too large for batch arithmetic."""
    for resource, request in plan:
        if not 0 <= request <= _LARGEST_AMOUNT or nodes.largest(resource.name) > _LARGEST_AMOUNT:
            return None
    return [resource.columns(nodes, rows) for resource, _ in plan]


def rows_to_score(nodes: NodeTable, rows: IntArray) -> IntArray:
    """Return the rows to compute scores for when `rows` are wanted: all rows if most are wanted.

    Omitting a few rows from each column takes longer than omitting them from the scores.
    """
    everything = nodes.all_rows
    is_cheap = rows is everything or nodes.is_range(rows) or 2 * len(rows) < len(nodes)
    return rows if is_cheap else everything


class ScoreOfTwo(Protocol):
    """A function that scores k nodes by two resources. A resource that a node hasn't got doesn't count there."""

    def __call__(
        self,
        allocatable: FloatArray,
        used: FloatArray,
        request: float,
        allocatable_2: FloatArray,
        used_2: FloatArray,
        request_2: float,
        /,
    ) -> IntArray:
        """Return scores from allocatable and used amounts, shape (k,), and the pod's request, for both resources."""
        ...


class CompiledScores(Protocol):
    """The compiled forms of scores: the module `_compiled`."""

    @property
    def least_allocated(self) -> ScoreOfTwo: ...
    @property
    def balanced_allocation(self) -> ScoreOfTwo: ...


def compiled_scores(
    form: Callable[[CompiledScores], ScoreOfTwo], plan: Plan, nodes: NodeTable, rows: IntArray
) -> IntArray | None:
    """Return scores by a compiled form; None if it isn't installed, would be slower, or isn't exact here."""
    if len(plan) != 2 or len(rows) < _FEWEST_COMPILED:
        return None
    (first, request), (second, request_2) = plan
    if not (0 <= request <= LARGEST_EXACT and 0 <= request_2 <= LARGEST_EXACT):
        return None
    columns, columns_2 = first.float_columns(nodes, rows), second.float_columns(nodes, rows)
    if columns is None or columns_2 is None or not _ROWS_SCORED.suffice(len(rows)):
        return None
    compiled = _compiled_if_installed()
    return None if compiled is None else form(compiled)(*columns, request, *columns_2, request_2)


class _RowsScored:
    """Counts the nodes that were scored in this process without the compiled loops."""

    def __init__(self) -> None:
        self._rows = 0

    def suffice(self, rows: int) -> bool:
        """Count so many nodes more. Return whether loading the loops pays, or Numba is loaded anyway."""
        if self._rows < _ROWS_BEFORE_LOADING and "numba" not in sys.modules:
            self._rows += rows
            return False
        return True


_ROWS_SCORED = _RowsScored()


@cache
def _compiled_if_installed() -> CompiledScores | None:
    try:
        # Raises ImportError if Numba isn't installed.
        from kschedfw.plugins import _compiled
    except ImportError:
        return None
    return _compiled


def valid_score(score: int) -> int:
    """Return the score, cut to 0–100.

    Amounts that have wrapped around may give scores outside. kube-scheduler then fails every pod for which such
    a node is feasible; here a faulty node doesn't affect others.
    """
    return min(max(score, 0), MAX_NODE_SCORE)
