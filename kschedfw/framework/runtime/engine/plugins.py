"""A filter plugin and a score plugin: their calls, the count of these, and the errors of their answers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, cast

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import PLANNED_HOOKS, AnyPlugin, Plugin, keeps_promise
from kschedfw.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE, Verdicts
from kschedfw.framework.runtime.engine.status_codes import are_same, refusal
from kschedfw.framework.runtime.hook_answers import as_integer, as_scores, as_status, as_verdicts
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.status import PluginFailure, Status, text_of

SCORING: Final = "running Score plugins"
NORMALIZING: Final = "running Normalize on Score plugins"
WEIGHING: Final = "applying score defaultWeights on Score plugins"

_log = logging.getLogger(__name__)

_SUCCESS = Status.success()
_RANGE: Final = range(MIN_NODE_SCORE, MAX_NODE_SCORE + 1)
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


@define
class PluginMemo:
    """Counts of the calls of a plugin's filter and score.

    `rows_asked` counts the nodes for which either form of the hooks was called (roughly, where several threads
    ask). `classes_signed` counts kinds of pods for which answers were kept, `classes_unsigned` those that the
    plugin gave no signature. `objection` is the reason why no answers can be kept; empty if they can.
    """

    rows_asked: int = 0
    classes_signed: int = 0
    classes_unsigned: int = 0
    objection: str = ""

    @classmethod
    def of(cls, plugin: AnyPlugin) -> PluginMemo:
        missing = []
        if plugin.reads is None:
            missing.append("reads")
        if type(plugin).sign is Plugin.sign:
            missing.append("sign")
        return cls(objection=f"it doesn't declare {' and '.join(missing)}" if missing else "")

    def signing_failed(self, plugin: AnyPlugin, error: BaseException) -> None:
        """Record that `sign` failed, so that the plugin's answers can't be kept. Only the first failure is logged."""
        if not self.objection:
            self.objection = f"sign failed: {type(error).__name__}: {error}"
            _log.warning("plugin %s: %s; its answers aren't kept", plugin.name, self.objection)


@frozen(eq=False)
class FilterPlugin:
    """A filter plugin: its hook, its batch form if it has one, and a count of calls."""

    plugin: AnyPlugin
    name: str
    hook: Hook
    batch: Hook | None
    counts: PluginMemo
    names_rule: bool = attrs.field(init=False)
    """True if the plugin's `amounts_rule` was written for its hooks."""

    @names_rule.default
    def _names_rule(self) -> bool:
        return keeps_promise(self.plugin, "amounts_rule", PLANNED_HOOKS)

    def ask_together(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: IntArray, known: Sequence[Status] = ()
    ) -> Verdicts | None:
        """Return the verdicts of the batch form on these nodes; None where there is no such form.

        The verdicts aren't checked again if their statuses are `known` ones.

        Raises:
            NotTogetherError: the form fails.
        """
        if self.batch is None:
            return None
        try:
            answer = self.batch(state, pod, table, rows)
            if answer is None:
                return None
            # Most plugins have the same statuses every time, so that verdicts are checked once.
            is_known = known and type(answer) is Verdicts and are_same(answer.statuses, known)
            if not is_known or answer.codes.shape != rows.shape:
                as_verdicts("filter_batch", answer, len(rows))
        except HOOK_FAILURES as error:
            raise NotTogetherError(self.name, error) from error
        self.counts.rows_asked += len(rows)
        return cast("Verdicts", answer)

    def ask(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return success, a refusal, or an ERROR; the last two name the plugin."""
        self.counts.rows_asked += 1
        try:
            answer = self.hook(state, pod, node_info)
            # The usual answer takes no further call: this runs for every node.
            if answer is None:
                return _SUCCESS
            status = as_status("filter", answer)
        except HOOK_FAILURES as error:
            status = Status.from_error(error)
        return status if status.is_success else refusal(status, self.name)


@frozen(eq=False)
class ScorePlugin:
    """A score plugin: its hooks, its weight in the profile, and a count of calls."""

    plugin: AnyPlugin
    name: str
    hook: Hook
    batch: Hook | None
    normalize: Hook | None
    weight: int
    counts: PluginMemo

    def ask(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the raw score of a node.

        Raises:
            ScoreError: the plugin failed, or its answer is no int64.
        """
        self.counts.rows_asked += 1
        try:
            score = self.hook(state, pod, node_info)
            # As in `FilterPlugin.ask`.
            if type(score) is int and _MIN_INT64 <= score <= _MAX_INT64:
                return score
            return as_integer("score", score)
        except HOOK_FAILURES as error:
            raise ScoreError(self.name, error) from error

    def ask_together(self, state: CycleState, pod: Pod, nodes: NodeSelection) -> IntArray | None:
        """Return the raw scores by the batch form, shape (k,); None where there is no such form.

        Raises:
            ScoreError: the plugin failed, or its answer is no int64 array of this shape.
        """
        if self.batch is None:
            return None
        rows = nodes.rows
        try:
            answer = self.batch(state, pod, nodes.table, rows)
            if answer is None:
                return None
            self.counts.rows_asked += len(rows)
            return as_scores("score_batch", answer, len(rows))
        except HOOK_FAILURES as error:
            raise ScoreError(self.name, error) from error

    def normalized(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: IntArray
    ) -> IntArray:
        """Return the scores in 0–100, normalised by the plugin's hook if it has one; `scores` may be changed.

        Raises:
            ScoreError: the plugin failed, or its answer isn't such an array.
        """
        if self.normalize is None:
            return scores
        try:
            answer = self.normalize(state, pod, nodes, scores)
            if type(answer) is Status:
                answer = None if answer.is_success else as_integer("normalize_score", answer)
            # Those that were changed in place, too: shape and type of an array can be changed as well.
            return as_scores("normalize_score", scores if answer is None else answer, len(nodes))
        except HOOK_FAILURES as error:
            raise ScoreError(self.name, error, NORMALIZING) from error

    def weighted(self, score: int) -> int:
        """Return weight × score.

        Raises:
            ScoreError: the score isn't in 0–100.
        """
        if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
            raise out_of_range(self.name, score)
        return self.weight * score


class NotTogetherError(Exception):
    """The exception for an answer that can't be combined for all nodes. Nodes have to be asked about in order.

    If a batch form failed, `plugin` names its plugin, and `failure` is the exception.
    """

    def __init__(self, plugin: str = "", failure: BaseException | None = None) -> None:
        super().__init__(plugin, failure)
        self.plugin = plugin
        self.failure = failure

    @property
    def failures(self) -> Mapping[str, BaseException]:
        return {} if self.failure is None else {self.plugin: self.failure}


class ScoreError(Exception):
    """The failure of a score plugin in a step of scoring (`doing`); the framework makes a status of it."""

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


def check_range(name: str, scores: IntArray) -> None:
    """Raise ScoreError unless all scores are in 0–100."""
    # As an unsigned number, a negative one is large: one argmax checks both bounds.
    if len(scores) and int(scores[scores.view(np.uint64).argmax()]) not in _RANGE:
        outside = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)]
        raise out_of_range(name, int(outside[0]))


def out_of_range(name: str, score: int) -> ScoreError:
    """Return the error of a plugin whose normalised score isn't in 0–100."""
    text = (
        f'plugin "{name}" returns an invalid score {score}, it should in the range of '
        f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
    return ScoreError(name, PluginFailure(text), WEIGHING, text)
