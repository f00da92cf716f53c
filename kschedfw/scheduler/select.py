"""Selection among the best nodes."""

from __future__ import annotations

from random import Random
from typing import Protocol

import attrs

from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.runtime.totals import Totals


@attrs.frozen(eq=False)
class Selection:
    """The node chosen out of those with the highest of the totals, by its index."""

    index: int
    _totals: Totals

    @property
    def tied(self) -> IntArray:
        """The indices of all nodes with the highest total, ascending, int64 of shape (t,); valid until the next pod,
        as totals are.
        """
        return self._totals.best


def select_host(totals: Totals, random: Random) -> Selection:
    """Pick one of the nodes with the highest total, each with equal probability, by reservoir selection.

    The k-th of the best nodes, in their order, replaces the pick with probability 1/k. So after the k-th, more than m
    in a row don't with probability k/(k + m): the place of the next replacement is drawn at once (Vitter, "Random
    sampling with a reservoir", 1985), which takes ln n draws, not n. A single best node takes none.
    """
    return Selection(totals.index_of_best(pick_of(totals.number_of_best, random)), totals)


def pick_of(count: int, random: Random) -> int:
    """The index of `select_host`'s pick among this many best nodes."""
    draw, pick = random.random, 0
    while count > 1:
        # random() is below 1, so this is finite.
        place = int((pick + 1) / (1.0 - draw()))
        if place >= count:
            break
        pick = place
    return pick


class HostSelector(Protocol):
    """Picks one of the best nodes."""

    def select(self, totals: Totals, nodes: NodeSelection) -> Selection:
        """One of the nodes with the highest total. `totals` are those of `nodes`, shape (k,), k > 1, in visiting order.

        `nodes[index].name` is a node's name, `nodes.names` are all of them; in large clusters the list takes a
        while.
        """
        ...


class ReservoirSelector:
    """Picks at random, as `select_host` does."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def select(self, totals: Totals, nodes: NodeSelection) -> Selection:  # noqa: ARG002  # see HostSelector
        return select_host(totals, self._random)


class RoundRobinSelector:
    """Picks the best nodes in turn, as kube-scheduler did until v1.15.

    The turn advances with every pod that has more than one feasible node, even if only one of them is best.
    """

    def __init__(self) -> None:
        self._turn = 0

    def select(self, totals: Totals, nodes: NodeSelection) -> Selection:  # noqa: ARG002  # see HostSelector
        index = totals.index_of_best(self._turn % totals.number_of_best)
        self._turn += 1
        return Selection(index, totals)


class FirstByNameSelector:
    """Picks the best node whose name comes first, by code points: deterministic."""

    def select(self, totals: Totals, nodes: NodeSelection) -> Selection:
        return Selection(min(totals.best.tolist(), key=lambda index: nodes[index].name), totals)
