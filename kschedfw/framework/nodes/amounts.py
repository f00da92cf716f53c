"""Amounts of resources by node, in columns: what nodes have, what their pods take, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.resource import Resource
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kschedfw.framework.nodes.arrays import (
    FIRST_COLUMNS,
    LARGEST_EXACT,
    AmountColumns,
    FloatArray,
    IntArray,
    first_cells,
    moved,
)
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.read_only import read_only_view

_FIRST_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_PODS_COLUMN = _FIRST_RESOURCES.index(PODS)
_MAX_INT64 = (1 << 63) - 1


class NodeAmounts:
    """The part of a `NodeTable` with the amounts of r resources on n nodes, which its docstring tells of."""

    def _clear_amounts(self) -> None:
        """Begin without nodes."""
        self.resources: tuple[str, ...] = _FIRST_RESOURCES
        self.columns: Mapping[str, int] = _by_position(_FIRST_RESOURCES)
        self._allocatable = AmountColumns.zeros(FIRST_COLUMNS, 0)
        self._requested = AmountColumns.zeros(FIRST_COLUMNS, 0)
        self._non_zero = AmountColumns.zeros(2, 0)
        self._free: IntArray = np.zeros((FIRST_COLUMNS, 0), dtype=np.int64)
        self._balance: FloatArray = np.zeros(0)
        self._largest: list[int] = [0] * FIRST_COLUMNS
        self._least_free: list[int] = [_MAX_INT64] * FIRST_COLUMNS
        """A lower bound of the free amount on every node, by column."""
        self.is_exact = False
        """True if the table has CPU and memory, and all amounts of both are exact in float64."""
        self._has_wrapped = False
        """True if an amount was ever below 0."""

    def largest(self, resource: str) -> int:
        """Return an upper bound of the resource's amounts, allocatable or requested; 2⁶³−1 if any was ever below 0.

        For callers whose arithmetic is exact only for small amounts.
        """
        column = self.columns.get(resource)
        return 0 if column is None else self._largest[column]

    def all_have_free(self, column: int, amount: int) -> bool:
        """Return whether every node has this much free of the resource in a column of `free`."""
        if self._least_free[column] >= amount:
            return True
        # The bound falls with every pod that is placed and doesn't rise when pods go, so it may be too low by now.
        free = self._free[column]
        if not len(free):
            return True
        self._least_free[column] = least = int(free[free.argmin()])
        return least >= amount

    # Writing

    def _move_amounts(self, moved_from: IntArray) -> None:
        """Move the rows; new ones have no amounts yet."""
        self._allocatable = self._allocatable.moved(moved_from)
        self._requested = self._requested.moved(moved_from)
        self._non_zero = self._non_zero.moved(moved_from)
        self._free = moved(self._free, moved_from)
        self._balance = moved(self._balance, moved_from)
        # Writing a new row lowers the bounds of the resources that its node names, and of no others.
        if (moved_from < 0).any():
            self._least_free = [min(bound, 0) for bound in self._least_free]
        self._show_amounts()

    def _write_new(self, row: int, info: NodeInfo) -> None:
        """Write the amounts of a node into a new row."""
        self._write_allocatable(row, info, info)
        self._write_pods(row, info, info)

    def _write_allocatable(self, row: int, info: NodeInfo, old: NodeInfo) -> None:
        """Write what a node has; `old` is the state before. What is left must be written, too."""
        amounts = info.allocatable
        self._write_amounts(self._allocatable, row, old.allocatable, amounts, amounts.allowed_pod_number)

    def _write_pods(self, row: int, info: NodeInfo, old: NodeInfo) -> None:
        """Write what a node's pods take, and what they leave; `old` is the state before."""
        there, taken, pods = info.allocatable, info.requested, len(info.pods)
        non_zero, largest = info.non_zero_requested, self._largest
        self._write_amounts(self._requested, row, old.requested, taken, pods)
        self._balance_cells[row] = balance_of(there.milli_cpu, taken.milli_cpu, there.memory, taken.memory)
        cpu, memory = non_zero.milli_cpu, non_zero.memory
        ints, floats = self._non_zero.int_cells, self._non_zero.float_cells
        ints[0][row] = floats[0][row] = cpu
        ints[1][row] = floats[1][row] = memory
        if not (0 <= cpu <= largest[0] and 0 <= memory <= largest[1]):
            self._note_sizes(cpu, memory)
        if self._has_wrapped:
            self._subtract_free(row)
            return
        # No amount is below 0, so no difference wraps around. Python's integers take half the time of NumPy's.
        free, least = self._free_cells, self._least_free
        free[0][row] = cpu = there.milli_cpu - taken.milli_cpu
        free[1][row] = memory = there.memory - taken.memory
        free[2][row] = storage = there.ephemeral_storage - taken.ephemeral_storage
        free[_PODS_COLUMN][row] = left = there.allowed_pod_number - pods
        if cpu < least[0] or memory < least[1] or storage < least[2] or left < least[_PODS_COLUMN]:
            least[:FIRST_COLUMNS] = map(min, least, (cpu, memory, storage, left))
        # By name: there may be as many resources as nodes, of which each has one.
        had, has, uses = old.allocatable.scalar_resources, there.scalar_resources, taken.scalar_resources
        if had or has or uses or old.requested.scalar_resources:
            for name in {**had, **has, **uses, **old.requested.scalar_resources}:
                column, left = self.columns[name], has.get(name, 0) - uses.get(name, 0)
                self._free[column, row] = left
                least[column] = min(least[column], left)

    def _subtract_free(self, row: int) -> None:
        """Compute the free amounts in a row, in int64's arithmetic, which wraps around as Go's."""
        free = self._free[:, row]
        np.subtract(self._allocatable.ints[:, row], self._requested.ints[:, row], out=free)
        self._least_free = list(map(min, self._least_free, free.tolist()))

    def _write_amounts(
        self, columns: AmountColumns, row: int, before: Resource, amounts: Resource, pods: int
    ) -> None:
        """Write a row in place of the amounts `before`; all its resources must have a column."""
        cpu, memory, storage = amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage
        ints, floats = columns.int_cells, columns.float_cells
        ints[0][row] = floats[0][row] = cpu
        ints[1][row] = floats[1][row] = memory
        ints[2][row], ints[_PODS_COLUMN][row] = storage, pods
        # The bounds only rise: how much the node had before isn't looked up.
        largest = self._largest
        if not (0 <= cpu <= largest[0] and 0 <= memory <= largest[1] and 0 <= storage <= largest[2]):
            self._note_sizes(cpu, memory, storage)
        # A resource that the node or its pods no longer have isn't named in `amounts`.
        for name in before.scalar_resources:
            columns.ints[self.columns[name], row] = 0
        for name, amount in amounts.scalar_resources.items():
            column = self.columns[name]
            columns.ints[column, row] = amount
            self._note_size(column, amount)

    def _note_sizes(self, *amounts: int) -> None:
        """Raise the upper bounds to the amounts of the first resources, in their order."""
        for column, amount in enumerate(amounts):
            self._note_size(column, amount)

    def _note_size(self, column: int, amount: int) -> None:
        if amount < 0:
            # A sum of requests has wrapped around an int64, so no exact arithmetic is possible with it.
            self._largest[column], self._has_wrapped = _MAX_INT64, True
        elif amount > self._largest[column]:
            self._largest[column] = amount
        cpu, memory = self._largest[:2]
        self.is_exact = 0 < cpu <= LARGEST_EXACT and 0 < memory <= LARGEST_EXACT

    def _make_columns_of(self, infos: Iterable[NodeInfo]) -> None:
        """Add a column for each resource that one of the nodes names and none named before.

        So every resource that a NodeInfo of the table names has a column, as the writers of rows rely on.
        """
        new = dict.fromkeys(
            name
            for info in infos
            for amounts in (info.allocatable, info.requested)
            for name in amounts.scalar_resources
            if name not in self.columns
        )
        if not new:
            return
        self.resources = (*self.resources, *new)
        self.columns = _by_position(self.resources)
        self._allocatable = self._allocatable.with_more(len(new))
        self._requested = self._requested.with_more(len(new))
        self._free = np.concatenate((self._free, np.zeros((len(new), self._free.shape[1]), dtype=np.int64)))
        self._largest += [0] * len(new)
        # Until a row is written no node has anything of a new resource.
        self._least_free += [0] * len(new)
        self._show_amounts()

    def _show_amounts(self) -> None:
        """Expose the current arrays as read-only views; only the table writes to them."""
        self._free_cells, (self._balance_cells,) = (
            first_cells(self._free),
            first_cells(self._balance[np.newaxis]),
        )
        self.allocatable: IntArray = read_only_view(self._allocatable.ints).T
        self.requested: IntArray = read_only_view(self._requested.ints).T
        self.free: IntArray = read_only_view(self._free).T
        self.non_zero_requested: IntArray = read_only_view(self._non_zero.ints).T
        self.allocatable_floats: FloatArray = read_only_view(self._allocatable.floats).T
        self.requested_floats: FloatArray = read_only_view(self._requested.floats).T
        self.non_zero_floats: FloatArray = read_only_view(self._non_zero.floats).T
        self.pod_counts: IntArray = self.requested[:, _PODS_COLUMN]
        self.compiled_columns = (
            self.free.T,
            self.allocatable_floats.T,
            self.requested_floats.T,
            self.non_zero_floats.T,
            read_only_view(self._balance),
        )
        """Columns that compiled loops read: made once, since they run for every pod. See `passes.Columns`."""


def balance_of(there: int, taken: int, there_2: int, taken_2: int) -> int:
    """Return how evenly two resources of a node are used, as `numpy_pass.balance` does; any number for amounts below 0.

    Kept by node, since it takes two of the six divisions of a node's scores, and they most of a pass.
    """
    if there <= 0 or there_2 <= 0:
        return 100
    # Without the call of `floor`: the number isn't below 0.
    return int((1.0 - abs(min(taken / there, 1.0) - min(taken_2 / there_2, 1.0)) * 0.5) * 100.0)


def _by_position(names: Iterable[str]) -> FrozenDict[str, int]:
    return FrozenDict((name, position) for position, name in enumerate(names))
