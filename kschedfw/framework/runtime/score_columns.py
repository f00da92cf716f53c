"""The raw scores of many nodes: by batch forms, one by one, and from what is remembered."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from typing import Final

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.metrics import Operation
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE
from kschedfw.framework.runtime.columns import UNKNOWN_SCORE, Column, Normalized, SummedScores
from kschedfw.framework.runtime.filter_columns import FEW_ROWS
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.runtime.memo import Answers, Cycle
from kschedfw.framework.runtime.memo_report import PluginMemo
from kschedfw.framework.runtime.scores import Totals
from kschedfw.framework.status import PluginFailure, Status, text_of

SCORING: Final = "running Score plugins"
NORMALIZING: Final = "running Normalize on Score plugins"
WEIGHING: Final = "applying score defaultWeights on Score plugins"

_RANGE: Final = range(MIN_NODE_SCORE, MAX_NODE_SCORE + 1)
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


@attrs.frozen(eq=False)
class ScorePlugin:
    """A plugin that scores: its hooks, the weight that the profile gives it, and how often it is asked."""

    plugin: AnyPlugin
    name: str
    hook: Hook
    batch: Hook | None
    normalize: Hook | None
    weight: int
    counts: PluginMemo

    def ask(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """The raw score of a node.

        Raises:
            ScoreError: the plugin failed, or gave something else than an int64.
        """
        self.counts.rows_asked += 1
        try:
            score = self.hook(state, pod, node_info)
        except HOOK_FAILURES as error:
            raise ScoreError(self.name, error) from error
        if isinstance(score, np.integer):
            score = int(score)
        if type(score) is int:
            if _MIN_INT64 <= score <= _MAX_INT64:
                return score
            raise ScoreError(self.name, PluginFailure(f"score must fit int64, and {score} doesn't"))
        if isinstance(score, Status):
            raise ScoreError(self.name, score.as_error())
        raise ScoreError(self.name, PluginFailure(f"score must return an int, not {score!r}"))

    def weighted(self, score: int) -> int:
        """Weight × score.

        Raises:
            ScoreError: the score isn't in 0–100.
        """
        if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
            raise out_of_range(self.name, score)
        return self.weight * score


class ScoreError(Exception):
    """A score plugin failed, in a step of scoring (`doing`); the framework makes a status of it."""

    def __init__(self, plugin: str, cause: BaseException, doing: str = SCORING, text: str = "") -> None:
        super().__init__(plugin, cause)
        self.plugin = plugin
        self.cause = cause
        text = text or f'plugin "{plugin}" failed with: {text_of(cause)}'
        self.text = f"{doing}: {text}"

    @property
    def status(self) -> Status:
        failure = PluginFailure(self.text)
        failure.__cause__ = self.cause
        return Status.from_error(failure).with_plugin(self.plugin)


class ScoreColumns:
    """Asks score plugins about many nodes at once; `batch` False uses no batch forms."""

    def __init__(self, parallelizer: Parallelizer, meter: Meter | None, *, batch: bool) -> None:
        self._parallelizer = parallelizer
        self._meter = meter
        self._batch = batch

    def raw(self, each: ScorePlugin, nodes: Sequence[NodeInfo], cycle: Cycle) -> IntArray:
        """One plugin's scores of the nodes, shape (k,). The array may be changed.

        Raises:
            ScoreError: the plugin failed.
        """
        if not isinstance(nodes, NodeSelection):
            return self._one_by_one(each, nodes, cycle)
        # Not `cycle.answers`: what looks at the whole cluster may look at which nodes are feasible, too.
        answers = cycle.pods.answers.get(each.name)
        if answers is None:
            return self._fresh(each, nodes, cycle)
        return self._remembered(each, scores_of(answers, each, nodes.table), nodes, cycle)

    def summed(
        self,
        local: tuple[ScorePlugin, ...],
        nodes: NodeSelection,
        cycle: Cycle,
        normalized: tuple[Normalized, ...],
    ) -> Totals:
        """Σ weight × score of plugins whose scores can be kept, for a selection that comes again and again.

        `local` need no normalising; what is `normalized` already is counted in.

        Raises:
            ScoreError: a plugin failed.
        """
        table, rows = nodes.table, nodes.rows
        summed = _sums((local, len(normalized)), local, table, cycle)
        summed.count_in(normalized)
        changed = summed.stale(table) if summed.rows is rows else None
        summed.rows = None  # until all are there again
        if changed is None or len(changed) > FEW_ROWS:
            summed.follow(table)
            summed.restrict_to(nodes)
            self._complete(local, summed, summed.missing(rows), nodes, cycle)
        elif changed:
            for row in changed:
                if summed.values[row] != UNKNOWN_SCORE:  # the node isn't among these
                    summed.put(row, self._total_of_one(local, summed, table, row, cycle))
            summed.note(table)
        summed.rows = rows
        return summed.totals(nodes)

    def summed_once(self, local: tuple[ScorePlugin, ...], nodes: NodeSelection, cycle: Cycle) -> IntArray:
        """The same for any nodes, and of `local` plugins alone. The array may be changed.

        Raises:
            ScoreError: a plugin failed.
        """
        rows = nodes.rows
        summed = _sums(local, local, nodes.table, cycle)
        summed.follow(nodes.table)
        totals: IntArray = summed.values.take(rows)
        if _any_unknown(totals):
            unknown = (totals == UNKNOWN_SCORE).nonzero()[0]
            missing = rows.take(unknown)
            self._complete(local, summed, missing, nodes, cycle)
            totals[unknown] = summed.values.take(missing)
        return totals

    def _complete(
        self,
        local: tuple[ScorePlugin, ...],
        summed: SummedScores,
        missing: IntArray,
        nodes: NodeSelection,
        cycle: Cycle,
    ) -> None:
        """Fill in the rows that have no sum."""
        table = nodes.table
        if len(missing) > FEW_ROWS:
            totals = self._weighted(local, NodeSelection(table, missing), cycle)
            for each in summed.normalized:
                totals += each.by_row.take(missing)
            summed.values[missing] = totals
        else:
            for row in missing.tolist():
                summed.values[row] = self._total_of_one(local, summed, table, row, cycle)

    def _total_of_one(
        self,
        local: tuple[ScorePlugin, ...],
        summed: SummedScores,
        table: NodeTable,
        row: int,
        cycle: Cycle,
    ) -> int:
        """The sum for a row that has changed, mostly because a pod was placed there."""
        total = 0
        for each in local:
            answers = cycle.pods.answers[each.name]
            column = answers.scores
            if each.plugin.reads is not Reads.NODE or column is None or not column.only_pods_changed(table):
                column = scores_of(answers, each, table)
            score = int(column.values[row])
            if score == UNKNOWN_SCORE:
                score = column.values[row] = each.ask(cycle.state, cycle.pod, table.node_infos[row])
            total += each.weighted(score)
        for other in summed.normalized:
            total += int(other.by_row[row])
        return total

    def _weighted(self, local: tuple[ScorePlugin, ...], nodes: NodeSelection, cycle: Cycle) -> IntArray:
        total = np.zeros(len(nodes), dtype=np.int64)
        for each in local:
            column = scores_of(cycle.pods.answers[each.name], each, nodes.table)
            scores = self._remembered(each, column, nodes, cycle)
            check_range(each.name, scores)
            total += each.weight * scores
        return total

    def _remembered(self, each: ScorePlugin, column: Column, nodes: NodeSelection, cycle: Cycle) -> IntArray:
        scores: IntArray = column.values.take(nodes.rows)
        if _any_unknown(scores):
            unknown = scores == UNKNOWN_SCORE
            missing = NodeSelection(nodes.table, nodes.rows[unknown])
            few = len(missing) <= FEW_ROWS and len(missing) < len(nodes)
            ask = self._one_by_one if few else self._fresh
            scores[unknown] = column.values[missing.rows] = ask(each, missing, cycle)
        return scores

    def _fresh(self, each: ScorePlugin, nodes: NodeSelection, cycle: Cycle) -> IntArray:
        if self._batch and each.batch is not None:
            try:
                answer = each.batch(cycle.state, cycle.pod, nodes.table, nodes.rows)
            except HOOK_FAILURES as error:
                raise ScoreError(each.name, error) from error
            if answer is not None:
                each.counts.rows_asked += len(nodes)
                # Normalising may change it in place, and it may be the plugin's own.
                return integers(each.name, answer, len(nodes)).copy()
        return self._one_by_one(each, nodes, cycle)

    def _one_by_one(self, each: ScorePlugin, nodes: Sequence[NodeInfo], cycle: Cycle) -> IntArray:
        state, pod, infos = cycle.state, cycle.pod, list(nodes)
        meter, parallelizer = self._meter, self._parallelizer
        working = nullcontext() if meter is None else meter.working(Operation.SCORE, parallelizer, len(infos))
        with working:
            scores = parallelizer.map(len(infos), lambda index: each.ask(state, pod, infos[index]))
        return np.array(scores, dtype=np.int64)


def _any_unknown(scores: IntArray) -> bool:
    """Whether any is `UNKNOWN_SCORE`, the least number there is."""
    return bool(len(scores)) and int(scores[scores.argmin()]) == UNKNOWN_SCORE


def _sums(key: Hashable, local: tuple[ScorePlugin, ...], table: NodeTable, cycle: Cycle) -> SummedScores:
    """Where sums of these plugins' scores are kept."""
    summed = cycle.pods.summed.get(key)
    if summed is None:
        reads = Reads.PODS if any(each.plugin.reads is Reads.PODS for each in local) else Reads.NODE
        summed = cycle.pods.summed[key] = SummedScores(table, reads)
    return summed


def scores_of(answers: Answers, each: ScorePlugin, table: NodeTable) -> Column:
    """The plugin's raw scores, brought up to date."""
    column = answers.scores
    if column is None:
        assert each.plugin.reads is not None
        column = answers.scores = Column(table, each.plugin.reads, np.int64, UNKNOWN_SCORE)
    column.follow(table)
    return column


def integers(name: str, answer: object, count: int, doing: str = SCORING) -> IntArray:
    """What a plugin returned for `count` nodes, as int64.

    Raises:
        ScoreError: it is anything else.
    """
    expected = f"scores must be int64 of shape ({count},), not"
    try:
        array = np.asarray(answer)
    except ValueError:
        raise ScoreError(name, PluginFailure(f"{expected} {answer!r}"), doing) from None
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64) or array.shape != (count,):
        raise ScoreError(name, PluginFailure(f"{expected} {array.dtype} of shape {array.shape}"), doing)
    return array.astype(np.int64, copy=False)


def check_range(name: str, scores: IntArray) -> None:
    """Raises ScoreError unless all scores are 0–100."""
    # As an unsigned number, a negative one is too large.
    if len(scores) and int(scores[scores.view(np.uint64).argmax()]) not in _RANGE:
        outside = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)]
        raise out_of_range(name, int(outside[0]))


def out_of_range(name: str, score: int) -> ScoreError:
    """What to raise where a plugin's normalised score isn't in 0–100."""
    text = (
        f'plugin "{name}" returns an invalid score {score}, it should in the range of '
        f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
    return ScoreError(name, PluginFailure(text), WEIGHING, text)
