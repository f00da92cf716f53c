"""An ordered selection of a table's nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.table import NodeTable


class NodeSelection(Sequence[NodeInfo]):
    """Nodes of a table, given by their rows. Reads as a sequence of NodeInfos, which are looked up on demand.

    `rows` has shape (k,), int64: each row at most once, in visiting order. The array is read-only.
    """

    __slots__ = ("_count", "_make", "_rows", "start", "table")

    def __init__(self, table: NodeTable, rows: IntArray) -> None:
        # Plugins get this array.
        rows.setflags(write=False)
        self.table = table
        self.start: int | None = None
        """The first row, if the selection has all nodes of the table from there on and round the end; else None."""
        self._rows: IntArray | None = rows
        self._count = len(rows)
        self._make: Callable[[], IntArray] | None = None

    @classmethod
    def whole(cls, table: NodeTable, start: int = 0) -> NodeSelection:
        """Return a selection of all nodes, in visiting order from row `start` on and round the end."""
        selection = cls(table, table.all_rows)
        selection.start = start
        if start:
            selection._rows = None
        return selection

    @classmethod
    def made_later(cls, table: NodeTable, count: int, make: Callable[[], IntArray]) -> NodeSelection:
        """Return a selection of `count` nodes, whose rows are made when somebody reads them."""
        selection = cls(table, table.all_rows)
        selection._rows, selection._count, selection._make = None, count, make
        return selection

    @classmethod
    def of(cls, table: NodeTable, node_infos: Sequence[NodeInfo]) -> NodeSelection | None:
        """Return a selection of these NodeInfos; None if the table lacks one of them, or has another state of it."""
        if isinstance(node_infos, NodeSelection):
            return node_infos if node_infos.table is table else None
        # Another state of a node doesn't count: the table's columns would answer for a state that the caller
        # hasn't got.
        rows = [table.rows.get(info.name, -1) for info in node_infos]
        for row, info in zip(rows, node_infos, strict=True):
            if row < 0 or table.node_infos[row] is not info:
                return None
        return cls._of_rows(table, rows)

    @classmethod
    def named(cls, table: NodeTable, names: Iterable[str]) -> NodeSelection:
        """Return a selection by node names; each must be in the table, and be given once.

        Raises:
            KeyError: the table has no such node.
        """
        return cls._of_rows(table, list(map(table.rows.__getitem__, names)))

    @classmethod
    def _of_rows(cls, table: NodeTable, rows: list[int]) -> NodeSelection:
        # A whole table is recognised, since batch forms then read columns without a copy of their entries.
        if len(rows) == len(table) and rows == list(range(len(rows))):
            return cls.whole(table)
        return cls(table, np.array(rows, dtype=np.int64))

    @property
    def rows(self) -> IntArray:
        if self._rows is None and self._make is not None:
            self._rows = self._make()
            self._rows.setflags(write=False)
        if self._rows is None:
            rows = self.table.all_rows
            self._rows = np.concatenate((rows[self.start :], rows[: self.start]))
            self._rows.setflags(write=False)
        return self._rows

    def part(self, begin: int, end: int) -> NodeSelection:
        """Return the nodes from position `begin` up to `end`, 0 ≤ begin ≤ end ≤ k."""
        if self.start is None:
            return NodeSelection(self.table, self.rows[begin:end])
        count, first = len(self.table), self.start + begin
        if begin == 0 and end == count:
            return self
        # Slices of `all_rows` are views, which `NodeTable.take` knows: a part that doesn't go round the end
        # costs no copy.
        if first >= count:
            first -= count
        last = first + end - begin
        rows = self.table.all_rows
        if last <= count:
            return NodeSelection(self.table, rows[first:last])
        return NodeSelection(self.table, np.concatenate((rows[first:], rows[: last - count])))

    @property
    def is_whole_table(self) -> bool:
        """True if the selection has all nodes, in the table's order."""
        return self.start == 0

    @property
    def names(self) -> tuple[str, ...]:
        names = self.table.names
        return names if self.is_whole_table else tuple(map(names.__getitem__, self.rows.tolist()))

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> NodeSelection: ...
    def __getitem__(self, index: int | slice) -> NodeInfo | NodeSelection:
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step == 1:
                return self.part(begin, max(begin, end))
            return NodeSelection(self.table, self.rows[index])
        return self.table.node_infos[int(self.rows[index])]

    def __len__(self) -> int:
        if self.start is not None:
            return len(self.table.node_infos)
        return self._count

    def __iter__(self) -> Iterator[NodeInfo]:
        infos = self.table.node_infos
        return (infos[row] for row in self.rows.tolist())
