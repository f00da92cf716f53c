"""The protocol of those who observe the steps of a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kschedfw.framework.diagnosis import Diagnosis
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import FilterOutcome, Totals
from kschedfw.scheduler.batching import Hint


class DecisionObserver(Protocol):
    """An observer of the steps of one decision, for example to explain it. It must not change its arguments."""

    def node_candidates(self, nodes: NodeSelection, start: int, narrowing: frozenset[str]) -> None:
        """The search begins with these nodes, in visiting order.

        They are all nodes of the snapshot, or those that the pre_filters of `narrowing` have left over. `start`
        is the place of the first one in the order of the snapshot's rows. Not called if the pod's nominated or
        hinted node passes.
        """
        ...

    def node_hinted(self, hint: Hint) -> None:
        """The node of the hint is tried first, alone: it remains from an earlier pod's search."""
        ...

    def nodes_filtered(self, nodes: NodeSelection, wanted: int, outcome: FilterOutcome) -> None:
        """Called when nodes were filtered until `wanted` had passed; first for a nominated or hinted node alone."""
        ...

    def nodes_found(self, feasible: NodeSelection, diagnosis: Diagnosis) -> None:
        """Called with the nodes that passed filters and extenders. Not called if a plugin or an extender has failed."""
        ...

    def nodes_scored(self, nodes: Sequence[NodeInfo], totals: Totals) -> None:
        """Called with the totals of the feasible nodes. Not called if a single node is feasible."""
        ...
