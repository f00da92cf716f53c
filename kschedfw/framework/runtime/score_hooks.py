"""Runs the score hooks of a profile over the feasible nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES, ProfileError
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import MAX_NODE_SCORE
from kschedfw.framework.runtime.columns import Normalized
from kschedfw.framework.runtime.filter_hooks import checked
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.runtime.memo import Cycle
from kschedfw.framework.runtime.memo_report import MemoCounters
from kschedfw.framework.runtime.score_columns import (
    NORMALIZING,
    ScoreColumns,
    ScoreError,
    ScorePlugin,
    check_range,
    integers,
    scores_of,
)
from kschedfw.framework.runtime.scores import NodeScores, PluginScores, Totals
from kschedfw.framework.status import Status

_SUCCESS, _SKIP = Status.success(), Status.skip()

_Ways: TypeAlias = tuple[tuple[ScorePlugin, ...], tuple[ScorePlugin, ...], tuple[ScorePlugin, ...]]


class ScoreHooks:
    """pre_score, score, normalize_score, range check and weights."""

    def __init__(
        self,
        hooks: HookTable,
        plugins: Mapping[str, AnyPlugin],
        profile: Profile,
        columns: ScoreColumns,
        counters: MemoCounters,
    ) -> None:
        batch, normalize = dict(hooks["score_batch"]), dict(hooks["normalize_score"])
        self._pre_score = hooks["pre_score"]
        self._scores = tuple(
            ScorePlugin(
                plugins[name],
                name,
                hook,
                batch.get(name),
                normalize.get(name),
                profile.weight(name),
                counters.of(plugins[name]),
            )
            for name, hook in hooks["score"]
        )
        if sum(each.weight for each in self._scores) * MAX_NODE_SCORE > np.iinfo(np.int64).max:
            raise ProfileError(
                f"profile {profile.scheduler_name!r}: total score of Score plugins could overflow"
            )
        self._columns = columns
        self._active: dict[frozenset[str], tuple[ScorePlugin, ...]] = {}

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        skipped: set[str] = set()
        try:
            for name, hook in self._pre_score:
                try:
                    answer = hook(state, pod, nodes)
                    if answer is None:
                        continue
                    if answer is _SKIP:
                        skipped.add(name)
                        continue
                    status = checked(answer, name, "pre_score")
                except HOOK_FAILURES as error:
                    status = Status.from_error(error)
                if status.is_skip:
                    skipped.add(name)
                elif not status.is_success:
                    return status.prefixed(f'running PreScore plugin "{name}"', name)
            return _SUCCESS
        finally:
            state.skip_score_plugins = frozenset(skipped)

    def score(self, nodes: Sequence[NodeInfo], cycle: Cycle) -> tuple[NodeScores | None, Status]:
        """Every plugin's raw and normalised scores."""
        active = self._active_in(cycle.state)
        try:
            raw = {each.name: self._columns.raw(each, nodes, cycle) for each in active}
            normalized = {
                each.name: _normalized(each, nodes, raw[each.name].copy(), cycle) for each in active
            }
            for name, scores in normalized.items():
                check_range(name, scores)
        except ScoreError as error:
            return None, error.status
        by_plugin = {
            each.name: PluginScores(each.weight, raw[each.name], normalized[each.name]) for each in active
        }
        names = nodes.names if isinstance(nodes, NodeSelection) else tuple(info.name for info in nodes)
        return NodeScores(names, by_plugin), _SUCCESS

    def totals(self, nodes: Sequence[NodeInfo], cycle: Cycle) -> tuple[Totals | None, Status]:
        """The same summed up, without what the sums are made of."""
        if not isinstance(nodes, NodeSelection):
            scores, status = self.score(nodes, cycle)
            return None if scores is None else Totals(scores.totals), status
        local, kept, others = self._by_way(cycle)
        try:
            if nodes.recurs and len(nodes.rows) and (local or kept):
                normalized = tuple([self._kept(each, nodes, cycle) for each in kept])
                totals = self._columns.summed(local, nodes, cycle, normalized)
                if not others:
                    return totals, _SUCCESS
                total = totals.values
            else:
                total = (
                    self._columns.summed_once(local, nodes, cycle)
                    if local
                    else np.zeros(len(nodes), dtype=np.int64)
                )
                for each in kept:
                    total += self._kept(each, nodes, cycle).weighted
            for each in others:
                total = total + self._weighted(each, nodes, cycle)
        except ScoreError as error:
            # Where several plugins fail, it is `score` that says which of them is named.
            _, status = self.score(nodes, cycle)
            return None, error.status if status.is_success else status
        return Totals(total), _SUCCESS

    def _by_way(self, cycle: Cycle) -> _Ways:
        """The plugins whose scores can be kept: those that need no normalising, and those that do; and the others."""
        active = self._active_in(cycle.state)
        known: _Ways | None = cycle.pods.ways.get(active)
        if known is not None:
            return known
        answers = cycle.pods.answers
        local: list[ScorePlugin] = []
        kept: list[ScorePlugin] = []
        others: list[ScorePlugin] = []
        for each in active:
            if each.name not in answers:
                others.append(each)
            else:
                (local if each.normalize is None else kept).append(each)
        ways = cycle.pods.ways[active] = tuple(local), tuple(kept), tuple(others)
        return ways

    def _kept(self, each: ScorePlugin, nodes: NodeSelection, cycle: Cycle) -> Normalized:
        answers = cycle.pods.answers[each.name]
        changes = scores_of(answers, each, nodes.table).changes
        known = answers.normalized
        if known is None or not known.holds_for(nodes, changes):
            weighted = self._weighted(each, nodes, cycle)
            known = answers.normalized = Normalized(nodes, changes, weighted)
        return known

    def _weighted(self, each: ScorePlugin, nodes: NodeSelection, cycle: Cycle) -> IntArray:
        raw = self._columns.raw(each, nodes, cycle)
        normalized = _normalized(each, nodes, raw, cycle)
        check_range(each.name, normalized)
        weighted: IntArray = normalized if each.weight == 1 else normalized * each.weight
        return weighted

    def _active_in(self, state: CycleState) -> tuple[ScorePlugin, ...]:
        skipped = state.skip_score_plugins
        active = self._active.get(skipped)
        if active is None:
            active = tuple(each for each in self._scores if each.name not in skipped)
            self._active[skipped] = active
        return active


def _normalized(each: ScorePlugin, nodes: Sequence[NodeInfo], scores: IntArray, cycle: Cycle) -> IntArray:
    """The scores brought into 0–100 by the plugin's own hook, if it has one; `scores` may be changed."""
    if each.normalize is None:
        return scores
    try:
        answer = each.normalize(cycle.state, cycle.pod, nodes, scores)
    except HOOK_FAILURES as error:
        raise ScoreError(each.name, error, NORMALIZING) from error
    if answer is None:
        return scores
    if isinstance(answer, Status):
        if not answer.is_success:
            raise ScoreError(each.name, answer.as_error(), NORMALIZING)
        return scores
    return integers(each.name, answer, len(nodes), NORMALIZING)
