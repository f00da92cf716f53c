"""Places a pod in one pass over the columns of the node table, where every plugin says how pods of its shape fare.

Most pods are of a shape that has come before: they differ in their requests and in names, and nothing else that plugins
look at. A plan has what plugins say of the shape: the nodes they refuse and the scores they give on account of the node
objects alone, worked out once by their hooks. What depends on requests and on the pods on nodes is computed in the
pass: who has enough left, the scores of CPU and memory, the best nodes in visiting order. No hook is called.

A pod is placed so only where the outcome is surely that of the hooks. Otherwise they are asked as ever: when no node
passes, for one, since a plan doesn't say why.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, Protocol

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.requests import PodRequests
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.arrays import LARGEST_EXACT, FloatArray, IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin, PlanPart, Plugin
from kschedfw.framework.results import MAX_NODE_SCORE
from kschedfw.framework.runtime.filtering import FilterPlugin
from kschedfw.framework.runtime.hooks import Hook, HookTable, hooks_of
from kschedfw.framework.runtime.score_plugin import ScorePlugin, check_range, integers
from kschedfw.framework.status import Status

_FEWEST_NODES: Final = 256
"""For fewer nodes it isn't worth while to load the compiled pass."""

_MOST_ASKED: Final = 10_000
"""Where more nodes are in question, hooks are faster for a pod that requests the same as the pod before: they are asked
about the nodes that have changed alone (162 µs on 50,000 nodes, where the pass takes 400)."""

_MOST_PLANS: Final = 512
"""At most 4 KiB a node, as in the memo; and next to nothing for plans in which all nodes are equal."""
_MOST_LATELY: Final = 1024

_LARGEST_TOTAL: Final = 2**52
"""Totals up to this one, and what they are made of, are exact in float64."""
_REFUSED: Final = -4.0 * _LARGEST_TOTAL
"""The score of a node that refuses the pod: below 0, whatever is added to it."""

_ANY_AMOUNT: Final = -(1 << 63)
"""Every node has this much free: what a pod asks for that requests nothing of a resource."""
_ANY_AMOUNTS: Final = (_ANY_AMOUNT,) * 4

_PLANNED_HOOKS: Final = (
    "pre_filter",
    "filter",
    "filter_batch",
    "pre_score",
    "score",
    "score_batch",
    "normalize_score",
)

Mask = npt.NDArray[np.bool_]


class Pass(Protocol):
    """The compiled pass: `_one_pass.one_pass`, which says what the arguments are."""

    def __call__(
        self,
        scores: FloatArray,
        free: IntArray,
        allocatable: FloatArray,
        requested: FloatArray,
        non_zero: FloatArray,
        wanted: tuple[int, int, int, int],
        scored: tuple[int, int],
        amounts: tuple[int, int],
        weights: tuple[int, int],
        start: int,
        most: int,
        totals: FloatArray,
        best: IntArray,
        /,
    ) -> tuple[int, int, int]: ...


@attrs.frozen(eq=False)
class BestNodes:
    """The outcome of a pass: the rows with the highest total, in visiting order, out of how many feasible ones.

    `looked_at` counts the nodes in question up to the end of the search.
    """

    rows: IntArray
    feasible: int
    looked_at: int


@attrs.frozen(eq=False)
class _ShapePlan:
    """What plugins say of a shape, as long as the node objects stay as they are."""

    scores: FloatArray
    """What the nodes get on account of the node objects, shape (n,); far below 0 where they refuse the pod."""
    least_allocated: int
    balanced_allocation: int
    """The weights of the two scores that are computed, 0 where one isn't wanted."""
    fits: bool
    """Whether nodes need to have room for the pod."""
    written: CycleState
    skipped_filters: frozenset[str] = frozenset()
    skipped_scores: frozenset[str] = frozenset()
    signed: tuple[AnyPlugin, ...] = ()
    """The plugins whose signatures the plan has to be refined by."""


class Planner:
    """The plans of a profile's pods, by shape.

    A shape gets a plan when it comes for the second time with the same node objects. A profile of which any plugin
    gives no plan gets none.
    """

    def __init__(
        self,
        plugins: Mapping[str, AnyPlugin],
        hooks: HookTable,
        filters: Sequence[FilterPlugin],
        scores: Sequence[ScorePlugin],
        snapshot: Snapshot,
    ) -> None:
        names = dict.fromkeys(
            name for hook in ("pre_filter", "filter", "pre_score", "score") for name, _ in hooks[hook]
        )
        self._plugins = [plugins[name] for name in names]
        self._hooks = {name: hooks.of(name) for name in names}
        self._filters = {each.name: each for each in filters}
        self._scores = {each.name: each for each in scores}
        self._snapshot = snapshot
        largest_total = sum(each.weight for each in scores) * MAX_NODE_SCORE
        self.is_possible = largest_total <= _LARGEST_TOTAL and all(
            _promises(plugin) and self._hooks[plugin.name].keys() >= _planned_hooks(plugin)
            for plugin in self._plugins
        )
        """Whether all plugins that filter or score can say how pods of a shape fare."""
        self._holds = [
            plugin.plan_holds for plugin in self._plugins if type(plugin).plan_holds is not Plugin.plan_holds
        ]
        self._plans: BoundedDict[Hashable, tuple[tuple[int, int], _ShapePlan | None]] = BoundedDict(
            _MOST_PLANS
        )
        """By shape, or shape and signatures, with the version of the node objects; None where there can be no plan."""
        self._lately: BoundedDict[Hashable, tuple[int, int]] = BoundedDict(_MOST_LATELY)
        """By shape, and shape with signatures, the version of the node objects that pods met without a plan."""
        self._last_requests: PodRequests | None = None
        self._totals: FloatArray = np.empty(0)
        self._best: IntArray = np.empty(0, dtype=np.int64)

    def best_nodes(self, state: CycleState, pod: Pod, start: int, wanted: int) -> BestNodes | None:
        """Find the best of the first `wanted` nodes that pass, from row `start` on and round the end.

        None where hooks have to be asked; nothing is written then. Else the state has what later hooks look for.
        """
        requests = pod.requests
        is_like_the_last, self._last_requests = requests is self._last_requests, requests
        demand, scored, amounts = requests.demand, requests.scored, requests.amounts
        if (
            len(self._snapshot) < _FEWEST_NODES
            or (is_like_the_last and wanted > _MOST_ASKED)
            or amounts.scalar_resources
            or demand.scalar_resources
            or pod.shape is None
            or (one_pass := _compiled_pass()) is None
        ):
            return None
        table = self._snapshot.table
        try:
            plan = self._plan(pod, table)
            if plan is None:
                return None
            for holds in self._holds:
                if not holds(pod):
                    return None
        except HOOK_FAILURES:  # whoever asks the hooks again tells of it
            return None
        wanted_free = _ANY_AMOUNTS
        if plan.fits:
            cpu, memory, storage = demand.milli_cpu, demand.memory, demand.ephemeral_storage
            wanted_free = (cpu or _ANY_AMOUNT, memory or _ANY_AMOUNT, storage or _ANY_AMOUNT, 1)
        balanced = plan.balanced_allocation if amounts.milli_cpu or amounts.memory else 0
        if (
            not 0 <= scored.milli_cpu <= LARGEST_EXACT
            or not 0 <= scored.memory <= LARGEST_EXACT
            or not 0 <= amounts.milli_cpu <= LARGEST_EXACT
            or not 0 <= amounts.memory <= LARGEST_EXACT
            or not 0 < table.largest("cpu") <= LARGEST_EXACT
            or not 0 < table.largest("memory") <= LARGEST_EXACT
        ):
            return None
        if len(self._best) != len(table):
            self._totals, self._best = np.empty(len(table)), np.empty(len(table), dtype=np.int64)
        feasible, looked_at, tied = one_pass(
            plan.scores,
            table.free.T,
            table.allocatable_floats.T,
            table.requested_floats.T,
            table.non_zero_floats.T,
            wanted_free,
            (scored.milli_cpu, scored.memory),
            (amounts.milli_cpu, amounts.memory),
            (plan.least_allocated, balanced),
            start,
            wanted,
            self._totals,
            self._best,
        )
        if not feasible:
            return None
        state.take(plan.written)
        state.skip_filter_plugins = plan.skipped_filters
        state.skip_score_plugins = plan.skipped_scores
        return BestNodes(self._best[:tied], feasible, looked_at)

    def _plan(self, pod: Pod, table: NodeTable) -> _ShapePlan | None:
        shape, version = pod.shape, (table.layout, table.node_changes.version)
        known = self._plans.get(shape)
        if known is None or known[0] != version:
            if not self._comes_again(shape, version):
                return None
            plan = self._making(pod, table).plan(self._plugins)
            known = self._plans[shape] = version, plan
        _, plan = known
        if plan is None or not plan.signed:
            return plan
        signatures = shape, *[plugin.sign(pod) for plugin in plan.signed]
        known = self._plans.get(signatures)
        if known is not None and known[0] == version:
            return known[1]
        if None in signatures:
            return None
        plan = self._making(pod, table, plan).plan(plan.signed)
        if self._comes_again(signatures, version):
            self._plans[signatures] = version, plan
        return plan

    def _comes_again(self, key: Hashable, version: tuple[int, int]) -> bool:
        """Whether the key has come lately, with the same node objects; if not, it may come again."""
        comes_again = self._lately.get(key) == version
        self._lately[key] = version
        return comes_again

    def _making(self, pod: Pod, table: NodeTable, base: _ShapePlan | None = None) -> _Making:
        return _Making(self._filters, self._scores, self._hooks, pod, table, base)


class _Making:
    """Asks hooks about all nodes, for the plan of pods like this one; with a `base`, for one that refines it."""

    def __init__(
        self,
        filters: Mapping[str, FilterPlugin],
        scores: Mapping[str, ScorePlugin],
        hooks: Mapping[str, Mapping[str, Hook]],
        pod: Pod,
        table: NodeTable,
        base: _ShapePlan | None,
    ) -> None:
        self._filters = filters
        self._scores = scores
        self._hooks = hooks
        self._pod = pod
        self._nodes = NodeSelection.whole(table)
        self._state = CycleState()
        self._base = base or _ShapePlan(_zeros(len(table)), 0, 0, False, CycleState())
        self._state.take(self._base.written)

    def plan(self, plugins: Sequence[AnyPlugin]) -> _ShapePlan | None:
        """The plan; None where a plugin gives none, fails, or answers what a plan can't hold."""
        base = self._base
        scores, fits = base.scores, base.fits
        weights = {
            PlanPart.LEAST_ALLOCATED: base.least_allocated,
            PlanPart.BALANCED_ALLOCATION: base.balanced_allocation,
        }
        skipped_filters, skipped_scores = set(base.skipped_filters), set(base.skipped_scores)
        signed: list[AnyPlugin] = []
        try:
            for plugin in plugins:
                name, part = plugin.name, plugin.plan_part(self._pod)
                if part is None:
                    return None
                if part is PlanPart.SIGNATURE and plugin not in base.signed:
                    signed.append(plugin)
                    continue
                filtering, scoring = self._filters.get(name), self._scores.get(name)
                if part in weights:
                    weights[part] = 0 if scoring is None else scoring.weight
                    fits |= filtering is not None
                    continue
                if self._skips(name, "pre_filter"):
                    skipped_filters.add(name)
                elif filtering is not None and part is not PlanPart.IDLE:
                    scores = np.where(self._passes(filtering), scores, _REFUSED)
                if self._skips(name, "pre_score"):
                    skipped_scores.add(name)
                elif scoring is not None and part is not PlanPart.IDLE:
                    scores = scores + self._weighted(scoring)
        except HOOK_FAILURES:  # whoever asks the hooks again will tell of it
            return None
        scores.setflags(write=False)  # the pass is compiled for arrays that can't be written to
        return _ShapePlan(
            scores if scores.any() else _zeros(len(scores)),
            weights[PlanPart.LEAST_ALLOCATED],
            weights[PlanPart.BALANCED_ALLOCATION],
            fits,
            self._state,
            frozenset(skipped_filters),
            frozenset(skipped_scores),
            tuple(signed),
        )

    def _skips(self, name: str, hook_name: str) -> bool:
        """Call pre_filter or pre_score; return whether it skips."""
        hook = self._hooks[name].get(hook_name)
        answer = None if hook is None else hook(self._state, self._pod, self._nodes)
        if answer is None or (isinstance(answer, Status) and answer.is_success):
            return False
        if isinstance(answer, Status) and answer.is_skip:
            return True
        raise _NotPlannedError

    def _passes(self, each: FilterPlugin) -> Mask:
        """The nodes that the filter lets pass, shape (n,)."""
        table = self._nodes.table
        answer = None
        if each.batch is not None:
            answer = each.batch(self._state, self._pod, table, table.all_rows)
        if answer is None:
            statuses = [each.ask(self._state, self._pod, info) for info in table.node_infos]
            passes = np.array([status.is_success for status in statuses])
        else:
            each.counts.rows_asked += len(table)
            statuses, passes = answer.statuses, answer.codes == 0
        if any(not (status.is_success or status.is_rejected) or status.retry_at for status in statuses):
            raise _NotPlannedError
        return passes

    def _weighted(self, each: ScorePlugin) -> IntArray | int:
        """Weight × score; 0 where all nodes have the same, which makes no difference."""
        table, scores = self._nodes.table, None
        if each.batch is not None:
            scores = each.batch(self._state, self._pod, table, table.all_rows)
            each.counts.rows_asked += len(table)
        if scores is None:
            scores = [each.ask(self._state, self._pod, info) for info in table.node_infos]
        raw = integers(each.name, scores, len(table))
        if each.normalize is None:
            check_range(each.name, raw)
            return raw * each.weight
        if not each.normalizes_by_scores_alone or raw.min() != raw.max():
            raise _NotPlannedError  # the scores of a node depend on which others are feasible
        normalized = each.normalize(self._state, self._pod, self._nodes, raw.copy())
        check_range(each.name, raw if normalized is None else integers(each.name, normalized, len(table)))
        return 0


@lru_cache(maxsize=4)
def _zeros(count: int) -> FloatArray:
    zeros = np.zeros(count)
    zeros.setflags(write=False)
    return zeros


class _NotPlannedError(Exception):
    """A hook answers what a plan can't hold."""


def _promises(plugin: AnyPlugin) -> bool:
    """Whether the plugin's `plan_part` was written for its hooks: a subclass that overrides one has to override it."""
    kinds = type(plugin).__mro__
    owner = next(index for index, kind in enumerate(kinds) if "plan_part" in vars(kind))
    return kinds[owner] is not Plugin and not any(
        hook in vars(kind) for kind in kinds[:owner] for hook in _PLANNED_HOOKS
    )


def _planned_hooks(plugin: AnyPlugin) -> set[str]:
    return {hook for hook in hooks_of(type(plugin)) if hook in _PLANNED_HOOKS}


@cache
def _compiled_pass() -> Pass | None:
    try:
        from kschedfw.framework.runtime._one_pass import (
            one_pass,  # Numba takes a while to load, and may be missing
        )
    except ImportError:
        return None
    return one_pass
