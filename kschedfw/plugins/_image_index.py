"""Which nodes have an image, kept in step with a table of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from kschedfw import IntArray, NodeInfo, NodeTable, Reads
from kschedfw.framework.nodes.node_info import ImageStateSummary

_NOWHERE: Mapping[ImageStateSummary, Set[int]] = MappingProxyType({})


class ImageIndex:
    """For each image the rows that have it, by what their nodes say of it. There is no entry for any other image.

    Sizes and counts are mostly the same on all nodes, so that the rows of an image are in few sets.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_name: dict[str, dict[ImageStateSummary, set[int]]] = {}
        self._fill()
        table.listen(self, Reads.NODE)

    @property
    def names(self) -> Set[str]:
        """The images that any node has."""
        return self._by_name.keys()

    def rows_of(self, name: str) -> Mapping[ImageStateSummary, Set[int]]:
        return self._by_name.get(name, _NOWHERE)

    def row_changed(self, row: int, old: NodeInfo, new: NodeInfo) -> None:
        if new.image_states is not old.image_states:
            self._remove(row, old)
            self._add(row, new)

    def rows_moved(
        self,
        moved_from: IntArray,  # noqa: ARG002  # see TableListener
        gone: Sequence[NodeInfo],  # noqa: ARG002  # see TableListener
        added: Sequence[NodeInfo],  # noqa: ARG002  # see TableListener
    ) -> None:
        # A node that comes or goes changes the counts of its images everywhere; there is little to save.
        self._by_name.clear()
        self._fill()

    def _fill(self) -> None:
        for row, info in enumerate(self._table.node_infos):
            self._add(row, info)

    def _add(self, row: int, info: NodeInfo) -> None:
        for name, state in info.image_states.items():
            self._by_name.setdefault(name, {}).setdefault(state, set()).add(row)

    def _remove(self, row: int, info: NodeInfo) -> None:
        for name, state in info.image_states.items():
            by_state = self._by_name[name]
            by_state[state].remove(row)
            if not by_state[state]:
                del by_state[state]
            if not by_state:
                del self._by_name[name]
