"""The steps of a decision, as columns over the nodes instead of an object for each node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.records import frozen
from kschedfw.framework.diagnosis import Evidence, NodeToStatus
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.outcome import PluginScores
from kschedfw.framework.status import Status

_SUCCESS = Status.success()


@frozen(eq=False)
class Refusals:
    """The statuses of the n nodes of a cluster, of which some were rejected.

    `codes` has an index into `statuses` for each node, integers of shape (n,); the first status is the success of
    nodes that weren't rejected.
    """

    codes: Codes
    statuses: tuple[Status, ...] = (_SUCCESS,)

    @classmethod
    def taken_from(cls, node_to_status: NodeToStatus, rows: Mapping[str, int]) -> Refusals:
        """The rejections in `node_to_status`; `rows` has the rows of all nodes."""
        codes = np.zeros(len(rows), dtype=np.int32)
        statuses = [_SUCCESS]
        if (given := node_to_status.codes) is not None:
            # Only codes of some node, found by counting: `np.unique` would sort.
            present = np.flatnonzero(np.bincount(given.codes, minlength=1))
            present = present[present != 0]
            compact = np.zeros(len(given.statuses), dtype=np.int32)
            compact[present] = np.arange(1, len(present) + 1)
            codes[given.nodes.rows] = compact[given.codes]
            statuses.extend(given.statuses[code] for code in present.tolist())
        for name, status in node_to_status.statuses.items():
            if name in rows:
                if status not in statuses:
                    statuses.append(status)
                codes[rows[name]] = statuses.index(status)
        return cls(codes, tuple(statuses))

    def of(self, row: int) -> Status | None:
        code = int(self.codes[row])
        return self.statuses[code] if code else None

    @property
    def is_empty(self) -> bool:
        return len(self.statuses) == 1

    def by_status(self) -> Mapping[Status, IntArray]:
        """The rows of the nodes with each status, the most frequent status first.

        Of equally frequent ones, the status of the first node comes first.
        """
        groups = {
            status: np.flatnonzero(self.codes == code)
            for code, status in enumerate(self.statuses)
            if code and (self.codes == code).any()
        }
        # The order of `statuses` depends on the pods before: a status gets its code when it first occurs for any pod.
        return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), int(item[1][0]))))


@frozen(eq=False)
class PreFilterStep:
    """The result of pre_filter.

    `skipped` are the plugins that skipped this pod, so that their filters weren't called; `narrowing` those that
    limited the nodes to `left_over` (rows, ascending int64 of shape (k,); None: all). With a `refusal`, pre_filter
    rejected the pod, and the decision ended.
    """

    skipped: tuple[str, ...] = ()
    narrowing: tuple[str, ...] = ()
    left_over: IntArray | None = None
    refusal: Status | None = None


@frozen(eq=False, slots=False)
class FilterStep:
    """The result of the filters and extenders.

    `plugins` were called in this order, each for the nodes that passed the ones before it. The search began at
    `start`, wrapped around at the end, and ended when more than `wanted` nodes had passed: `order` are the rows of
    the candidates, of which the first `looked_at` were reached. `refusals` has the statuses of nodes that aren't
    `feasible`. With extenders, `by_extenders` has the rows that passed them, in their order. With `nominated`, only
    the node that preemption had chosen earlier was filtered; with `batch_of`, only the best node that was left of the
    search of this pod.
    """

    plugins: tuple[str, ...]
    candidates: IntArray
    start: int
    looked_at: int
    wanted: int
    refusals: Refusals
    by_extenders: IntArray | None = None
    nominated: bool = False
    batch_of: str = ""

    @cached_property
    def order(self) -> IntArray:
        """The rows of the candidates in visiting order, int64 of shape (k,)."""
        if not self.start:
            return self.candidates
        return np.concatenate((self.candidates[self.start :], self.candidates[: self.start]))

    @cached_property
    def feasible(self) -> IntArray:
        """The rows of the nodes that passed filters and extenders, in order, int64 of shape (k,)."""
        if self.by_extenders is not None:
            return self.by_extenders
        looked_at = self.order[: self.looked_at]
        return looked_at if self.refusals.is_empty else looked_at[self.refusals.codes[looked_at] == 0]

    @property
    def not_looked_at(self) -> IntArray:
        """The rows of candidates that the search didn't reach, int64 of shape (k,)."""
        return self.order[self.looked_at :]


@frozen(eq=False, slots=False)
class ScoreStep:
    """The scores of the k feasible nodes, in their order.

    `plugins` has the scores of each plugin, in profile order; `skipped` are the plugins that skipped this pod.
    `totals` are the totals that the scheduler compared: the plugins' weighted scores plus the `extenders`'. With
    `beyond`, the decision didn't need scores, and they were computed for this explanation.
    """

    plugins: Mapping[str, PluginScores]
    skipped: tuple[str, ...]
    totals: IntArray
    beyond: bool = False

    @cached_property
    def extenders(self) -> IntArray:
        """The extenders' part of each node's total, int64 of shape (k,)."""
        rest = self.totals.copy()
        for scores in self.plugins.values():
            rest -= scores.weighted
        return rest

    @cached_property
    def tied(self) -> IntArray:
        """The positions, among the feasible nodes, of those with the highest total, ascending, int64."""
        return np.flatnonzero(self.totals == self.totals.max())


@frozen
class Victim:
    """A pod that would have to be evicted, by its key."""

    pod: str
    priority: int


@frozen
class PreemptionCandidate:
    """A node where the pod would fit if the victims left it, the most important of them first.

    `budget_violations` counts victims that a PodDisruptionBudget would have kept.
    """

    node: str
    victims: tuple[Victim, ...]
    budget_violations: int = 0


@frozen(eq=False)
class PreemptionStep:
    """The result of preemption.

    `candidates` are the nodes that were found; `tied` are the best of them, after extenders, of which the first is
    `chosen`. `refusals` say why other nodes that were tried aren't candidates. The remaining nodes weren't tried,
    since there were enough candidates, or removing pods can't help there. `message` is preemption's message.
    """

    message: str = ""
    candidates: tuple[PreemptionCandidate, ...] = ()
    tied: tuple[PreemptionCandidate, ...] = ()
    refusals: Refusals | None = None

    @property
    def chosen(self) -> PreemptionCandidate | None:
        return self.tied[0] if self.tied else None


@frozen(eq=False)
class Beyond:
    """The facts that were computed for this explanation only: the decision didn't need them.

    `refusals` has the rejections of every filter on all nodes, by plugin; without filters that all nodes pass.
    `evidence` has the evidence for them, by plugin and row, of plugins that give evidence.
    """

    refusals: Mapping[str, Refusals]
    evidence: Mapping[str, Mapping[int, tuple[Evidence, ...]]] = EMPTY
