"""The kinds of actions: to choose a node, or the weights by which the scheduler chooses one."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kschedfw import KschedfwError
from kschedfw_lab.environment.episode import OpenDecision

Action: TypeAlias = int | np.integer | npt.NDArray[np.floating]

LARGEST_WEIGHT = 100
"""The weight that 1 stands for in an action."""


class ActionError(KschedfwError, ValueError):
    """An action isn't in the action space."""


class ActionKind(Protocol):
    """What an agent decides."""

    @property
    def space(self) -> spaces.Space[Action]: ...

    def row(self, action: Action, decision: OpenDecision) -> int:
        """The row of the node that the action asks for; whether it is feasible is left open.

        Raises:
            ActionError: the action isn't in the space.
            SchedulingError: a plugin failed.
        """
        ...

    def of_scheduler(self, decision: OpenDecision) -> Action:
        """The action by which the scheduler's own choice is made."""
        ...


class NodeActions:
    """An action is the row of a node."""

    def __init__(self, nodes: int) -> None:
        self.space = spaces.Discrete(nodes)

    def row(self, action: Action, decision: OpenDecision) -> int:  # noqa: ARG002  # see ActionKind
        try:
            row = operator.index(action)
        except TypeError:
            raise ActionError(f"the action must be the number of a row, not {action!r}") from None
        if not 0 <= row < self.space.n:
            raise ActionError(f"the action must be a row from 0 to {self.space.n - 1}, not {row}")
        return row

    def of_scheduler(self, decision: OpenDecision) -> Action:
        return decision.best_row


class WeightActions:
    """An action has a number from 0 to 1 for each score plugin; times `LARGEST_WEIGHT`, rounded, it is the weight."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        """With the weights of the profile, by the plugins' names."""
        self.space = spaces.Box(0.0, 1.0, (len(weights),), np.float32)
        self._plugins = tuple(weights)
        own = np.array(list(weights.values()), dtype=np.float32) / LARGEST_WEIGHT
        self._own: npt.NDArray[np.float32] = own.astype(np.float32)

    def row(self, action: Action, decision: OpenDecision) -> int:
        shares = np.asarray(action, dtype=np.float64)
        if shares.shape != self.space.shape or not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ActionError(f"the action must be {len(self._plugins)} numbers from 0 to 1, not {action!r}")
        weights = np.rint(shares * LARGEST_WEIGHT).astype(np.int64).tolist()
        return decision.row_by_weights(dict(zip(self._plugins, weights, strict=True)))

    def of_scheduler(self, decision: OpenDecision) -> Action:  # noqa: ARG002  # see ActionKind
        return self._own.copy()
