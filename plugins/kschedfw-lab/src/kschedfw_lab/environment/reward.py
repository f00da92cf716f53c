"""Reward functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from kschedfw import NodeTable, Pod


@attrs.frozen(eq=False)
class Transition:
    """The changes between two decisions, or between the last decision and the end of the episode.

    Attributes:
        pod: the pod that was decided on.
        node: the chosen node; "" if a plugin failed to score.
        bound: the number of pods that were bound.
        victims: the number of pods that were preempted.
        refused: the number of attempts without a feasible node.
        seconds: the virtual time that passed.
        table: the current nodes, in columns. It changes with the next action.
        ended: true if this was the last decision.
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
"""Returns the reward for a transition. It must be finite."""


def pods_bound(transition: Transition) -> float:
    """Return the number of bound pods minus that of preempted pods.

    Its sum over an episode is the number of placed pods.
    """
    return float(transition.bound - transition.victims)
