"""A column of arbitrary values, stored as small integers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from kschedfw.framework.nodes.arrays import Codes, IntArray, moved
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.read_only import ReadOnlyList, read_only_view

ValueT = TypeVar("ValueT", bound=Hashable)


NO_VALUE = -1

_FEWEST_VALUES = 64


class EncodedColumn(Generic[ValueT]):
    """One property of all n nodes, dictionary-encoded: what depends on it alone is worked out once per value.

    `codes` has shape (n,) and dtype int32; `values[code]` is a node's value. A node without a value (`of` returns
    None for it) has the code -1, and as soon as there is such a node, `values` ends with None. So an array with an
    entry per entry of `values` may be indexed by `codes`, whatever nodes lack:

        labels = nodes.label("rack")
        full = np.array([rack in self.full_racks for rack in labels.values], dtype=np.bool_)
        refused = full[labels.codes[rows]]

    `size` is the number of values that aren't None; they have the codes 0 … size−1. Values that no node has any more
    may remain. `epoch` rises when values are renumbered; a new value changes neither `epoch` nor other codes.
    """

    def __init__(self, of: Callable[[NodeInfo], ValueT], node_infos: Sequence[NodeInfo]) -> None:
        self._of = of
        self.epoch = 0
        self._encode(node_infos)

    @property
    def values(self) -> Sequence[ValueT]:
        return self._values

    @property
    def is_on_all(self) -> bool:
        """True if every node has a value; False, too, if all have one again."""
        return len(self._values) == self.size

    def code_of(self, value: ValueT) -> int:
        """Return the code of a value; -1 if no node has it, and for None."""
        return self._index.get(value, NO_VALUE)

    def code_on(self, info: NodeInfo) -> int:
        """Return the code of this node's value; -1 if no node of the table has it."""
        return self._index.get(self._of(info), NO_VALUE)

    def update(self, row: int, info: NodeInfo, node_infos: Sequence[NodeInfo]) -> None:
        """Encode the new state of a node; `node_infos` are all nodes."""
        self._codes[row] = self._code(self._of(info))
        # Values are never removed singly. Once most of them are unused, all nodes are encoded again.
        if self.size > 2 * len(node_infos) + _FEWEST_VALUES:
            self.encode_anew(node_infos)

    def encode_anew(self, node_infos: Sequence[NodeInfo]) -> None:
        """Encode all nodes, with new codes."""
        self.epoch += 1
        self._encode(node_infos)

    def move_rows(self, moved_from: IntArray, node_infos: Sequence[NodeInfo]) -> None:
        """Move rows to their new places: row i was row `moved_from[i]`, -1 for a new one."""
        self._set_codes(moved(self._codes, moved_from, NO_VALUE))
        # If one of these updates encodes all nodes again, those after it find their values known.
        for row in np.flatnonzero(moved_from < 0).tolist():
            self.update(row, node_infos[row], node_infos)

    def _encode(self, node_infos: Sequence[NodeInfo]) -> None:
        self.size = 0
        self._values: ReadOnlyList[ValueT] = ReadOnlyList()
        self._index: dict[ValueT, int] = {}
        codes: Iterable[int] = (self._code(self._of(info)) for info in node_infos)
        self._set_codes(np.fromiter(codes, dtype=np.int32, count=len(node_infos)))

    def _set_codes(self, codes: Codes) -> None:
        self._codes = codes
        self.codes = read_only_view(codes)

    def _code(self, value: ValueT) -> int:
        if value is None:
            if len(self._values) == self.size:
                # Plugins read this list, so its own methods refuse changes.
                list.append(self._values, value)
            return NO_VALUE
        code = self._index.get(value)
        if code is None:
            code = self._index[value] = self.size
            # `values` ends with the None, if there is one.
            list.insert(self._values, code, value)
            self.size += 1
        return code
