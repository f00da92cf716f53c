"""Which of the best nodes is taken."""

from __future__ import annotations

from random import Random

import attrs

from kschedfw.framework.results import IntArray


@attrs.frozen
class Selection:
    """The node chosen, and the indices of all nodes with the highest total, ascending."""

    index: int
    tied: tuple[int, ...]


def select_host(totals: IntArray, random: Random) -> Selection:
    """Pick one of the nodes with the highest total, each with equal probability, by reservoir selection.

    The k-th of the best nodes, in their order, replaces the pick with probability 1/k. A single best node takes no
    number from the generator.
    """
    tied = tuple(int(index) for index in (totals == totals.max()).nonzero()[0])
    pick = tied[0]
    for count, index in enumerate(tied[1:], start=2):
        if random.randrange(count) == 0:
            pick = index
    return Selection(pick, tied)
