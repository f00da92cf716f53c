"""Kept states of changed nodes, by which a cache's orders of nodes and pods are restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kschedfw.api.records import define
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.scheduler.errors import CacheError
from kschedfw.scheduler.node_tree import NodeTree


@define(eq=False)
class RestorePoint:
    """Copies of the nodes that have changed since `Cache.restore_point`; None for a node that didn't exist."""

    nodes: dict[str, NodeInfo | None] = attrs.field(factory=dict)
    tree: NodeTree | None = None
    """The order of nodes; None if it hasn't changed."""


class RestorePoints:
    """The open restore points of a cache. They are nested, and changes are kept in the innermost one."""

    def __init__(self) -> None:
        self._open: list[RestorePoint] = []
        self.are_open = False
        """True if there is any. An attribute, since every pod that is placed asks."""

    def begin(self) -> RestorePoint:
        """Return a new point, which is the innermost one now."""
        self._open.append(point := RestorePoint())
        self.are_open = True
        return point

    def keep(self, node_name: str, info: NodeInfo | None, tree: NodeTree | None) -> None:
        """Keep a node's state before its first change, and the order of nodes if a `tree` is given."""
        point = self._open[-1]
        if node_name not in point.nodes:
            point.nodes[node_name] = None if info is None else info.clone()
        if tree is not None and point.tree is None:
            point.tree = tree.copy()

    def drop(self, point: RestorePoint) -> None:
        """End the innermost point. The enclosing one takes over the kept states."""
        self._close(point)
        if self._open:
            outer = self._open[-1]
            # The outer point began earlier, so its copies are the older states, and win.
            outer.nodes = {**point.nodes, **outer.nodes}
            outer.tree = point.tree if outer.tree is None else outer.tree

    def end(self, point: RestorePoint, infos: Mapping[str, NodeInfo]) -> Sequence[tuple[NodeInfo, NodeInfo]]:
        """End the innermost point. Return the changed nodes, each with its kept state; `infos` are all nodes of now.

        Raises:
            CacheError: a node isn't there again, or has other pods than before.
        """
        self._close(point)
        found = []
        # The node has the same pods, perhaps in another order; the kept copy has the earlier order.
        for name, before in point.nodes.items():
            info = infos.get(name)
            if before is not None and info is not None and _is_same(info, before):
                found.append((info, before))
            elif before is not None or info is not None:
                raise CacheError(f"node {name!r} and the pods on it aren't what they were")
        return found

    def _close(self, point: RestorePoint) -> None:
        if not self._open or self._open[-1] is not point:
            raise CacheError("restore points end in reverse order, the latest first")
        self._open.pop()
        self.are_open = bool(self._open)


def _is_same(info: NodeInfo, before: NodeInfo) -> bool:
    """Return whether both have the same node and the same pods, in any order."""
    # The very objects: whatever is undone puts back those that were there before.
    return info.node is before.node and {id(each.pod) for each in info.pods} == {
        id(each.pod) for each in before.pods
    }
