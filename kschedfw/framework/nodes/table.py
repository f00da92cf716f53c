"""The nodes of a snapshot in columns, for hooks that answer for all nodes at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.node import Taint
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.amounts import NodeAmounts
from kschedfw.framework.nodes.arrays import (
    IntArray,
    moved,
)
from kschedfw.framework.nodes.change_log import ChangeLog
from kschedfw.framework.nodes.encoded_column import EncodedColumn
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.read_only import ReadOnlyList, read_only_view
from kschedfw.framework.nodes.reads import Reads

ValueT = TypeVar("ValueT", bound=Hashable)
ScalarT = TypeVar("ScalarT", bound=np.generic)

_MOST_MOVES = 8
"""The number of layouts that a reader may lag behind and still keep its values of the nodes that stayed."""


@frozen
class TableVersion:
    """A state of the table; equal versions mean that nothing has changed."""

    layout: int
    nodes: int
    pods: int


class TableListener(Protocol):
    """A reader of a table's changes, such as an index that is kept in step with it."""

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:
        """The node in this row, or its pods, have changed."""
        ...

    def rows_moved(self, moved_from: IntArray, gone: Sequence[NodeInfo], added: Sequence[NodeInfo]) -> None:
        """Rows have moved: row i was row `moved_from[i]`, -1 if it is new. Nothing else has changed.

        `gone` are the nodes that have no row any more, `added` those of the new rows, in their order.
        """
        ...

    def table_rebuilt(self) -> None:
        """The table was written anew, after a change that raised before all listeners were told of it.

        What was computed before may be wrong, so everything must be computed from the table.
        """
        ...


class NodeTable(NodeAmounts):
    """Columns over n nodes and r resources; row i is node i of the snapshot. Hooks only read them: writing raises.

    `allocatable` and `requested` have shape (n, r), int64, in the resources' base units (millicores, bytes,
    counts), the columns named by `resources`, of which the first four always are cpu, memory, ephemeral-storage and
    pods; each column is contiguous. `non_zero_requested` has shape (n, 2): CPU and memory as scores count them.
    `free` is what is left, allocatable − requested, in the same shape. It wraps around as Go's difference does, and is
    below 0 where a node is overcommitted. `allocatable_floats`, `requested_floats` and `non_zero_floats` have CPU and
    memory in float64, shape (n, 2), exact up to 2⁵³: compiled loops over them take a third of the time. `pod_counts`
    and `unschedulable` have shape (n,). Labels, taints and whatever else plugins ask for (`encoded`) are encoded when
    first asked for.

    The snapshot keeps the table in step, in place, at the cost of the rows that changed, and each change goes to one of
    two logs: `node_changes` for node objects, `pod_changes` for the pods on nodes. When nodes come or go, rows
    move: `layout` goes up, `moved_from` tells where each row was (-1: nowhere), and the logs follow.
    `moved_since` tells where rows were in earlier layouts.

    A change that raises, in a listener or by Ctrl-C, may leave a row half written: then the snapshot has the table
    written anew (`rebuild`).
    """

    def __init__(self, node_infos: Sequence[NodeInfo]) -> None:
        self.node_changes = ChangeLog()
        self.pod_changes = ChangeLog()
        self.layout = 0
        self.state_of_nodes = object()
        """Another object after every change of node objects or of their rows: readers compare its identity."""
        self._encoded: dict[Hashable, EncodedColumn[Any]] = {}
        self._encoded_from_pods: list[EncodedColumn[Any]] = []
        self._listeners: list[TableListener] = []
        self._pod_listeners: list[TableListener] = []
        self._changed_since: dict[tuple[int, int], Sequence[int] | None] = {}
        """Cached results of `changed_since`: many columns ask with the same versions."""
        self._moves: deque[tuple[int, IntArray]] = deque(maxlen=_MOST_MOVES)
        """The latest moves: the number of rows before, and each row's earlier place."""
        self._moved_since: dict[int, IntArray] = {}
        """Cached results of `moved_since`."""
        self._fill(node_infos, FrozenDict((info.name, row) for row, info in enumerate(node_infos)))

    def _fill(self, node_infos: Sequence[NodeInfo], rows: Mapping[str, int]) -> None:
        """Write all columns from nothing."""
        self.node_infos: Sequence[NodeInfo] = ()
        self.rows: Mapping[str, int] = EMPTY
        self._clear_amounts()
        self._unschedulable: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._place(node_infos, rows, np.full(len(node_infos), -1, dtype=np.int64))

    @classmethod
    def of(cls, node_infos: Sequence[NodeInfo]) -> NodeTable:
        return cls(node_infos)

    def __len__(self) -> int:
        return len(self.node_infos)

    @cached_property
    def all_rows(self) -> IntArray:
        """The rows 0 … n−1, shape (n,), int64. A slice of it stands for consecutive nodes; see `take`."""
        rows: IntArray = np.arange(len(self.node_infos), dtype=np.int64)
        rows.setflags(write=False)
        return rows

    def is_all(self, rows: IntArray) -> bool:
        """Return whether `rows` is `all_rows` itself; an equal array doesn't count."""
        return rows is self.all_rows

    def take(self, column: npt.NDArray[ScalarT], rows: IntArray) -> npt.NDArray[ScalarT]:
        """Return the entries of a column of shape (n,) in these rows, shape (k,); not to be changed.

        Nothing is copied where `rows` is `all_rows` or a slice of it, as in most calls of a batch hook.
        """
        if rows is self.all_rows:
            return column
        if self.is_range(rows):
            first = int(rows[0])
            return column[first : first + len(rows)]
        return column.take(rows)

    def is_range(self, rows: IntArray) -> bool:
        """Return whether `rows` is a slice of `all_rows`: consecutive rows."""
        everything = self.all_rows
        return rows.base is everything and rows.strides == everything.strides and len(rows) > 0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The nodes' names, by row."""
        return tuple(info.name for info in self.node_infos)

    @property
    def version(self) -> TableVersion:
        return TableVersion(self.layout, self.node_changes.version, self.pod_changes.version)

    def changed_since(self, nodes: int, pods: int) -> Sequence[int] | None:
        """Return the rows, each once, changed since these versions of the two logs; None if a log begins later."""
        try:
            return self._changed_since[nodes, pods]
        except KeyError:
            rows, more = self.node_changes.since(nodes), self.pod_changes.since(pods)
            changed = None if rows is None or more is None else tuple({*rows, *more})
            self._changed_since[nodes, pods] = changed
            return changed

    # Encoded columns

    def label(self, key: str) -> EncodedColumn[str | None]:
        """Return the column of a node label. A node without it has the code -1, for which `values` ends with None."""
        return self.encoded(("label", key), lambda info: info.node.metadata.labels.get(key))

    @property
    def taints(self) -> EncodedColumn[tuple[Taint, ...]]:
        """The column of the nodes' tuples of taints."""
        return self.encoded("taints", lambda info: info.node.spec.taints)

    def encoded(
        self, name: Hashable, of: Callable[[NodeInfo], ValueT], reads: Reads = Reads.NODE
    ) -> EncodedColumn[ValueT]:
        """Return the column of any property of a node, made on first use; with `reads` PODS, of its pods, too.

        `of` returns None for a node without the property. `name` identifies the column, so for one name `of`
        must always be the same function.
        """
        known = self._encoded.get(name)
        if known is None:
            known = EncodedColumn(of, self.node_infos)
            if reads is not Reads.NODE:
                self._encoded_from_pods.append(known)
            self._encoded[name] = known
        return known

    # Keeping in step

    def listen(self, listener: TableListener, reads: Reads = Reads.PODS) -> None:
        """Register a listener for every change from now on; with `reads` NODE, omit rows where only pods changed."""
        self._listeners.append(listener)
        if reads is not Reads.NODE:
            self._pod_listeners.append(listener)

    def update(self, row: int, info: NodeInfo) -> None:
        """Set the new state of the node in a row."""
        self._changed_since.clear()
        infos = self._node_infos
        old = infos[row]
        list.__setitem__(infos, row, info)
        # Whether or not a pod differs: one that came and went leaves its resources in the sums, with the amount 0.
        if info.allocatable.scalar_resources or info.requested.scalar_resources:
            self._make_columns_of((info,))
        node_changed = info.node is not old.node or info.image_states is not old.image_states
        # Clones share what hasn't changed, so identity is enough.
        if node_changed:
            self._unschedulable[row] = info.node.spec.unschedulable
            self._write_allocatable(row, info, old)
            self.node_changes.append(row, len(infos))
            self.state_of_nodes = object()
        # PodInfos compare by identity, so this is a comparison of pointers.
        pods_changed = info.pods is not old.pods and (info.pods != old.pods or _sums_differ(info, old))
        if pods_changed:
            self.pod_changes.append(row, len(infos))
        if node_changed or pods_changed:
            self._write_pods(row, info, old)
        for column in self._encoded.values() if node_changed else self._encoded_from_pods:
            column.update(row, info, self.node_infos)
        # Listeners come last: they may read the table, and find the new state in every column.
        for listener in self._listeners if node_changed else self._pod_listeners:
            listener.row_changed(row, old, info)

    def replace(self, node_infos: Sequence[NodeInfo]) -> None:
        """Set other nodes, or the same ones in another order or state."""
        rows = FrozenDict(zip([info.name for info in node_infos], range(len(node_infos)), strict=True))
        sources = np.fromiter(map(self.rows.get, rows, repeat(-1)), dtype=np.int64, count=len(rows))
        # Move the old states first, so that each change of state goes through `update` like any other.
        moved_infos = [
            new if source < 0 else self.node_infos[source]
            for new, source in zip(node_infos, sources.tolist(), strict=True)
        ]
        self.move(moved_infos, rows, sources)
        for row, info in enumerate(node_infos):
            if info is not self.node_infos[row]:
                self.update(row, info)

    def move(self, node_infos: Sequence[NodeInfo], rows: Mapping[str, int], moved_from: IntArray) -> None:
        """Move the nodes to other rows: row i was row `moved_from[i]`, -1 for a new node. `rows` has them by name."""
        self._changed_since.clear()
        old = self.node_infos
        moved_to = np.full(len(old), -1, dtype=np.int64)
        stayed = moved_from >= 0
        moved_to[moved_from[stayed]] = stayed.nonzero()[0]
        gone = [old[row] for row in (moved_to < 0).nonzero()[0].tolist()]
        added = [node_infos[row] for row in (~stayed).nonzero()[0].tolist()]
        for log in (self.node_changes, self.pod_changes):
            log.move_rows(moved_to)
        self._place(node_infos, rows, moved_from)
        self.layout += 1
        self.state_of_nodes = object()
        self._moves.append((len(old), moved_from))
        self._moved_since.clear()
        for column in self._encoded.values():
            column.move_rows(moved_from, self.node_infos)
        for listener in self._listeners:
            listener.rows_moved(moved_from, gone, added)

    def rebuild(self, node_infos: Sequence[NodeInfo], rows: Mapping[str, int]) -> None:
        """Write everything anew, after a change that raised. `rows` has the nodes by name.

        To readers it is a new layout, and both logs begin after it.
        """
        self.layout += 1
        self.state_of_nodes = object()
        for log in (self.node_changes, self.pod_changes):
            log.begin_anew()
        self._changed_since.clear()
        self._moves.clear()
        self._moved_since.clear()
        self._fill(node_infos, rows)
        for name, column in list(self._encoded.items()):
            try:
                column.encode_anew(self.node_infos)
            # A plugin's function. The plugin asks for the column again, and fails by name in its own hook.
            except Exception:
                del self._encoded[name]
        self._encoded_from_pods = [
            column
            for column in self._encoded_from_pods
            if any(column is kept for kept in self._encoded.values())
        ]
        for listener in self._listeners:
            listener.table_rebuilt()

    def moved_since(self, layout: int) -> IntArray | None:
        """Return each row's place in an earlier layout (-1: none); `all_rows` if no row has moved.

        Return None if the layout is too old.
        """
        if layout == self.layout:
            return self.all_rows
        known = self._moved_since.get(layout)
        if known is None and self.layout - layout <= len(self._moves):
            (size, known), *others = list(self._moves)[layout - self.layout :]
            for _, moved_from in others:
                known = moved(known, moved_from, -1)
            # If the last nodes are gone, every row is where it was, and yet the reader's arrays have more
            # entries than rows.
            if size == len(self) and np.array_equal(known, self.all_rows):
                known = self.all_rows
            self._moved_since[layout] = known
        return known

    def _place(self, node_infos: Sequence[NodeInfo], rows: Mapping[str, int], moved_from: IntArray) -> None:
        self.node_infos = self._node_infos = ReadOnlyList(node_infos)
        self.rows = rows
        for made_on_demand in ("names", "all_rows"):
            self.__dict__.pop(made_on_demand, None)
        self.moved_from: IntArray = read_only_view(moved_from)
        # The writes below go through the views of the new arrays.
        self._move_amounts(moved_from)
        self._unschedulable = moved(self._unschedulable, moved_from)
        self.unschedulable: npt.NDArray[np.bool_] = read_only_view(self._unschedulable)
        added = (moved_from < 0).nonzero()[0].tolist()
        # All columns at once: each call copies the arrays, and there may be as many resources as nodes.
        self._make_columns_of([node_infos[row] for row in added])
        for row in added:
            self._unschedulable[row] = node_infos[row].node.spec.unschedulable
            self._write_new(row, node_infos[row])


def _sums_differ(info: NodeInfo, old: NodeInfo) -> bool:
    """Return whether the sums over the same pods differ.

    A pod that came and went leaves an amount of 0 of its resources, and takes along a port that another pod has, too.
    """
    return info.used_ports is not old.used_ports or info.requested != old.requested
