"""Which of the best nodes is taken."""

from __future__ import annotations

from random import Random
from typing import Protocol

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.framework.results import IntArray


@attrs.frozen(eq=False)
class Selection:
    """The node chosen, by its index, and which nodes have the highest total: True for those, shape (n,)."""

    index: int
    is_best: npt.NDArray[np.bool_]

    @property
    def tied(self) -> IntArray:
        """The indices of all nodes with the highest total, ascending."""
        return np.flatnonzero(self.is_best)


def select_host(totals: IntArray, random: Random) -> Selection:
    """Pick one of the nodes with the highest total, each with equal probability, by reservoir selection.

    The k-th of the best nodes, in their order, replaces the pick with probability 1/k. So after the k-th, more than m
    in a row don't with probability k/(k + m): the place of the next replacement is drawn at once (Vitter, "Random
    sampling with a reservoir", 1985), which takes ln n draws, not n. A single best node takes none.
    """
    first = int(totals.argmax())  # which takes NumPy a third of the time that max does
    is_best = totals == totals[first]
    count = int(np.count_nonzero(is_best))
    if count == 1:
        return Selection(first, is_best)
    pick = 0
    while True:
        # random() is below 1, so this is finite.
        place = int((pick + 1) / (1.0 - random.random()))
        if place >= count:
            break
        pick = place
    # Where all are equally good, as in an empty cluster, the pick is its own index.
    return Selection(pick if count == len(totals) else int(is_best.nonzero()[0][pick]), is_best)


class HostSelector(Protocol):
    """How a scheduler picks among the best nodes."""

    def select(self, totals: IntArray) -> Selection: ...


class ReservoirSelector:
    """Picks at random, as `select_host` does."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def select(self, totals: IntArray) -> Selection:
        return select_host(totals, self._random)


class RoundRobinSelector:
    """Picks the best nodes in turn, as kube-scheduler did until v1.12.

    The turn goes on with every pod that has more than one feasible node, whether or not some of them are equally good.
    """

    def __init__(self) -> None:
        self._turn = 0

    def select(self, totals: IntArray) -> Selection:
        is_best = totals == totals.max()
        best = np.flatnonzero(is_best)
        pick = int(best[self._turn % len(best)])
        self._turn += 1
        return Selection(pick, is_best)
