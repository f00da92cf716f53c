"""The steps of a profile: its plugins, each with its hooks up to score, and what it promises of their answers."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.learning.learned_plugin import LearnedPlugin
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import (
    IDLE,
    PLANNED_HOOKS,
    AmountsRule,
    AnyPlugin,
    DecidesByAmounts,
    Plugin,
    keeps_promise,
)
from kschedfw.framework.plugin_by_domain import AnyPluginByDomain
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import ByDomain, DomainScores, Verdicts
from kschedfw.framework.runtime.engine.errors import NORMALIZING, NotTogetherError, ScoreError
from kschedfw.framework.runtime.engine.passes import SmallCodes
from kschedfw.framework.runtime.hook_answers import as_integer, as_scores, as_status, as_verdicts
from kschedfw.framework.runtime.hooks import Hook, HookTable, asked_method
from kschedfw.framework.status import Status
from kschedfw.framework.status_codes import are_same, refusal

RefusalCodes: TypeAlias = Sequence[ByDomain | SmallCodes]
"""Refused nodes, by domain or by node: a node is refused where any of these refuses it."""

_MOST_OF_NODES: Final = 4096
"""The number of latest signatures remembered of a plugin whose answers depend on nodes alone."""
_MOST_OF_PODS: Final = 4
"""Of k kinds of pods in turn, k nodes have changed when a kind comes again. If many have, to ask about all of them by
the batch form is faster."""

_FILTERING: Final = ("pre_filter", "filter", "filter_batch")
_SCORING: Final = ("pre_score", "score", "score_batch", "normalize_score")
_SUCCESS: Final = Status.success()
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1

_log = logging.getLogger(__name__)


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
        signs = type(plugin).sign is not Plugin.sign
        if plugin.pure or (plugin.reads is not None and signs):
            return cls()
        if plugin.reads is None and not signs:
            return cls(objection="it isn't pure")
        return cls(objection=f"it isn't pure, and doesn't declare {'reads' if signs else 'sign'}")

    def signing_failed(self, plugin: AnyPlugin, error: BaseException) -> None:
        """Record that `sign` failed, so that the plugin's answers can't be kept. Only the first failure is logged."""
        if not self.objection:
            self.objection = f"sign failed: {type(error).__name__}: {error}"
            _log.warning("plugin %s: %s; its answers aren't kept", plugin.name, self.objection)


@define(eq=False)
class Step:
    """A plugin's place in plans.

    Its answers to a pod are kept where it gives the pod a signature, computed in the pass where it names a rule of
    amounts, and asked for otherwise.
    """

    plugin: AnyPlugin
    weight: int
    """The weight of its scores in the profile."""
    counts: PluginMemo
    learned: LearnedPlugin
    """The reads of the plugin's pure hooks."""
    rule: AmountsRule | None
    """The rule of amounts that its hooks follow; None, too, where the profile enables some of these hooks alone."""
    pre_filter: Hook | None = None
    filter: Hook | None = None
    filter_batch: Hook | None = None
    pre_score: Hook | None = None
    score: Hook | None = None
    score_batch: Hook | None = None
    normalize_score: Hook | None = None
    name: str = attrs.field(init=False)
    declares: bool = attrs.field(init=False)
    """True if the plugin says itself what it `reads`, and signs pods."""
    sign: Hook = attrs.field(init=False)
    """The plugin's own `sign`."""
    _latest: BoundedDict[Hashable, None] | None = attrs.field(default=None, init=False)
    """The latest signatures; None if answers to all signatures are kept."""
    _latest_of: Reads | None = attrs.field(default=None, init=False)
    _refuses_by_domain: bool = attrs.field(init=False)
    _scores_by_domain: bool = attrs.field(init=False)
    _checked: Sequence[Status] | None = attrs.field(default=None, init=False)
    """The statuses of the last verdicts, which were checked: each is a success or a refusal. None before the first."""
    _passing: npt.NDArray[np.bool_] | None = attrs.field(default=None, init=False)
    """A mask of the successes in `_checked`, if others than the first one are."""

    def __attrs_post_init__(self) -> None:
        plugin = self.plugin
        self.name, self.sign = plugin.name, asked_method(plugin, "sign")
        self.declares = plugin.reads is not None and type(plugin).sign is not Plugin.sign
        self._refuses_by_domain = keeps_promise(plugin, "domain_refusals", _FILTERING)
        self._scores_by_domain = keeps_promise(plugin, "domain_scores", _SCORING)

    @property
    def signs(self) -> bool:
        """True if pods may have signatures now. By what is learned, that changes with its revision."""
        return self.declares or self.learned.signs

    @property
    def is_learned(self) -> bool:
        """True if signatures are learned."""
        return not self.declares and self.learned.signs

    @property
    def reads(self) -> Reads:
        """The scope of what the plugin reads: the whole cluster where that isn't known."""
        if self.plugin.reads is None and self.learned.signs:
            return self.learned.reads
        return self.plugin.reads or Reads.CLUSTER

    @property
    def reads_nodes(self) -> bool:
        """True if answers depend on node objects alone."""
        return self.reads is Reads.NODE

    @property
    def may_be_idle(self) -> bool:
        """True if the profile has the plugin's pre_filter or lacks its filter: pods may sign as idle only then."""
        return self.filter is None or self.pre_filter is not None

    def sign_or_none(self, pod: Pod) -> Hashable | None:
        """Return the pod's signature by `sign`; None if there is none, or the plugin fails to make one."""
        try:
            signature: Hashable | None = self.sign(pod)
            # An unhashable signature can't be a key. It counts as a failure of the plugin, like an exception.
            hash(signature)
        except HOOK_FAILURES as error:
            self.counts.signing_failed(self.plugin, error)
            return None
        return signature

    def comes_again(self, signature: Hashable | None) -> bool:
        """Note a signature. Return whether its answers are to be kept, since it has come lately."""
        if signature is None or signature is IDLE:
            return True
        # Nothing tells of changes in the whole cluster that matter.
        reads = self.reads
        if reads is Reads.CLUSTER:
            return False
        # Asking a plugin without batch forms costs much more than keeping.
        if (self.filter and self.filter_batch is None) or (self.score and self.score_batch is None):
            return True
        if self._latest is None or self._latest_of is not reads:
            self._latest = BoundedDict(_MOST_OF_NODES if reads is Reads.NODE else _MOST_OF_PODS)
            self._latest_of = reads
        is_known = signature in self._latest
        self._latest[signature] = None
        if is_known:
            self._latest.move_to_end(signature)
        return is_known

    # The filter

    def ask_filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return success, a refusal, or an ERROR; the last two name the plugin."""
        assert self.filter is not None
        self.counts.rows_asked += 1
        try:
            answer = self.filter(state, pod, node_info)
            # The usual answer takes no further call: this runs for every node.
            if answer is None:
                return _SUCCESS
            status = as_status("filter", answer)
        except HOOK_FAILURES as error:
            status = Status.from_error(error)
        return status if status.is_success else refusal(status, self.name)

    def verdicts(self, state: CycleState, pod: Pod, table: NodeTable, rows: IntArray) -> Verdicts | None:
        """Return the verdicts of the batch form on these nodes, with code 0 where one passes; None without such a form.

        Raises:
            NotTogetherError: the form fails, or fails for one of the nodes.
        """
        if self.filter_batch is None:
            return None
        try:
            answer = self.filter_batch(state, pod, table, rows)
            if answer is None:
                return None
            # Identity: passing verdicts are made once for each number of rows, and need no check. Most plugins have the
            # same statuses every time, so that others are checked once.
            passes = answer is Verdicts.passing(len(rows))
            is_known = passes or (
                type(answer) is Verdicts
                and self._checked is not None
                and are_same(answer.statuses, self._checked)
            )
            if not is_known or answer.codes.shape != rows.shape:
                as_verdicts("filter_batch", answer, len(rows))
        except HOOK_FAILURES as error:
            raise NotTogetherError(self.name, error) from error
        self.counts.rows_asked += len(rows)
        if not is_known:
            if not all(status.is_success or status.is_rejected for status in answer.statuses):
                raise NotTogetherError
            self._checked = answer.statuses
            self._passing = None
            if any(status.is_success for status in answer.statuses[1:]):
                self._passing = np.array([status.is_success for status in answer.statuses])
        if self._passing is not None and not passes:
            # Another status of success than the first one lets a node pass, too.
            return Verdicts(np.where(self._passing[answer.codes], 0, answer.codes), answer.statuses)
        return cast("Verdicts", answer)

    def domain_refusals(self, state: CycleState, table: NodeTable) -> Sequence[ByDomain] | None:
        """Return the domains that the filter refuses; None where it must be asked about nodes."""
        if not self._refuses_by_domain:
            return None
        found = cast("AnyPluginByDomain", self.plugin).domain_refusals(state, table)
        if found is None:
            return None
        found.check(table)
        self.counts.rows_asked += len(table)
        return found.refused

    # The score

    def ask_score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the raw score of a node.

        Raises:
            ScoreError: the plugin failed, or its answer is no int64.
        """
        assert self.score is not None
        self.counts.rows_asked += 1
        try:
            score = self.score(state, pod, node_info)
            # The usual answer takes no further call, as in `ask_filter`.
            if type(score) is int and _MIN_INT64 <= score <= _MAX_INT64:
                return score
            return as_integer("score", score)
        except HOOK_FAILURES as error:
            raise ScoreError(self.name, error) from error

    def scores_on(self, state: CycleState, pod: Pod, nodes: NodeSelection) -> IntArray | None:
        """Return the raw scores by the batch form, shape (k,); None where there is no such form.

        Raises:
            ScoreError: the plugin failed, or its answer is no int64 array of this shape.
        """
        if self.score_batch is None:
            return None
        rows = nodes.rows
        try:
            answer = self.score_batch(state, pod, nodes.table, rows)
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
        if self.normalize_score is None:
            return scores
        try:
            answer = self.normalize_score(state, pod, nodes, scores)
            if type(answer) is Status:
                status = HOOKS["normalize_score"].explained(answer)
                answer = None if status.is_success else as_integer("normalize_score", status)
            # Scores that were changed in place are checked, too: a plugin may have changed the array's shape or type.
            return as_scores("normalize_score", scores if answer is None else answer, len(nodes))
        except HOOK_FAILURES as error:
            raise ScoreError(self.name, error, NORMALIZING) from error

    def domain_scores(self, state: CycleState, table: NodeTable) -> DomainScores | None:
        """Return the scores by domain; None where the hook must be asked about nodes."""
        if not self._scores_by_domain:
            return None
        found = cast("AnyPluginByDomain", self.plugin).domain_scores(state, table)
        if found is None:
            return None
        found.check(table)
        self.counts.rows_asked += len(table)
        return found.telling_apart()


def is_plain(status: Status) -> bool:
    """Return whether a filter's answer holds until what the plugin reads changes."""
    return status.is_success or (status.is_rejected and status.retry_at is None)


def small_codes(verdicts: Verdicts) -> SmallCodes:
    """Return the codes as the pass takes them: int8 that can be written to, not 0 where a node is refused."""
    codes = verdicts.codes
    if codes.dtype == np.int8 and codes.flags.writeable:
        return cast("SmallCodes", codes)
    # A writable copy. Numba would compile another version for each type, and one for read-only arrays.
    refused: npt.NDArray[np.bool_] = codes != 0
    return refused.view(np.int8)


def steps_of(
    plugins: Mapping[str, AnyPlugin],
    profile: Profile,
    hooks: HookTable,
    counts: Mapping[str, PluginMemo],
) -> Mapping[str, Step]:
    """Return the steps of the plugins that have hooks up to score, by name."""
    points = ("pre_filter", "filter", "pre_score", "score")
    names = dict.fromkeys(name for hook in points for name, _ in hooks[hook])
    return {name: _step_of(plugins[name], profile, hooks, counts.get(name)) for name in names}


def _step_of(plugin: AnyPlugin, profile: Profile, hooks: HookTable, counts: PluginMemo | None) -> Step:
    its, name = hooks.of(plugin.name), plugin.name
    planned = {hook: its[hook] for hook in PLANNED_HOOKS if hook in its}
    # A profile may enable a plugin at some of its extension points alone. Then the rule promises more than there is to
    # be called.
    has_all = planned.keys() >= hooks.implemented(name).intersection(PLANNED_HOOKS)
    is_ruled = has_all and keeps_promise(plugin, "amounts_rule", PLANNED_HOOKS)
    return Step(
        plugin,
        profile.weight(name) if "score" in planned else 0,
        counts or PluginMemo.of(plugin),
        hooks.learned[name],
        cast("DecidesByAmounts", plugin).amounts_rule if is_ruled else None,
        **planned,
    )
