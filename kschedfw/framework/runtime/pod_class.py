"""What is known of pods that equal each other in all that plugins look at."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast

import attrs
import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.runtime.columns import UNKNOWN_CODE, UNKNOWN_SCORE, Column, FirstRefusals
from kschedfw.framework.runtime.filtering import FilterPlugin
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.runtime.score_plugin import ScorePlugin
from kschedfw.framework.runtime.status_codes import StatusCodes
from kschedfw.framework.runtime.totals import Normalized, StandingTotals

BYTES_PER_CLASS: Final = 1024
"""About what the objects of a class take beside its columns, and those of each of its plugins."""

_MOST_COLUMNS: Final = 8

KeptT = TypeVar("KeptT")


@attrs.define(eq=False, weakref_slot=True)
class Answers:
    """What one plugin answers to pods of one signature, by row. Pod classes share it.

    `normalized` are the scores of the selection that was normalised last. `uniform` has the weighted normalised score
    by raw score, where all nodes have the same raw score.
    """

    reads: Reads
    normalized: Normalized | None = None
    uniform: dict[int, int] = attrs.field(factory=dict)
    _codes: Column | None = None
    _scores: Column | None = None

    def codes(self, table: NodeTable) -> Column:
        """The filter's codes, brought up to date."""
        if self._codes is None:
            self._codes = Column(table, self.reads, np.int32, UNKNOWN_CODE)
        self._codes.follow(table)
        return self._codes

    def scores(self, table: NodeTable) -> Column:
        """The raw scores, brought up to date."""
        if self._scores is None:
            self._scores = Column(table, self.reads, np.int64, UNKNOWN_SCORE)
        self._scores.follow(table)
        return self._scores


@attrs.define(eq=False)
class PreparedStep:
    """What the hooks before a `hook` did for all pods of a class, and that hook, which is called for every pod.

    `written` is what they wrote, None if nothing; `skipped` names those that answered SKIP. There is no hook in the
    last step.
    """

    written: CycleState | None = None
    skipped: frozenset[str] = frozenset()
    name: str = ""
    hook: Hook | None = None


Preparation: TypeAlias = Sequence[PreparedStep]
"""The pre_filter (or pre_score) hooks for a class of pods, in profile order.

The order matters: what comes after a hook that refuses the pod has never happened.
"""


@attrs.frozen(eq=False)
class FilterPlan:
    """How the filters that take part are asked about pods of a class.

    `filters` are all of them, in profile order. `kept` are the first of these, as far as their answers are kept, and
    `refusals` is what they answer together. `rest` are the others.
    """

    filters: tuple[FilterPlugin, ...]
    kept: tuple[FilterPlugin, ...]
    rest: tuple[FilterPlugin, ...]
    refusals: FirstRefusals | None
    kept_reading_pods: tuple[FilterPlugin, ...]
    """Those of `kept` whose answers may change with the pods on the node."""
    is_local: bool
    """Whether every filter, and every hook that follows pods, looks at one node alone, and its answers are kept."""


@attrs.frozen(eq=False)
class ScorePlan:
    """How the score plugins that take part are asked about pods of a class, in profile order each.

    `local` are those whose answers are kept and need no normalising, `normalized` those that need it, `rest` the
    others.
    """

    local: tuple[ScorePlugin, ...]
    following_pods: tuple[ScorePlugin, ...]
    """Those of `local` whose scores may change with the pods on the node."""
    normalized: tuple[ScorePlugin, ...]
    rest: tuple[ScorePlugin, ...]
    sums: Column
    """Σ weight × score of `local`."""
    standing: StandingTotals
    normalizes_pods: bool
    """Whether a score in `normalized` may change with the pods on a node, and so those of all nodes."""


@attrs.define(eq=False)
class PodClass:
    """Pods for which the plugins in `answers` have the same signatures.

    `answers` are those that are kept. Plugins that are missing there are asked about every pod anew: they promise
    nothing, or this pod's signature has not come lately. `codes` says what the numbers in columns of codes mean.
    """

    codes: StatusCodes
    answers: Mapping[str, Answers] = attrs.field(factory=dict)
    pre_filter: Preparation | None = None
    pre_score: Preparation | None = None
    filter_plans: dict[frozenset[str], FilterPlan] = attrs.field(factory=dict)
    """By the plugins that are skipped."""
    score_plans: dict[frozenset[str], ScorePlan] = attrs.field(factory=dict)
    """By the plugins that are skipped."""
    _columns: BoundedDict[Hashable, object] = attrs.field(factory=lambda: BoundedDict(_MOST_COLUMNS))

    def size(self, rows: int) -> int:
        """In bytes, about, with a table of so many rows."""
        # 4 bytes a row for a code, 8 for a score or a sum of them: counted as if all were there, and nothing shared.
        count = len(self.answers)
        return rows * (12 + 20 * count) + BYTES_PER_CLASS * (1 + count)

    def column(self, key: Hashable, make: Callable[[], KeptT]) -> KeptT:
        """The column of this key, made by `make` if there is none. Of many columns the oldest go."""
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
        """How the filters that aren't skipped are asked; `pod_followers` are plugins with hooks that follow pods."""
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
        count = next((i for i, each in enumerate(active) if each.name not in self.answers), len(active))
        kept, rest = active[:count], active[count:]
        reading_pods = tuple(each for each in kept if each.plugin.reads is Reads.PODS)
        refusals = FirstRefusals(table, Reads.PODS if reading_pods else Reads.NODE) if kept else None
        names = {each.name for each in active} | skipped
        return FilterPlan(active, kept, rest, refusals, reading_pods, not rest and pod_followers <= names)

    def score_plan(
        self, plugins: tuple[ScorePlugin, ...], skipped: frozenset[str], table: NodeTable
    ) -> ScorePlan:
        """How the score plugins that aren't skipped are asked."""
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
