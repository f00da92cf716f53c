"""The result of filtering nodes."""

from __future__ import annotations

from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.status import Status


class FilterOutcome:
    """The result of filtering a selection of nodes, up to the end of the search.

    `count` is the number of feasible nodes, and `processed` that of nodes looked at, without the surplus or failed one
    that ended the search. `error` is the plugin failure that ended the search, if any. The rows of `feasible`, and
    `refused`, are made when they are first read, which must be before the next pod is filtered.
    """

    __slots__ = ("_refused", "count", "error", "feasible", "processed")

    def __init__(
        self,
        count: int,
        processed: int,
        feasible: NodeSelection,
        refused: NodeCodes,
        error: Status | None = None,
    ) -> None:
        self.count = count
        self.processed = processed
        self.error = error
        self.feasible = feasible
        """The nodes that passed, in visiting order."""
        self._refused = refused

    @classmethod
    def of(cls, feasible: NodeSelection, processed: int = 0) -> FilterOutcome:
        """Return an outcome of these feasible nodes, without statuses of others."""
        return cls(len(feasible), processed, feasible, NodeCodes.none(feasible.table))

    @property
    def refused(self) -> NodeCodes:
        """The statuses of the nodes that were refused, in visiting order."""
        return self._refused
