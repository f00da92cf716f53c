"""The plan for pods of a shape: the plugins' answers to it, and the plugins to be asked about every pod."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.arrays import FloatArray, IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin, PlanPart, keeps_promise
from kschedfw.framework.results import ByDomain, DomainScores, Verdicts
from kschedfw.framework.runtime.answers.plugins import FilterPlugin, ScorePlugin, check_range
from kschedfw.framework.runtime.hooks import Hook, asked_method
from kschedfw.framework.status import Status

SmallCodes: TypeAlias = npt.NDArray[np.int8]
Mask: TypeAlias = npt.NDArray[np.bool_]

LARGEST_TOTAL = 2**52
"""Totals up to this number, and their summands, are exact in float64."""
REFUSED = -4.0 * LARGEST_TOTAL
"""The score of a node that refuses the pod. Totals stay below 0 whatever is added."""

_SKIP = Status.skip()


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
        each = self.filtering
        assert each is not None
        answer = None
        if each.batch is not None:
            answer = each.batch(state, pod, table, table.all_rows)
        if answer is None:
            statuses = [each.ask(state, pod, info) for info in table.node_infos]
            self._check(statuses)
            return np.array([not status.is_success for status in statuses]).view(np.int8)
        each.counts.rows_asked += len(table)
        if answer is Verdicts.passing(len(table)):
            return None
        # Most plugins have the same statuses every time, so that they are checked once.
        if answer.statuses is not self._plain:
            self._check(answer.statuses)
            self._plain = answer.statuses
        codes = answer.codes
        # The hooks are called again, and say what is wrong with the answer.
        if codes.shape != (len(table),):
            raise NotPlannedError
        # The pass is compiled for arrays of int8 that can be written to.
        if codes.dtype == np.int8 and codes.flags.writeable:
            return cast("SmallCodes", codes)
        # A writable copy. Numba would compile another version for each type, and one for read-only arrays.
        refused: Mask = codes != 0
        return refused.view(np.int8)

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
            match each.plugin.plan_part(self._pod):
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
                case part:
                    self._keep(each, is_idle=part is PlanPart.IDLE)
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
            frozenset(self._skipped_filters),
            frozenset(self._skipped_scores),
            tuple(signed),
            tuple(asked),
            tuple(computed),
        )

    def _keep(self, each: PlannedPlugin, *, is_idle: bool) -> None:
        """Add a plugin's answers for all nodes to the plan."""
        state, pod, nodes = self._state, self._pod, self._nodes
        # The state that the hooks write is the plan's: each pod of the shape takes it over.
        if each.is_skipped(each.pre_filter, state, pod, nodes):
            self._skipped_filters.add(each.name)
        elif each.filtering is not None and not is_idle:
            refused = each.refused(state, pod, nodes.table)
            if refused is not None:
                self._scores = np.where(refused, REFUSED, self._scores)
        if each.is_skipped(each.pre_score, state, pod, nodes):
            self._skipped_scores.add(each.name)
        elif each.scoring is not None and not is_idle:
            self._scores = self._scores + each.kept_score(state, pod, nodes)


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
        )
        for plugin in plugins
    ]


@lru_cache(maxsize=4)
def _zeros(count: int) -> FloatArray:
    zeros = np.zeros(count)
    zeros.setflags(write=False)
    return zeros
