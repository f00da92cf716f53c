"""The steps of a profile: its plugins, each with its hooks up to score and what it promises of their answers."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Final, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.learning.learned_plugin import LearnedPlugin
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import IDLE, PLANNED_HOOKS, AmountsRule, AnyPlugin, Plugin, keeps_promise
from kschedfw.framework.results import ByDomain, DomainScores, Verdicts
from kschedfw.framework.runtime.engine.passes import SmallCodes
from kschedfw.framework.runtime.engine.plugins import FilterPlugin, NotTogetherError, PluginMemo, ScorePlugin
from kschedfw.framework.runtime.engine.status_codes import are_same
from kschedfw.framework.runtime.hooks import Hook, asked_method, hooks_of
from kschedfw.framework.status import Status

Refusals: TypeAlias = Sequence[ByDomain | SmallCodes]
"""Refused nodes, by domain or by node: a node is refused where any of these refuses it."""

_MOST_OF_NODES: Final = 4096
"""The number of latest signatures remembered of a plugin whose answers depend on nodes alone."""
_MOST_OF_PODS: Final = 4
"""Of k kinds of pods in turn, k nodes have changed when a kind comes again. If many have, to ask about all of them by
the batch form is faster."""


@define(eq=False)
class Step:
    """A plugin's place in plans.

    Its answers to a pod are kept where it gives the pod a signature, computed in the pass where it names a rule of
    amounts, and asked for otherwise.
    """

    plugin: AnyPlugin
    filtering: FilterPlugin | None
    scoring: ScorePlugin | None
    pre_filter: Hook | None
    pre_score: Hook | None
    rule: AmountsRule | None
    """The rule of amounts that these hooks follow."""
    counts: PluginMemo
    learned: LearnedPlugin
    """The reads of the plugin's pure hooks."""
    name: str = attrs.field(init=False)
    declares: bool = attrs.field(init=False)
    """True if the plugin says itself what it `reads`, and signs pods."""
    _declared_sign: Hook = attrs.field(init=False)
    _latest: BoundedDict[Hashable, None] | None = None
    """The latest signatures; None if answers to all signatures are kept."""
    _latest_of: Reads | None = None
    _refuses_by_domain: bool = attrs.field(init=False)
    _scores_by_domain: bool = attrs.field(init=False)
    _checked: Sequence[Status] = ()
    """The statuses of the last verdicts, which were checked: each is a success or a refusal."""
    _passing: npt.NDArray[np.bool_] | None = None
    """Which of `_checked` are successes, if others than the first one are."""

    @name.default
    def _name(self) -> str:
        return self.plugin.name

    @declares.default
    def _may_sign(self) -> bool:
        return self.plugin.reads is not None and type(self.plugin).sign is not Plugin.sign

    @_declared_sign.default
    def _sign(self) -> Hook:
        return asked_method(self.plugin, "sign")

    @property
    def signs(self) -> bool:
        """True if pods may have signatures now. By what is learned, that changes with its revision."""
        return self.declares or self.learned.signs

    @property
    def is_learned(self) -> bool:
        """True if signatures are learned."""
        return not self.declares and self.learned.signs

    def signer(self) -> Hook:
        """Return the function that signs pods now."""
        return self._declared_sign if self.declares else self.learned.signer()

    @_refuses_by_domain.default
    def _has_refusals(self) -> bool:
        return keeps_promise(self.plugin, "domain_refusals", ("pre_filter", "filter", "filter_batch"))

    @_scores_by_domain.default
    def _has_scores(self) -> bool:
        hooks = ("pre_score", "score", "score_batch", "normalize_score")
        return keeps_promise(self.plugin, "domain_scores", hooks)

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
        return self.filtering is None or self.pre_filter is not None

    def sign_or_none(self, pod: Pod) -> Hashable | None:
        """Return the pod's signature; None if there is none, or the plugin fails to make one."""
        try:
            signature: Hashable | None = self.signer()(pod)
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
        filtering, scoring = self.filtering, self.scoring
        # Asking a plugin without batch forms costs much more than keeping.
        if (filtering and filtering.batch is None) or (scoring and scoring.batch is None):
            return True
        if self._latest is None or self._latest_of is not reads:
            self._latest = BoundedDict(_MOST_OF_NODES if reads is Reads.NODE else _MOST_OF_PODS)
            self._latest_of = reads
        is_known = signature in self._latest
        self._latest[signature] = None
        if is_known:
            self._latest.move_to_end(signature)
        return is_known

    def domain_refusals(self, state: CycleState, table: NodeTable) -> Sequence[ByDomain] | None:
        """Return the domains that the filter refuses; None where it must be asked about nodes."""
        found = self.plugin.domain_refusals(state, table) if self._refuses_by_domain else None
        if found is not None and self.filtering is not None:
            self.filtering.counts.rows_asked += len(table)
        return found

    def verdicts(self, state: CycleState, pod: Pod, table: NodeTable) -> Verdicts | None:
        """Return the filter's verdicts on all nodes; None if it can only be called node by node.

        Raises:
            NotTogetherError: the filter fails, or fails for one of the nodes.
        """
        each = self.filtering
        assert each is not None
        answer = each.ask_together(state, pod, table, table.all_rows, self._checked)
        # Identity: passing verdicts are made once for each number of rows, and need no check.
        if answer is None or answer is Verdicts.passing(len(table)):
            return answer
        # Most plugins have the same statuses every time, so that they are checked once.
        if not are_same(answer.statuses, self._checked):
            if not all(status.is_success or status.is_rejected for status in answer.statuses):
                raise NotTogetherError
            self._checked = answer.statuses
            self._passing = None
            if any(status.is_success for status in answer.statuses[1:]):
                self._passing = np.array([status.is_success for status in answer.statuses])
        if self._passing is not None:
            # Another status of success than the first one lets a node pass, too.
            return Verdicts(np.where(self._passing[answer.codes], 0, answer.codes), answer.statuses)
        return answer

    def domain_scores(self, state: CycleState, table: NodeTable) -> DomainScores | None:
        """Return the scores by domain; None where the hook must be asked about nodes."""
        found = self.plugin.domain_scores(state, table) if self._scores_by_domain else None
        if found is not None and self.scoring is not None:
            self.scoring.counts.rows_asked += len(table)
        return found


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
    plugins: Collection[AnyPlugin],
    hooks: Mapping[str, Mapping[str, Hook]],
    filters: Sequence[FilterPlugin],
    scores: Sequence[ScorePlugin],
    counts: Mapping[str, PluginMemo],
    learned: Mapping[str, LearnedPlugin],
) -> Sequence[Step]:
    """Return the plugins with their hooks; `hooks` has those of each plugin by its name."""
    filtering, scoring = {each.name: each for each in filters}, {each.name: each for each in scores}
    return [
        Step(
            plugin,
            filtering.get(plugin.name),
            scoring.get(plugin.name),
            hooks[plugin.name].get("pre_filter"),
            hooks[plugin.name].get("pre_score"),
            # A profile may enable a plugin at some of its extension points alone. Then the rule promises more than
            # there is to be called.
            plugin.amounts_rule
            if keeps_promise(plugin, "amounts_rule", PLANNED_HOOKS)
            and hooks[plugin.name].keys() >= set(hooks_of(type(plugin))).intersection(PLANNED_HOOKS)
            else None,
            counts.get(plugin.name) or PluginMemo.of(plugin),
            learned[plugin.name],
        )
        for plugin in plugins
    ]
