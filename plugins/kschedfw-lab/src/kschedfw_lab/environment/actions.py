"""The kinds of actions: an agent chooses a node, or the weights with which the scheduler chooses one."""

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
"""The weight that an action's number 1 means."""


class ActionError(KschedfwError, ValueError):
    """An action isn't in the action space."""


class ActionKind(Protocol):
    """The kind of an agent's actions."""

    @property
    def space(self) -> spaces.Space[Action]: ...

    def row(self, action: Action, decision: OpenDecision) -> int:
        """Return the row of the node that the action selects. The node may be infeasible.

        Raises:
            ActionError: the action isn't in the space.
            SchedulingError: a plugin failed.
        """
        ...

    def of_scheduler(self, decision: OpenDecision) -> Action:
        """Return the action that selects the scheduler's own choice."""
        ...


class NodeActions:
    """Actions that are the row of a node."""

    def __init__(self, nodes: int) -> None:
        self.space = spaces.Discrete(nodes)

    def row(self, action: Action, decision: OpenDecision) -> int:  # noqa: ARG002  # see ActionKind
        try:
            # Agents also return NumPy's integers.
            row = operator.index(action)
        except TypeError:
            raise ActionError(f"the action must be the number of a row, not {action!r}") from None
        if not 0 <= row < self.space.n:
            raise ActionError(f"the action must be a row from 0 to {self.space.n - 1}, not {row}")
        return row

    def of_scheduler(self, decision: OpenDecision) -> Action:
        return decision.best_row


class WeightActions:
    """Actions with a number from 0 to 1 for each score plugin.

    The plugin's weight is `LARGEST_WEIGHT` times it, rounded.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        """Make actions for a profile with these weights, by plugin name."""
        self.space = spaces.Box(0.0, 1.0, (len(weights),), np.float32)
        self._plugins = tuple(weights)
        own = np.array(list(weights.values()), dtype=np.float32) / LARGEST_WEIGHT
        self._own: npt.NDArray[np.float32] = own.astype(np.float32)

    def row(self, action: Action, decision: OpenDecision) -> int:
        shares = np.asarray(action, dtype=np.float64)
        # Written so that NaN is refused, too.
        if shares.shape != self.space.shape or not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ActionError(f"the action must be {len(self._plugins)} numbers from 0 to 1, not {action!r}")
        weights = np.rint(shares * LARGEST_WEIGHT).astype(np.int64).tolist()
        return decision.row_by_weights(dict(zip(self._plugins, weights, strict=True)))

    def of_scheduler(self, decision: OpenDecision) -> Action:  # noqa: ARG002  # see ActionKind
        return self._own.copy()
