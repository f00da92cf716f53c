"""What an action was worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from kschedfw import NodeTable, Pod


@attrs.frozen(eq=False)
class Transition:
    """What happened from one decision to the next, or to the end of the episode.

    Attributes:
        pod: the pod that was decided about.
        node: the node that was chosen; "" if a plugin failed to score.
        bound: how many pods were bound.
        victims: how many pods were preempted.
        refused: how many attempts found no feasible node.
        seconds: how much virtual time went by.
        table: the nodes as they are now, in columns; it changes with the next action.
        ended: whether this was the last decision.
    """

    pod: Pod
    node: str
    bound: int
    victims: int
    refused: int
    seconds: float
    table: NodeTable
    ended: bool


Reward: TypeAlias = Callable[[Transition], float]
"""Says what a transition was worth; must be finite."""


def pods_bound(transition: Transition) -> float:
    """The pods that were bound, less those that were preempted. Over an episode, the number of pods with a place."""
    return float(transition.bound - transition.victims)
