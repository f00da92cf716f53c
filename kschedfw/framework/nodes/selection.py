"""Some of a table's nodes, in an order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.table import NodeTable


class NodeSelection(Sequence[NodeInfo]):
    """A sequence of NodeInfos that is really the rows of a table; nothing is made per node until somebody looks.

    `rows` has shape (k,), each row at most once, and is read-only.
    """

    __slots__ = ("is_whole_table", "recurs", "rows", "table")

    def __init__(
        self, table: NodeTable, rows: IntArray, *, is_whole_table: bool = False, recurs: bool = False
    ) -> None:
        self.table = table
        rows.setflags(write=False)  # plugins see it
        self.rows = rows
        self.is_whole_table = is_whole_table
        """Whether this is all rows, in the table's order."""
        self.recurs = recurs or is_whole_table
        """Whether the same rows, this very array, come again and again, so that it pays to keep something for them.

        They are ascending.
        """

    @classmethod
    def whole(cls, table: NodeTable, start: int = 0) -> NodeSelection:
        """All nodes, in visiting order from row `start` on and round the end."""
        rows = table.all_rows
        if start == 0:
            return cls(table, rows, is_whole_table=True)
        return cls(table, np.concatenate((rows[start:], rows[:start])))

    @classmethod
    def of(cls, table: NodeTable, node_infos: Sequence[NodeInfo]) -> NodeSelection | None:
        """These nodes, if they are the table's; None if any isn't, or is in another state there."""
        if isinstance(node_infos, NodeSelection):
            return node_infos if node_infos.table is table else None
        rows = [table.rows.get(info.name, -1) for info in node_infos]
        known = all(
            row >= 0 and table.node_infos[row] is info for row, info in zip(rows, node_infos, strict=True)
        )
        if not known:
            return None
        is_whole_table = len(rows) == len(table) and rows == list(range(len(rows)))
        return cls(table, np.array(rows, dtype=np.int64), is_whole_table=is_whole_table)

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
            return NodeSelection(self.table, self.rows[index])
        return self.table.node_infos[int(self.rows[index])]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        infos = self.table.node_infos
        return (infos[row] for row in self.rows.tolist())
