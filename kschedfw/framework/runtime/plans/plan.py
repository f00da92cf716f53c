"""The plan for pods of a shape: the plugins' answers to it, and the plugins to be asked about every pod."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.arrays import FloatArray, IntArray
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import (
    PLANNED_HOOKS,
    AnyPlugin,
    PlanPart,
    Plugin,
    keeps_promise,
    plans_own_hooks,
)
from kschedfw.framework.results import ByDomain, DomainScores, Verdicts
from kschedfw.framework.runtime.answers.plugins import FilterPlugin, ScorePlugin, check_range
from kschedfw.framework.runtime.hooks import Hook, asked_method, hooks_of
from kschedfw.framework.status import Status

SmallCodes: TypeAlias = npt.NDArray[np.int8]
Mask: TypeAlias = npt.NDArray[np.bool_]

LARGEST_TOTAL = 2**52
"""Totals up to this number, and their summands, are exact in float64."""
REFUSED = -4.0 * LARGEST_TOTAL
"""The score of a node that refuses the pod. Totals stay below 0 whatever is added."""

_SKIP, _SUCCESS = Status.skip(), Status.success()


class NotPlannedError(Exception):
    """The exception for an answer that a plan can't hold. All hooks have to be called for the pod."""


@attrs.define(eq=False)
class PlannedPlugin:
    """A plugin of a profile with its hooks that plans are made from.

    All methods raise what its hooks raise, or NotPlannedError.
    """

    plugin: AnyPlugin
    filtering: FilterPlugin | None
    scoring: ScorePlugin | None
    pre_filter: Hook | None
    pre_score: Hook | None
    promises_part: bool
    """Whether the plugin's `plan_part` is about these hooks."""
    name: str = attrs.field(init=False)
    sign: Hook = attrs.field(init=False)
    _refuses_by_domain: bool = attrs.field(init=False)
    _scores_by_domain: bool = attrs.field(init=False)
    _plain: Sequence[Status] = ()
    """The statuses of the last verdicts, which were checked to be plain refusals."""

    @name.default
    def _name(self) -> str:
        return self.plugin.name

    @sign.default
    def _sign(self) -> Hook:
        return asked_method(self.plugin, "sign")

    @_refuses_by_domain.default
    def _has_refusals(self) -> bool:
        return keeps_promise(self.plugin, "domain_refusals", ("pre_filter", "filter", "filter_batch"))

    @_scores_by_domain.default
    def _has_scores(self) -> bool:
        hooks = ("pre_score", "score", "score_batch", "normalize_score")
        return keeps_promise(self.plugin, "domain_scores", hooks)

    @property
    def answers_together(self) -> bool:
        """Tell whether the plugin has batch forms of its hooks."""
        filtering, scoring = self.filtering, self.scoring
        return (filtering is None or filtering.batch is not None) and (
            scoring is None or scoring.batch is not None
        )

    @property
    def may_be_planned(self) -> bool:
        """Tell whether the plugin has a part in the plan of any pod."""
        return self.promises_part or self._derived is not None

    def part(self, pod: Pod) -> PlanPart | None:
        """Return how the plugin takes part in the plan for this pod; None where hooks must be called for it."""
        return self.plugin.plan_part(pod) if self.promises_part else self._derived

    @cached_property
    def _derived(self) -> PlanPart | None:
        """The part that follows from `reads` and `sign`, for a plugin that doesn't say how it takes part."""
        # Answers that follow the pods on nodes are kept by row, with the change log, which plans don't do.
        if self.plugin.reads is Reads.NODE and type(self.plugin).sign is not Plugin.sign:
            return PlanPart.SIGNATURE
        return None

    def is_skipped(self, hook: Hook | None, state: CycleState, pod: Pod, nodes: NodeSelection) -> bool:
        """Call pre_filter or pre_score. Return whether it skips."""
        answer = None if hook is None else hook(state, pod, nodes)
        if answer is _SKIP:
            return True
        if answer is None:
            return False
        if isinstance(answer, Status) and answer.is_skip:
            return True
        if isinstance(answer, Status) and answer.is_success:
            return False
        # A PreFilterResult narrows the nodes down, which a plan doesn't know how to do; refusals and errors
        # are for the hooks to report.
        raise NotPlannedError

    def refused(self, state: CycleState, pod: Pod, table: NodeTable) -> SmallCodes | None:
        """Return codes that are 0 where the filter lets a node pass, shape (n,); None where it lets all pass."""
        verdicts = self.verdicts(state, pod, table)
        return None if verdicts is None else small_codes(verdicts)

    def verdicts(self, state: CycleState, pod: Pod, table: NodeTable) -> Verdicts | None:
        """Return the filter's verdicts on all nodes, none of which is an error; None where it lets all pass."""
        each = self.filtering
        assert each is not None
        answer = None
        if each.batch is not None:
            answer = each.batch(state, pod, table, table.all_rows)
        if answer is None:
            return self._one_by_one(each, state, pod, table)
        each.counts.rows_asked += len(table)
        if answer is Verdicts.passing(len(table)):
            return None
        # Most plugins have the same statuses every time, so that they are checked once.
        if answer.statuses is not self._plain:
            self._check(answer.statuses)
            self._plain = answer.statuses
        # The hooks are called again, and say what is wrong with the answer.
        if answer.codes.shape != (len(table),):
            raise NotPlannedError
        return cast("Verdicts", answer)

    def _one_by_one(
        self, each: FilterPlugin, state: CycleState, pod: Pod, table: NodeTable
    ) -> Verdicts | None:
        numbers: dict[Status, int] = {_SUCCESS: 0}
        codes = [numbers.setdefault(each.ask(state, pod, info), len(numbers)) for info in table.node_infos]
        self._check(tuple(numbers))
        return Verdicts(np.array(codes, dtype=np.int64), tuple(numbers)) if len(numbers) > 1 else None

    def _check(self, statuses: Sequence[Status]) -> None:
        # A plan holds no errors, and no refusal that ends at a time (`retry_at`).
        if any(not (status.is_success or status.is_rejected) or status.retry_at for status in statuses):
            raise NotPlannedError

    def domain_refusals(self, state: CycleState, table: NodeTable) -> Sequence[ByDomain] | None:
        """Return the domains that the filter refuses; None where it must be asked about nodes."""
        found = self.plugin.domain_refusals(state, table) if self._refuses_by_domain else None
        if found is not None and self.filtering is not None:
            self.filtering.counts.rows_asked += len(table)
        return found

    def domain_scores(self, state: CycleState, table: NodeTable) -> DomainScores | None:
        """Return the scores by domain; None where the hook must be asked about nodes."""
        found = self.plugin.domain_scores(state, table) if self._scores_by_domain else None
        if found is not None and self.scoring is not None:
            self.scoring.counts.rows_asked += len(table)
        return found

    def kept_score(self, state: CycleState, pod: Pod, nodes: NodeSelection) -> IntArray | int:
        """Return weight × score of all nodes, feasible or not; 0 where all nodes have the same score."""
        each = self.scoring
        assert each is not None
        raw = self._raw(each, state, pod, nodes)
        if each.normalize is None:
            check_range(each.name, raw)
            return raw * each.weight
        if not each.normalizes_by_scores_alone or raw.min() != raw.max():
            raise NotPlannedError  # the scores of a node depend on which others are feasible
        # Equal raw scores are equal after normalising, too, and so change no order; only their range is
        # checked.
        check_range(each.name, each.normalized(state, pod, nodes, raw.copy()))
        return 0

    def score(self, state: CycleState, pod: Pod, nodes: NodeSelection) -> IntArray:
        """Return weight × normalised score of these feasible nodes, shape (k,)."""
        each = self.scoring
        assert each is not None
        scores = self._raw(each, state, pod, nodes)
        if each.normalize is not None:
            scores = each.normalized(state, pod, nodes, scores.copy())
        check_range(each.name, scores)
        return scores if each.weight == 1 else scores * each.weight

    def _raw(self, each: ScorePlugin, state: CycleState, pod: Pod, nodes: NodeSelection) -> IntArray:
        raw = each.ask_together(state, pod, nodes)
        if raw is None:
            raw = np.array([each.ask(state, pod, info) for info in nodes], dtype=np.int64)
        return raw


@attrs.frozen(eq=False)
class ShapePlan:
    """The plugins' answers for a shape. Valid as long as the node objects don't change."""

    scores: FloatArray
    """The sum of the scores that depend on node objects alone, shape (n,); far below 0 where a node refuses the
    pod."""
    least_allocated: int
    balanced_allocation: int
    most_allocated: int
    """The weights of the scores that the pass computes; 0 for one that isn't enabled."""
    fits: bool
    """Whether the pass refuses nodes without enough resources."""
    written: CycleState
    verdicts: Mapping[str, Verdicts] = EMPTY
    """The verdicts behind `scores` of filters that refuse any node, by plugin."""
    skipped_filters: frozenset[str] = frozenset()
    skipped_scores: frozenset[str] = frozenset()
    signed: tuple[PlannedPlugin, ...] = ()
    """The plugins for whose signatures the plan must be refined."""
    asked: tuple[PlannedPlugin, ...] = ()
    """The plugins whose hooks are called for every pod."""
    computed: tuple[PlannedPlugin, ...] = ()
    """The plugins whose answers the pass computes from requests and what nodes have left."""

    @cached_property
    def asking_signed(self) -> ShapePlan:
        """The plan for one pod whose signatures are new: the plugins that sign are called, too."""
        return attrs.evolve(self, signed=(), asked=(*self.signed, *self.asked))

    @classmethod
    def empty(cls, nodes: int) -> ShapePlan:
        """Return the plan of a profile without plugins."""
        return cls(_zeros(nodes), 0, 0, 0, False, CycleState())


def plan_for(
    pod: Pod, nodes: NodeSelection, plugins: Sequence[PlannedPlugin], base: ShapePlan | None = None
) -> ShapePlan | None:
    """Make the plan for pods like this one by calling hooks for all nodes; with a `base`, refine that plan.

    Return None where a plugin gives no plan, fails, or answers what a plan can't hold.
    """
    try:
        return _Making(pod, nodes, ShapePlan.empty(len(nodes)) if base is None else base).plan(plugins)
    except HOOK_FAILURES:  # the caller calls the hooks again, which reports the failure
        return None


class _Making:
    def __init__(self, pod: Pod, nodes: NodeSelection, base: ShapePlan) -> None:
        self._pod = pod
        self._nodes = nodes
        self._base = base
        self._state = CycleState()
        self._state.take(base.written)
        self._scores = base.scores
        self._verdicts = dict(base.verdicts)
        self._skipped_filters = set(base.skipped_filters)
        self._skipped_scores = set(base.skipped_scores)

    def plan(self, plugins: Sequence[PlannedPlugin]) -> ShapePlan | None:
        base = self._base
        weights = {
            PlanPart.LEAST_ALLOCATED: base.least_allocated,
            PlanPart.BALANCED_ALLOCATION: base.balanced_allocation,
            PlanPart.MOST_ALLOCATED: base.most_allocated,
        }
        fits, signed, asked, computed = base.fits, [], list(base.asked), list(base.computed)
        for each in plugins:
            match each.part(self._pod):
                case None:
                    return None
                # A plan is refined for one signature, so there the answers of these plugins are kept, by the
                # last case.
                case PlanPart.SIGNATURE if each not in base.signed:
                    signed.append(each)
                case PlanPart.POD:
                    asked.append(each)
                case (
                    PlanPart.LEAST_ALLOCATED | PlanPart.BALANCED_ALLOCATION | PlanPart.MOST_ALLOCATED
                ) as part:
                    weights[part] = 0 if each.scoring is None else each.scoring.weight
                    fits |= each.filtering is not None
                    computed.append(each)
                case part if not self._kept(each, is_idle=part is PlanPart.IDLE):
                    # Asked node by node for every pod it would cost more than the memo, which keeps its answers.
                    if not each.answers_together:
                        return None
                    asked.append(each)
        # Plans in which all nodes are equal share their array.
        scores = self._scores if self._scores.any() else _zeros(len(self._scores))
        scores.setflags(write=False)  # the pass is compiled for arrays that can't be written to
        return ShapePlan(
            scores,
            weights[PlanPart.LEAST_ALLOCATED],
            weights[PlanPart.BALANCED_ALLOCATION],
            weights[PlanPart.MOST_ALLOCATED],
            fits,
            self._state,
            self._verdicts,
            frozenset(self._skipped_filters),
            frozenset(self._skipped_scores),
            tuple(signed),
            tuple(asked),
            tuple(computed),
        )

    def _kept(self, each: PlannedPlugin, *, is_idle: bool) -> bool:
        """Add a plugin's answers for all nodes to the plan. Return False where a plan can't hold them."""
        # The state that the hooks write is the plan's: each pod of the shape takes it over.
        state, pod, nodes, scores = self._state.clone(), self._pod, self._nodes, self._scores
        verdicts = None
        try:
            skips_filter = each.is_skipped(each.pre_filter, state, pod, nodes)
            if each.filtering is not None and not (is_idle or skips_filter):
                verdicts = each.verdicts(state, pod, nodes.table)
                if verdicts is not None and not verdicts.codes.any():
                    verdicts = None
                if verdicts is not None:
                    scores = np.where(verdicts.codes, REFUSED, scores)
            skips_score = each.is_skipped(each.pre_score, state, pod, nodes)
            if each.scoring is not None and not (is_idle or skips_score):
                scores = scores + each.kept_score(state, pod, nodes)
        except NotPlannedError:
            return False
        self._state, self._scores = state, scores
        if verdicts is not None:
            self._verdicts[each.name] = verdicts
        self._skipped_filters |= {each.name} if skips_filter else set()
        self._skipped_scores |= {each.name} if skips_score else set()
        return True


def small_codes(verdicts: Verdicts) -> SmallCodes:
    """Return the codes as the pass takes them: int8 that can be written to, not 0 where a node is refused."""
    codes = verdicts.codes
    if codes.dtype == np.int8 and codes.flags.writeable:
        return cast("SmallCodes", codes)
    # A writable copy. Numba would compile another version for each type, and one for read-only arrays.
    refused: Mask = codes != 0
    return refused.view(np.int8)


def planned_plugins(
    plugins: Collection[AnyPlugin],
    hooks: Mapping[str, Mapping[str, Hook]],
    filters: Sequence[FilterPlugin],
    scores: Sequence[ScorePlugin],
) -> Sequence[PlannedPlugin]:
    """Return the plugins with their hooks; `hooks` has those of each plugin by its name."""
    filtering, scoring = {each.name: each for each in filters}, {each.name: each for each in scores}
    return [
        PlannedPlugin(
            plugin,
            filtering.get(plugin.name),
            scoring.get(plugin.name),
            hooks[plugin.name].get("pre_filter"),
            hooks[plugin.name].get("pre_score"),
            # A profile may enable a plugin at some of its extension points alone. Then `plan_part` promises more
            # than there is to be called.
            plans_own_hooks(plugin)
            and hooks[plugin.name].keys() >= set(hooks_of(type(plugin))).intersection(PLANNED_HOOKS),
        )
        for plugin in plugins
    ]


@lru_cache(maxsize=4)
def _zeros(count: int) -> FloatArray:
    zeros = np.zeros(count)
    zeros.setflags(write=False)
    return zeros
