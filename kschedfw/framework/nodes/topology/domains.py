"""Nodes that share the value of a label, and sums over them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kschedfw.api.node import Node
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.encoded_column import EncodedColumn
from kschedfw.framework.nodes.table import NodeTable


class Domains:
    """The domains of one topology key: the codes of the label's column.

    `version` goes up whenever nodes may have other domains, or domains other codes, than before.
    """

    __slots__ = ("_epoch", "column", "key", "version")

    def __init__(self, table: NodeTable, key: str) -> None:
        self.key = key
        self.column: EncodedColumn[str | None] = table.label(key)
        self.version = 0
        self._epoch = self.column.epoch

    def node_changed(self, old: Node, new: Node) -> None:
        """Take note of a node's new labels, after the column has."""
        old_labels, new_labels = old.metadata.labels, new.metadata.labels
        if old_labels.get(self.key) != new_labels.get(self.key) or self.column.epoch != self._epoch:
            self.rows_moved()

    def rows_moved(self) -> None:
        self.version += 1
        self._epoch = self.column.epoch


class DomainSums:
    """Sums by domain of one topology key, and the total. Plugins sum matching pods or weights of terms.

    `sums` has shape (`column.size`,). Things on nodes without the label aren't counted. Both
    are right as long as `fresh`; afterwards they have to be summed up anew.
    """

    __slots__ = ("_version", "count", "domains", "sums")

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.clear()

    @property
    def fresh(self) -> bool:
        return self._version == self.domains.version

    def clear(self) -> None:
        """Reset all sums to 0, with the present domains."""
        self.sums: IntArray = np.zeros(self.domains.column.size, dtype=np.int64)
        self.count = 0
        self._version = self.domains.version

    def add(self, row: int, things: int, weight: int = 1) -> None:
        """Add things on one node, each with this weight; a negative number removes them.

        Ignored once the sums are stale.
        """
        if self._version != self.domains.version:
            return
        code = self.domains.column.codes[row]
        if code >= 0:
            self.sums[code] += things * weight
            self.count += things

    def add_each(self, rows: IntArray, things: IntArray, weight: int = 1) -> None:
        """Count things on many nodes in: `things` by row, both of shape (k,)."""
        codes = self.domains.column.codes.take(rows)
        # Nodes without the label have the code -1, and are counted in the first place, which is left out.
        counts = np.bincount(codes + 1, things, len(self.sums) + 1)[1:].astype(np.int64)
        self.sums += counts if weight == 1 else counts * weight
        self.count += int(counts.sum())

    def add_sums(self, other: DomainSums, weight: int = 1) -> None:
        """Add the sums of another instance that was just made for the same domains."""
        self.sums += other.sums if weight == 1 else other.sums * weight
        self.count += other.count


def as_columns(by_node: Mapping[str, int], rows: Mapping[str, int]) -> tuple[IntArray, IntArray]:
    """Numbers by node name as two arrays of shape (k,): the nodes' rows, and the numbers."""
    where = np.fromiter(map(rows.__getitem__, by_node), dtype=np.int64, count=len(by_node))
    return where, np.fromiter(by_node.values(), dtype=np.int64, count=len(by_node))
