"""The kept answers for pods with the same signatures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast

import attrs
import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.runtime.answers.columns import UNKNOWN_CODE, UNKNOWN_SCORE, Column, FirstRefusals
from kschedfw.framework.runtime.answers.plugins import FilterPlugin, ScorePlugin
from kschedfw.framework.runtime.answers.status_codes import StatusCodes
from kschedfw.framework.runtime.answers.totals import Normalized, StandingTotals
from kschedfw.framework.runtime.hooks import Hook

BYTES_PER_CLASS: Final = 1024
"""The approximate size of a class's objects beside its columns, and of the objects of each of its plugins."""

_MOST_COLUMNS: Final = 8

KeptT = TypeVar("KeptT")


# The memo refers to these weakly, which slots alone don't allow.
@attrs.define(eq=False, weakref_slot=True)
class Answers:
    """One plugin's answers to pods of one signature, by row. Pod classes share it.

    `normalized` are the scores of the selection that was normalised last. `uniform` has the weighted normalised
    score by raw score, for the case that all nodes have the same raw score.
    """

    reads: Reads
    normalized: Normalized | None = None
    uniform: dict[int, int] = attrs.field(factory=dict)
    _codes: Column | None = None
    _scores: Column | None = None

    def codes(self, table: NodeTable) -> Column:
        """Return the column of the filter's codes, brought up to date."""
        if self._codes is None:
            self._codes = Column(table, self.reads, np.int32, UNKNOWN_CODE)
        self._codes.follow(table)
        return self._codes

    def scores(self, table: NodeTable) -> Column:
        """Return the column of the raw scores, brought up to date."""
        if self._scores is None:
            self._scores = Column(table, self.reads, np.int64, UNKNOWN_SCORE)
        self._scores.follow(table)
        return self._scores


@attrs.define(eq=False)
class PreparedStep:
    """The combined result of consecutive prepared hooks, and the `hook` after them, which is called for every pod.

    `written` is the state that they wrote, None if none; `skipped` names the plugins that answered SKIP. The
    last step has no hook.
    """

    written: CycleState | None = None
    skipped: frozenset[str] = frozenset()
    name: str = ""
    hook: Hook | None = None


Preparation: TypeAlias = Sequence[PreparedStep]
"""The pre_filter (or pre_score) hooks for a class of pods, in profile order.

The order matters: if a hook refuses the pod, the results of the hooks after it must not show.
"""


@attrs.frozen(eq=False)
class FilterPlan:
    """The division of the active filters into those whose answers are kept and others, for pods of a class.

    `filters` are all of them, in profile order. `kept` are the longest prefix of them whose answers are kept,
    and `refusals` are their answers together. `rest` are the filters after `kept`.
    """

    filters: tuple[FilterPlugin, ...]
    kept: tuple[FilterPlugin, ...]
    rest: tuple[FilterPlugin, ...]
    refusals: FirstRefusals | None
    kept_reading_pods: tuple[FilterPlugin, ...]
    """The filters in `kept` whose answers may change with the pods on the node."""
    is_local: bool
    """Whether the answers of every filter are kept and depend on single nodes alone, pre_filter_add_pod included."""


@attrs.frozen(eq=False)
class ScorePlan:
    """The division of the active score plugins for pods of a class, each part in profile order.

    `local` are the plugins whose answers are kept and that need no normalising, `normalized` those that are
    kept and need it, `rest` the others.
    """

    local: tuple[ScorePlugin, ...]
    following_pods: tuple[ScorePlugin, ...]
    """The plugins in `local` whose scores may change with the pods on the node."""
    normalized: tuple[ScorePlugin, ...]
    rest: tuple[ScorePlugin, ...]
    sums: Column
    """Σ weight × score of `local`."""
    standing: StandingTotals
    normalizes_pods: bool
    """Whether a score in `normalized` may change with the pods on a node. If so, normalising changes the scores of
    all nodes."""


@attrs.define(eq=False)
class PodClass:
    """The pods for which the plugins in `answers` have the same signatures.

    `answers` has the kept answers by plugin. A plugin that is missing there is asked about every pod: it
    promises nothing, or the pod's signature hasn't come lately. `codes` translates the numbers in columns of
    codes.
    """

    codes: StatusCodes
    answers: Mapping[str, Answers] = attrs.field(factory=dict)
    pre_filter: Preparation | None = None
    pre_score: Preparation | None = None
    filter_plans: dict[frozenset[str], FilterPlan] = attrs.field(factory=dict)
    """The plans by the plugins that are skipped."""
    score_plans: dict[frozenset[str], ScorePlan] = attrs.field(factory=dict)
    """The plans by the plugins that are skipped."""
    _columns: BoundedDict[Hashable, object] = attrs.field(factory=lambda: BoundedDict(_MOST_COLUMNS))

    def size(self, rows: int) -> int:
        """Return the approximate size in bytes, with a table of this many rows."""
        # 4 bytes a row for a code, 8 for a score or a sum of them: counted as if all were there, and nothing shared.
        count = len(self.answers)
        return rows * (12 + 20 * count) + BYTES_PER_CLASS * (1 + count)

    def column(self, key: Hashable, make: Callable[[], KeptT]) -> KeptT:
        """Return the column of this key, made by `make` if there is none. The oldest of many columns are dropped."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = make()
        return cast("KeptT", column)

    def filter_plan(
        self,
        filters: tuple[FilterPlugin, ...],
        skipped: frozenset[str],
        table: NodeTable,
        pod_followers: frozenset[str],
    ) -> FilterPlan:
        """Return the plan of the filters that aren't skipped; `pod_followers` are plugins with pre_filter_add_pod."""
        plan = self.filter_plans.get(skipped)
        if plan is None:
            plan = self.filter_plans[skipped] = self._plan_filters(filters, skipped, table, pod_followers)
        return plan

    def _plan_filters(
        self,
        filters: tuple[FilterPlugin, ...],
        skipped: frozenset[str],
        table: NodeTable,
        pod_followers: frozenset[str],
    ) -> FilterPlan:
        active = tuple(each for each in filters if each.name not in skipped)
        # Only a prefix can be kept together: `refusals` holds the first refusal, so no other filter may stand
        # between.
        count = next((i for i, each in enumerate(active) if each.name not in self.answers), len(active))
        kept, rest = active[:count], active[count:]
        reading_pods = tuple(each for each in kept if each.plugin.reads is Reads.PODS)
        refusals = FirstRefusals(table, Reads.PODS if reading_pods else Reads.NODE) if kept else None
        names = {each.name for each in active} | skipped
        return FilterPlan(active, kept, rest, refusals, reading_pods, not rest and pod_followers <= names)

    def score_plan(
        self, plugins: tuple[ScorePlugin, ...], skipped: frozenset[str], table: NodeTable
    ) -> ScorePlan:
        """Return the plan of the score plugins that aren't skipped."""
        plan = self.score_plans.get(skipped)
        if plan is None:
            plan = self.score_plans[skipped] = self._plan_scores(plugins, skipped, table)
        return plan

    def _plan_scores(
        self, plugins: tuple[ScorePlugin, ...], skipped: frozenset[str], table: NodeTable
    ) -> ScorePlan:
        active = [each for each in plugins if each.name not in skipped]
        kept = [each for each in active if each.name in self.answers]
        local = tuple(each for each in kept if each.normalize is None)
        normalized = tuple(each for each in kept if each.normalize is not None)
        # No plugin here reads the whole cluster: of such a one nothing is kept (`Memo`).
        following_pods = tuple(each for each in local if each.plugin.reads is Reads.PODS)
        reads = Reads.PODS if following_pods else Reads.NODE
        return ScorePlan(
            local,
            following_pods,
            normalized,
            tuple(each for each in active if each not in kept),
            Column(table, reads, np.int64, UNKNOWN_SCORE),
            StandingTotals(table, reads),
            any(each.plugin.reads is Reads.PODS for each in normalized),
        )


POD_CLASS: Final = StateKey[PodClass]("kschedfw.pod_class")
"""The class of the pod whose cycle the state belongs to."""
