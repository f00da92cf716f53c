"""The steps of a decision, as they were: columns over the nodes rather than an object per node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs
import numpy as np

from kschedfw.api.frozendict import EMPTY
from kschedfw.explain.refusals import Refusals
from kschedfw.framework.evidence import Evidence
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.runtime.totals import PluginScores
from kschedfw.framework.status import Status


@attrs.frozen(eq=False)
class PreFilterStep:
    """What was known before any node was looked at.

    `skipped` are the plugins that had nothing to do for this pod, so that their filters weren't asked; `narrowing`
    those that named the only nodes in question, which are `left_over` (rows, ascending; None: all). A `refusal` of
    the pod as such ends the decision.
    """

    skipped: tuple[str, ...] = ()
    narrowing: tuple[str, ...] = ()
    left_over: IntArray | None = None
    refusal: Status | None = None


@attrs.frozen(eq=False, slots=False)
class FilterStep:
    """What the filters said of the nodes, and which of them they weren't asked about.

    `plugins` were asked in this order, each about the nodes that those before it let pass. The search began at
    `start`, went round the end, and was over as soon as more than `wanted` nodes had passed: `order` are the nodes in
    question, and the first `looked_at` of them were reached. `refusals` has what filters and extenders said of those
    that aren't `feasible`. Where there are extenders, `by_extenders` has the rows that they left over, in their order.

    With `nominated`, the pod was looked at on the node that preemption had chosen for it earlier, and nowhere else.
    """

    plugins: tuple[str, ...]
    candidates: IntArray
    start: int
    looked_at: int
    wanted: int
    refusals: Refusals
    by_extenders: IntArray | None = None
    nominated: bool = False

    @cached_property
    def order(self) -> IntArray:
        """The rows of the nodes in question, in the order in which they are looked at."""
        if not self.start:
            return self.candidates
        return np.concatenate((self.candidates[self.start :], self.candidates[: self.start]))

    @cached_property
    def feasible(self) -> IntArray:
        """The rows of the nodes that passed filters and extenders, in order."""
        if self.by_extenders is not None:
            return self.by_extenders
        looked_at = self.order[: self.looked_at]
        return looked_at if self.refusals.is_empty else looked_at[self.refusals.codes[looked_at] == 0]

    @property
    def not_looked_at(self) -> IntArray:
        """The rows of nodes in question that the search didn't reach."""
        return self.order[self.looked_at :]


@attrs.frozen(eq=False, slots=False)
class ScoreStep:
    """The scores of the k feasible nodes, in their order.

    `plugins` has what each plugin gave, in profile order; `skipped` are those that had nothing to do for this pod.
    `totals` are what the scheduler compared; what is in them beside the plugins' weighted scores is the
    `extenders`'. With `beyond`, the decision did without scores, and they were asked for this explanation alone.
    """

    plugins: Mapping[str, PluginScores]
    skipped: tuple[str, ...]
    totals: IntArray
    beyond: bool = False

    @cached_property
    def extenders(self) -> IntArray:
        """What extenders added to each node's total, shape (k,)."""
        rest = self.totals.copy()
        for scores in self.plugins.values():
            rest -= scores.weighted
        return rest

    @cached_property
    def tied(self) -> IntArray:
        """The places, ascending, of all nodes with the highest total among the feasible ones."""
        return np.flatnonzero(self.totals == self.totals.max())


@attrs.frozen
class Victim:
    """A pod that would have to go, by its key."""

    pod: str
    priority: int


@attrs.frozen
class PreemptionCandidate:
    """A node where the pod would fit if the victims left it, the most important of them first.

    `budget_violations` counts victims that a PodDisruptionBudget would have kept.
    """

    node: str
    victims: tuple[Victim, ...]
    budget_violations: int = 0


@attrs.frozen(eq=False)
class PreemptionStep:
    """How room was looked for.

    `candidates` were found; `tied` are those of them (as extenders left them) that do equally little harm, of which the
    first is `chosen`. `refusals` say why other nodes that were tried are no candidates. Nodes with neither weren't
    tried, since there were candidates enough, or removing pods can't help there. `message` is what preemption
    had to say.
    """

    message: str = ""
    candidates: tuple[PreemptionCandidate, ...] = ()
    tied: tuple[PreemptionCandidate, ...] = ()
    refusals: Refusals | None = None

    @property
    def chosen(self) -> PreemptionCandidate | None:
        return self.tied[0] if self.tied else None


@attrs.frozen(eq=False)
class Beyond:
    """What the decision didn't need to know, and was asked for this explanation alone.

    `refusals` has the verdict of every filter on every node, whatever the others said, by plugin; those that let all
    nodes pass are missing. `evidence` has what lies behind them, by plugin and row, of those plugins that can say.
    """

    refusals: Mapping[str, Refusals]
    evidence: Mapping[str, Mapping[int, tuple[Evidence, ...]]] = EMPTY
