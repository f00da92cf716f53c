"""The values that a hook reads of nodes, as small integers that follow the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kschedfw.framework.learning.places import ReadPlace, readers, reads_of_node
from kschedfw.framework.nodes.encoded_column import EncodedColumn
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable


class NodeValues:
    """A column of the table with a code for each distinct combination of values at some places of a NodeInfo.

    Not one of the columns that the table keeps itself (`NodeTable.encoded`): what a hook reads becomes more while it is
    learned, and a column of fewer places would be kept up to date for ever.
    """

    def __init__(self, places: Sequence[ReadPlace], table: NodeTable) -> None:
        self.table = table
        self._reads_pods = reads_of_node(places) is Reads.PODS
        self.column = EncodedColumn(readers(places), table.node_infos)
        self.rows_read = len(table)
        """The number of nodes whose values were read since the caller last set this to 0."""
        self._present: Sequence[int] | None = None
        self._mark()

    @property
    def present(self) -> Sequence[int]:
        """The codes that nodes have, each once, in ascending order."""
        if self._present is None:
            self._present = np.flatnonzero(np.bincount(self.column.codes)).tolist()
        return self._present

    def _mark(self) -> None:
        self._present = None
        table = self.table
        self._layout, self._nodes, self._pods = (
            table.layout,
            table.node_changes.version,
            table.pod_changes.version,
        )

    def follow(self) -> None:
        """Read the nodes again that have changed."""
        table, column = self.table, self.column
        nodes, pods = table.node_changes, table.pod_changes
        is_same = self._layout == table.layout and self._nodes == nodes.version
        if is_same and (not self._reads_pods or self._pods == pods.version):
            return
        # Of rows that moved the logs know the new places, and a new row isn't in them.
        moved_from = table.all_rows if is_same else table.moved_since(self._layout)
        if is_same:
            changed = pods.since(self._pods)
        elif self._reads_pods:
            changed = table.changed_since(self._nodes, self._pods)
        else:
            changed = nodes.since(self._nodes)
        self._mark()
        if moved_from is None or changed is None:
            column.encode_anew(table.node_infos)
            self.rows_read += len(table)
            return
        if moved_from is not table.all_rows or len(column.codes) != len(table):
            column.move_rows(moved_from, table.node_infos)
            self.rows_read += int((moved_from < 0).sum())
        epoch = column.epoch
        for row in changed:
            column.update(row, table.node_infos[row], table.node_infos)
        self.rows_read += len(changed) if epoch == column.epoch else len(table)
