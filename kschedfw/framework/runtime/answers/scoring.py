"""Scoring of the feasible nodes, from raw scores to weighted totals (kube-scheduler `prioritizeNodes`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.metrics import Operation
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import MAX_NODE_SCORE
from kschedfw.framework.runtime.answers.columns import FEW_ROWS, UNKNOWN_SCORE, Column
from kschedfw.framework.runtime.answers.plugins import (
    PluginMemo,
    ScoreError,
    ScorePlugin,
    check_range,
)
from kschedfw.framework.runtime.answers.pod_class import PodClass, ScorePlan
from kschedfw.framework.runtime.answers.totals import NodeScores, Normalized, PluginScores, Totals
from kschedfw.framework.runtime.hooks import HookTable, is_per_signature
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.status import Status

_SUCCESS = Status.success()


class Scoring:
    """The score plugins of a profile. With `batch` False, no batch forms are called."""

    def __init__(
        self,
        hooks: HookTable,
        plugins: Mapping[str, AnyPlugin],
        profile: Profile,
        counts: Mapping[str, PluginMemo],
        parallelizer: Parallelizer,
        meter: Meter | None,
        *,
        batch: bool,
    ) -> None:
        batches, normalize = dict(hooks["score_batch"]), dict(hooks["normalize_score"])
        self.plugins = tuple(
            ScorePlugin(
                plugins[name],
                name,
                hook,
                batches.get(name) if batch else None,
                normalize.get(name),
                is_per_signature(plugins[name], "normalize_score"),
                profile.weight(name),
                counts[name],
            )
            for name, hook in hooks["score"]
        )
        # kube-scheduler checks this when a profile is made, too: later no sum of weighted scores is checked again.
        if sum(each.weight for each in self.plugins) * MAX_NODE_SCORE > np.iinfo(np.int64).max:
            raise ProfileError(
                f"profile {profile.scheduler_name!r}: total score of Score plugins could overflow"
            )
        self._parallelizer = parallelizer
        self._meter = meter

    def scores(
        self, state: CycleState, pod: Pod, pods: PodClass, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        """Return every plugin's raw and normalised scores; None with an ERROR if a plugin fails."""
        asking = _Asking(self, state, pod, pods)
        active = [each for each in self.plugins if each.name not in state.skip_score_plugins]
        try:
            # Copies, since kept scores are the memo's columns, and `normalize_score` may change its argument.
            raw = {each.name: asking.raw(each, nodes).copy() for each in active}
            normalized = {
                each.name: each.normalized(state, pod, nodes, raw[each.name].copy()) for each in active
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

    def totals(
        self, state: CycleState, pod: Pod, pods: PodClass, nodes: Sequence[NodeInfo]
    ) -> tuple[Totals | None, Status]:
        """Return only the totals of `scores`."""
        if not isinstance(nodes, NodeSelection):
            scores, status = self.scores(state, pod, pods, nodes)
            return None if scores is None else Totals(scores.totals), status
        plan = pods.score_plan(self.plugins, state.skip_score_plugins, nodes.table)
        asking = _Asking(self, state, pod, pods)
        try:
            if (plan.local or plan.normalized) and plan.standing.come_again(nodes):
                totals = asking.standing_totals(plan, nodes)
                if not plan.rest:
                    return totals, _SUCCESS
                total = totals.values
            else:
                total = asking.totals_once(plan, nodes)
            for each in plan.rest:
                # Not `+=`: the array may be a column that is kept.
                total = total + asking.weighted(each, nodes)
        except ScoreError as error:
            # Where several plugins fail, the first of them in the order of `scores` is named.
            _, status = self.scores(state, pod, pods, nodes)
            return None, error.status if status.is_success else status
        return Totals(total), _SUCCESS

    def one_by_one(
        self, each: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> IntArray:
        """Return the scores of the scalar form, shape (k,)."""
        infos = list(nodes)
        meter, parallelizer = self._meter, self._parallelizer
        working = nullcontext() if meter is None else meter.working(Operation.SCORE, parallelizer, len(infos))
        with working:
            scores = parallelizer.map(len(infos), lambda index: each.ask(state, pod, infos[index]))
        return np.array(scores, dtype=np.int64)


class _Asking:
    """Calls of the score plugins for one pod in one cycle. All methods raise ScoreError where a plugin fails."""

    __slots__ = ("_pod", "_pods", "_scoring", "_state")

    def __init__(self, scoring: Scoring, state: CycleState, pod: Pod, pods: PodClass) -> None:
        self._scoring = scoring
        self._state = state
        self._pod = pod
        self._pods = pods

    def raw(self, each: ScorePlugin, nodes: Sequence[NodeInfo]) -> IntArray:
        """Return one plugin's scores of the nodes, shape (k,). Not to be changed."""
        if not isinstance(nodes, NodeSelection):
            return self._scoring.one_by_one(each, self._state, self._pod, nodes)
        # A plugin that reads the whole cluster may also look at which nodes are feasible: nothing is kept of it.
        answers = self._pods.answers.get(each.name)
        return (
            self._fresh(each, nodes)
            if answers is None
            else self._kept(each, answers.scores(nodes.table), nodes)
        )

    def weighted(self, each: ScorePlugin, nodes: NodeSelection) -> IntArray:
        """Return weight × normalised score, shape (k,). Not to be changed."""
        scores = self.raw(each, nodes)
        if each.normalize is not None:
            scores = each.normalized(self._state, self._pod, nodes, scores.copy())
        check_range(each.name, scores)
        return scores if each.weight == 1 else scores * each.weight

    def totals_once(self, plan: ScorePlan, nodes: NodeSelection) -> IntArray:
        """Return the totals of the plan's kept plugins for any selection, shape (k,). Not to be changed."""
        total: IntArray | None = None
        if plan.local:
            total = self._sums(plan, nodes)
        same_for_all = 0
        for each in plan.normalized:
            uniform = self._uniform(each, nodes)
            if uniform is not None:
                same_for_all += uniform
                continue
            weighted = self.weighted(each, nodes)
            total = weighted if total is None else total + weighted
        if total is None:
            return np.full(len(nodes), same_for_all, dtype=np.int64)
        return total + same_for_all if same_for_all else total

    def standing_totals(self, plan: ScorePlan, nodes: NodeSelection) -> Totals:
        """Return the totals of the plan's kept plugins for the selection that was scored last."""
        table, standing = nodes.table, plan.standing
        # A score that follows pods and is normalised may change on every node when one gets a pod.
        changed = None if plan.normalizes_pods else standing.rows_with_new_pods(table)
        if changed is None:
            self._fill_in(plan, nodes)
            return standing.totals()
        for row in changed:
            if standing.values[row] != UNKNOWN_SCORE:  # else the node isn't selected
                info, total = table.node_infos[row], int(standing.fixed[row])
                for each in plan.following_pods:
                    total += each.weighted(each.ask(self._state, self._pod, info))
                standing.put(row, total)
        standing.mark_current(table)
        return standing.totals()

    def _fill_in(self, plan: ScorePlan, nodes: NodeSelection) -> None:
        """Compute the totals of all nodes of the selection that have no valid one."""
        table, standing = nodes.table, plan.standing
        standing.add_normalized(tuple([self._normalized(each, nodes) for each in plan.normalized]))
        # If a plugin raises below, the totals stay marked as incomplete.
        standing.is_filled = False  # until all totals are there again
        missing = standing.restrict(table)
        if len(missing):
            asked = NodeSelection(table, missing)
            fixed = [each for each in plan.local if each not in plan.following_pods]
            following_pods = self._local_totals(plan.following_pods, asked)
            totals = self._local_totals(fixed, asked) + following_pods + standing.normalized_at(missing)
            standing.fill(missing, totals, following_pods)
        standing.is_filled = True

    def _sums(self, plan: ScorePlan, nodes: NodeSelection) -> IntArray:
        """Return Σ weight × score of the plugins that need no normalising. Only unknown rows are asked about."""
        table, sums = nodes.table, plan.sums
        sums.follow(table)
        total: IntArray = table.take(sums.values, nodes.rows)
        if _has_unknown(total):
            missing = nodes.rows[total == UNKNOWN_SCORE]
            if len(missing) <= FEW_ROWS:
                for row in missing.tolist():
                    sums.values[row] = self._local_total(plan.local, table, row)
            else:
                sums.values[missing] = self._local_totals(plan.local, NodeSelection(table, missing))
            total = table.take(sums.values, nodes.rows)
        return total

    def _local_totals(self, local: Sequence[ScorePlugin], nodes: NodeSelection) -> IntArray:
        total = np.zeros(len(nodes), dtype=np.int64)
        for each in local:
            scores = self._kept(each, self._pods.answers[each.name].scores(nodes.table), nodes)
            check_range(each.name, scores)
            total += each.weight * scores
        return total

    def _local_total(self, local: Sequence[ScorePlugin], table: NodeTable, row: int) -> int:
        """Return the total of one row that has changed, mostly because a pod was placed there."""
        total = 0
        for each in local:
            values = self._pods.answers[each.name].scores(table).values
            score = int(values[row])
            if score == UNKNOWN_SCORE:
                score = values[row] = each.ask(self._state, self._pod, table.node_infos[row])
            total += each.weighted(score)
        return total

    def _kept(self, each: ScorePlugin, column: Column, nodes: NodeSelection) -> IntArray:
        """Return the kept scores. Ask about nodes without one, and keep the answers."""
        scores: IntArray = nodes.table.take(column.values, nodes.rows)
        if _has_unknown(scores):
            unknown = scores == UNKNOWN_SCORE
            missing = NodeSelection(nodes.table, nodes.rows[unknown])
            if len(missing) <= FEW_ROWS and len(missing) < len(nodes):
                fresh = self._scoring.one_by_one(each, self._state, self._pod, missing)
            else:
                fresh = self._fresh(each, missing)
            # `take` may have lent the column itself.
            scores = scores.copy()
            scores[unknown] = column.values[missing.rows] = fresh
        return scores

    def _fresh(self, each: ScorePlugin, nodes: NodeSelection) -> IntArray:
        """Return the answers of the batch form, or of the scalar form where there is no batch form."""
        together = each.ask_together(self._state, self._pod, nodes)
        if together is not None:
            return together
        return self._scoring.one_by_one(each, self._state, self._pod, nodes)

    def _normalized(self, each: ScorePlugin, nodes: NodeSelection) -> Normalized:
        """Return the plugin's weighted scores of this selection, computed again only if a raw score was forgotten."""
        answers = self._pods.answers[each.name]
        changes = answers.scores(nodes.table).changes
        known = answers.normalized
        if known is None or known.nodes is not nodes or known.changes != changes:
            known = answers.normalized = Normalized(nodes, changes, self.weighted(each, nodes))
        return known

    def _uniform(self, each: ScorePlugin, nodes: NodeSelection) -> int | None:
        """Return the weighted score of every node if all nodes of the table have the same raw score; else None.

        Only for plugins that promise that normalising depends on the raw scores alone.
        """
        if not each.normalizes_by_scores_alone or not len(nodes):
            return None
        answers = self._pods.answers[each.name]
        # All nodes of the table, not the selected ones alone: that takes no copy, and what holds for all
        # holds for any selection.
        raw = answers.scores(nodes.table).values
        lowest = int(raw[raw.argmin()])
        if lowest == UNKNOWN_SCORE or int(raw[raw.argmax()]) != lowest:
            return None
        weighted = answers.uniform.get(lowest)
        if weighted is None:
            scores = self.weighted(each, nodes)
            weighted = answers.uniform[lowest] = int(scores[0])
        return weighted


def _has_unknown(scores: IntArray) -> bool:
    """Return whether any of the scores is `UNKNOWN_SCORE`, the least number there is."""
    return bool(len(scores)) and int(scores[scores.argmin()]) == UNKNOWN_SCORE
