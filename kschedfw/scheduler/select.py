"""Selection: the number of feasible nodes that ends a search, and the one of the best nodes that is taken."""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

import numpy as np

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.outcome import Totals

# kube-scheduler's minFeasibleNodesToFind and minFeasibleNodesPercentageToFind.
MIN_FEASIBLE_NODES_TO_FIND: Final = 100
MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND: Final = 5


def num_feasible_nodes_to_find(percentage: int, num_all_nodes: int) -> int:
    """Return the number of feasible nodes that ends a search: all below 100 nodes, else the percentage, at least 100.

    Percentage 0 adapts to the size: 50 − n/125, at least 5.
    """
    if num_all_nodes < MIN_FEASIBLE_NODES_TO_FIND or percentage == 100:
        return num_all_nodes
    if percentage == 0:
        percentage = max(50 - num_all_nodes // 125, MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND)
    return max(num_all_nodes * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


def pick_of(count: int, random: Random) -> int:
    """Pick one of this many equally good nodes, each with equal probability, by reservoir selection. Return its number.

    The k-th of them, in their order, replaces the pick with probability 1/k. The probability that none of the next m
    nodes replaces the pick is k/(k + m). So the place of the next replacement is drawn at once (Vitter, "Random
    sampling with a reservoir", 1985), which takes ln n draws, not n. A single node takes none.
    """
    # `groups._turns.pick` is the compiled form, and must draw the same numbers.
    draw, pick = random.random, 0
    while count > 1:
        # random() is below 1, so the divisor isn't 0.
        place = int((pick + 1) / (1.0 - draw()))
        if place >= count:
            break
        pick = place
    return pick


class HostSelector(Protocol):
    """A rule that picks one of the best nodes."""

    def select(self, totals: Totals, nodes: NodeSelection) -> int:
        """Return the position in `totals.best` of the node to take. `totals` are those of `nodes`, shape (k,), k > 1.

        Both are in visiting order. `nodes[index].name` is the name of the node with an index of `totals.best`;
        `nodes.names` are all of them, which takes a while in large clusters.
        """
        ...


class ReservoirSelector:
    """A random pick, by reservoir selection (kube-scheduler `selectHost`)."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def select(self, totals: Totals, nodes: NodeSelection) -> int:  # noqa: ARG002  # see HostSelector
        return pick_of(totals.number_of_best, self._random)


class RoundRobinSelector:
    """A pick of the best nodes in turn, as in kube-scheduler until v1.15.

    The turn advances with every pod that has more than one feasible node, even if only one of them is best.
    """

    def __init__(self) -> None:
        self._turn = 0

    def select(self, totals: Totals, nodes: NodeSelection) -> int:  # noqa: ARG002  # see HostSelector
        nth = self._turn % totals.number_of_best
        self._turn += 1
        return nth


class FirstByNameSelector:
    """A deterministic pick: the best node whose name comes first, by code points."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._ranks: IntArray = np.zeros(0, dtype=np.int64)

    def select(self, totals: Totals, nodes: NodeSelection) -> int:
        rows = totals.best_rows(nodes)
        return 0 if len(rows) == 1 else int(self.ranks(nodes.table).take(rows).argmin())

    def ranks(self, table: NodeTable) -> IntArray:
        """Return the position of each row in the order of names, shape (n,). Not to be changed."""
        if table.names is not self._names:  # the table makes a new list when nodes come or go
            order = sorted(range(len(table)), key=table.names.__getitem__)
            self._names, self._ranks = table.names, np.empty(len(table), dtype=np.int64)
            self._ranks[order] = table.all_rows
        return self._ranks
