"""A column of arbitrary values, stored as small integers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.results import Codes, IntArray

ValueT = TypeVar("ValueT", bound=Hashable)


NO_VALUE = -1

_FEWEST_VALUES = 64


class EncodedColumn(Generic[ValueT]):
    """One property of all n nodes, dictionary-encoded: what depends on it alone is worked out once per value.

    `codes` has shape (n,) and dtype int32: an index into `values`, or -1 where a node has no value (None). `values` may
    hold some that no node has any more. `epoch` goes up when values were renumbered; new ones at the end leave it.
    """

    def __init__(self, of: Callable[[NodeInfo], ValueT | None], node_infos: Sequence[NodeInfo]) -> None:
        self._of = of
        self.epoch = 0
        self.values: list[ValueT] = []
        self._index: dict[ValueT, int] = {}
        self.codes: Codes = self._encode(node_infos)

    def code_of(self, value: ValueT) -> int:
        """The code of a value, -1 if no node has it."""
        return self._index.get(value, NO_VALUE)

    def update(self, row: int, info: NodeInfo, node_infos: Sequence[NodeInfo]) -> None:
        """Take the new state of a node; `node_infos` are all of them."""
        self.codes[row] = self._code(self._of(info))
        if len(self.values) > 2 * len(node_infos) + _FEWEST_VALUES:
            self._renumber(node_infos)

    def move_rows(self, moved_from: IntArray, node_infos: Sequence[NodeInfo]) -> None:
        """Follow rows to their new places: row i was row `moved_from[i]`, -1 for one that is new."""
        codes = np.where(moved_from >= 0, self.codes[moved_from], NO_VALUE) if len(self.codes) else None
        self.codes = np.full(len(moved_from), NO_VALUE, np.int32) if codes is None else codes
        for row in np.flatnonzero(moved_from < 0).tolist():
            self.update(row, node_infos[row], node_infos)

    def _renumber(self, node_infos: Sequence[NodeInfo]) -> None:
        self.epoch += 1
        self.values, self._index = [], {}
        self.codes = self._encode(node_infos)

    def _encode(self, node_infos: Sequence[NodeInfo]) -> Codes:
        codes: Iterable[int] = (self._code(self._of(info)) for info in node_infos)
        return np.fromiter(codes, dtype=np.int32, count=len(node_infos))

    def _code(self, value: ValueT | None) -> int:
        if value is None:
            return NO_VALUE
        code = self._index.get(value)
        if code is None:
            code = self._index[value] = len(self.values)
            self.values.append(value)
        return code
