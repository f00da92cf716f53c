"""The domains of a topology key (nodes that share the value of a label), and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kschedfw.api.node import Node
from kschedfw.framework.nodes.arrays import IntArray, Mask
from kschedfw.framework.nodes.encoded_column import EncodedColumn
from kschedfw.framework.nodes.table import NodeTable


class Domains:
    """The domains of one topology key: the codes of the label's column.

    `version` rises whenever nodes may have moved to other domains, or domains to other codes.
    """

    __slots__ = ("_epoch", "column", "key", "version")

    def __init__(self, table: NodeTable, key: str) -> None:
        self.key = key
        self.column: EncodedColumn[str | None] = table.label(key)
        self.version = 0
        self._epoch = self.column.epoch

    def node_changed(self, old: Node, new: Node) -> None:
        """Compare a node's old and new labels, after the column was updated."""
        old_labels, new_labels = old.metadata.labels, new.metadata.labels
        if old_labels.get(self.key) != new_labels.get(self.key) or self.column.epoch != self._epoch:
            self.rows_moved()

    def rows_moved(self) -> None:
        self.version += 1
        self._epoch = self.column.epoch


DomainsOf = Callable[[str], Domains]


class DomainSums:
    """Sums by domain of one topology key, and the total. Plugins sum matching pods or weights of terms.

    `sums` has shape (`column.size`,); `padded` is the same with a 0 at the end, for nodes without the label, which
    aren't counted. All are right as long as `fresh`; afterwards they have to be computed again.
    """

    __slots__ = ("_occupied", "_version", "count", "domains", "padded", "sums")

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.clear()

    @property
    def fresh(self) -> bool:
        return self._version == self.domains.version

    def clear(self) -> None:
        """Reset all sums to 0, with the present domains."""
        self.padded: IntArray = np.zeros(self.domains.column.size + 1, dtype=np.int64)
        self.sums: IntArray = self.padded[:-1]
        self.count = 0
        self._version = self.domains.version
        self._occupied: Mask | None = None

    @property
    def occupied(self) -> Mask:
        """The domains whose sum is above 0, as a read-only mask; an extra last entry is for nodes without label."""
        if self._occupied is None:
            self._occupied = self.padded > 0
        return self._occupied

    def add(self, row: int, things: int, weight: int = 1) -> None:
        """Add `things` things on one node, each with this weight; a negative number removes them.

        Ignored once the sums are stale.
        """
        if self._version != self.domains.version:
            return
        code: int = self.domains.column.codes.item(row)
        if code >= 0:
            self.sums[code] = now = self.sums.item(code) + things * weight
            self.count += things
            if self._occupied is not None:
                self._occupied[code] = now > 0

    def add_each(self, rows: IntArray, things: IntArray) -> None:
        """Add the things on many nodes: `things` by row, both of shape (k,)."""
        # bincount takes two to three times as long, and NumPy adds fast at indices of this type alone.
        np.add.at(self.padded, self.domains.column.codes.take(rows).astype(np.intp), things)
        # Nodes without the label have the code -1, which is the last entry.
        left_out = self.padded.item(-1)
        self.padded[-1] = 0
        self.count += int(things.sum()) - left_out
        self._occupied = None

    @classmethod
    def of(cls, parts: Sequence[DomainSums]) -> DomainSums:
        """Return the sum of one or more instances that were just made for the same domains."""
        first, *others = parts
        made = cls.__new__(cls)
        made.domains, made._version, made._occupied = first.domains, first._version, None
        made.padded = first.padded + others[0].padded if others else first.padded.copy()
        for other in others[1:]:
            made.padded += other.padded
        made.sums, made.count = made.padded[:-1], sum([each.count for each in parts])
        return made

    def add_sums(self, other: DomainSums, weight: int = 1) -> None:
        """Add the sums of another instance that was just made for the same domains."""
        self.sums += other.sums if weight == 1 else other.sums * weight
        self.count += other.count
        self._occupied = None


def as_columns(by_node: Mapping[str, int], rows: Mapping[str, int]) -> tuple[IntArray, IntArray]:
    """Return numbers by node name as two arrays of shape (k,): the nodes' rows, and the numbers."""
    where = np.fromiter(map(rows.__getitem__, by_node), dtype=np.int64, count=len(by_node))
    return where, np.fromiter(by_node.values(), dtype=np.int64, count=len(by_node))
