"""The kept answers of a plugin to pods of one signature.

A plugin declares what it reads (`Plugin.reads`) and what of a pod its answers depend on (`Plugin.sign`). So its
answers are kept per signature, in columns with a row per node, and the node table's change logs tell which rows must be
asked about again. This is kube-scheduler's equivalence cache (1.9) and its pod signatures (1.36; KEP-5598) in one. It
is finer than either, as it works plugin by plugin: pods that differ in their requests still share what is known of
taints and affinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.column import FEW_ROWS, UNKNOWN_CODE, UNKNOWN_SCORE, Column
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.runtime.engine.errors import NotTogetherError, ScoreError, check_range
from kschedfw.framework.runtime.engine.steps import Step, is_plain
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.status import Status
from kschedfw.framework.status_codes import StatusCodes


class HookStep(NamedTuple):
    """The result of prepared pre_filters or pre_scores, and the `hook` after them, which is called for every pod.

    `written` is the state that they wrote, None if none; `skipped` names the plugins that answered SKIP. The result of
    one hook alone, and the last step, have no hook after them.
    """

    written: CycleState | None = None
    skipped: frozenset[str] = frozenset()
    name: str = ""
    hook: Hook | None = None


NOTHING: Final = HookStep()


# Plans refer to these strongly and the planner weakly, which slots alone don't allow.
@define(eq=False, weakref_slot=True)
class Kept:
    """The kept answers of one step to pods of one signature. Plans share them."""

    step: Step
    _codes: StatusCodes
    _parallelizer: Parallelizer
    pre_filter: HookStep | None = None
    """None where the hook must be called for every pod."""
    pre_score: HookStep | None = None
    is_idle: bool = False
    filter_fails: bool = False
    """True if an answer of the filter can't be kept: a failure, or a refusal that ends at a time."""
    score_fails: bool = False
    reads_nodes: bool = attrs.field(init=False)
    """True if answers depend on node objects alone, by what is known when they are first kept."""
    is_by_value: bool = attrs.field(init=False)
    """True for a learned step that reads pods on nodes: its forms know the answers by the values of nodes.

    To look these up for all nodes is faster than to find out which rows have changed.
    """
    _prepared_for: object = None
    _is_followed: bool | None = None
    """True if what pre_filter and pre_score of a learned step answer is known, which always holds; None before."""
    _refusals: Column | None = None
    _scores: Column | None = None

    @classmethod
    def idle(cls, step: Step, codes: StatusCodes, parallelizer: Parallelizer) -> Kept:
        """Return the answers to a pod that the plugin has nothing to do with."""
        skips = HookStep(skipped=frozenset((step.name,)))
        return cls(step, codes, parallelizer, skips, skips if step.pre_score else None, is_idle=True)

    def __attrs_post_init__(self) -> None:
        # Set once, since plans ask for every pod. When more is learned of what a hook reads, plans are made anew.
        self.reads_nodes = self.step.reads_nodes
        self.is_by_value = not self.reads_nodes and self.step.is_learned

    @property
    def keeps_scores(self) -> bool:
        """True if raw scores are kept here."""
        return not (self.score_fails or self.is_idle or self.is_by_value)

    @property
    def keeps_refusals(self) -> bool:
        """True if the filter's answers are kept here."""
        return not (self.filter_fails or self.is_by_value)

    def prepare(self, pod: Pod, nodes: Sequence[NodeInfo], state_of_nodes: object) -> None:
        """Call pre_filter and pre_score if the node objects have changed, where their answers hold for all pods."""
        if self.is_idle or self._prepared_for is state_of_nodes:
            return
        self._prepared_for = state_of_nodes
        if self.step.is_learned:
            if self._is_followed is None:
                self._is_followed = self._follow_pre_hooks(pod, nodes)
            self.filter_fails = self.score_fails = not self._is_followed
            return
        self.filter_fails = self.score_fails = False
        # pre_filter and pre_score see all nodes. Their results are kept only where the plugin reads node objects alone,
        # which `state_of_nodes` follows.
        if self.reads_nodes:
            self.pre_filter = self._prepared(self.step.pre_filter, pod, nodes)
            self.pre_score = self._prepared(self.step.pre_score, pod, nodes)

    def _follow_pre_hooks(self, pod: Pod, nodes: Sequence[NodeInfo]) -> bool:
        """Call the pure pre_filter and pre_score, noting what they read. Return whether their answers hold."""
        step, before = self.step, CycleState()
        if step.pre_filter is not None:
            step.learned.note(step.pre_filter, before, pod)
        self.pre_filter = self._prepared(step.pre_filter, pod, nodes, before)
        if self.pre_filter is None:
            # Without what it wrote the hooks after it can't be asked on behalf of other pods.
            return False
        if self.pre_filter.written is not None:
            before = self.pre_filter.written
        if step.pre_score is not None:
            step.learned.note(step.pre_score, before, pod)
        self.pre_score = self._prepared(step.pre_score, pod, nodes, before)
        return self.pre_score is not None

    def _prepared(
        self, hook: Hook | None, pod: Pod, nodes: Sequence[NodeInfo], before: CycleState | None = None
    ) -> HookStep | None:
        """Return the answer, and what the hook wrote beside what was written `before`; None if it can't be kept."""
        if hook is None:
            return NOTHING
        own = CycleState() if before is None else before.clone()
        try:
            answer = hook(own, pod, nodes)
        except HOOK_FAILURES:  # called again for the pod, it fails again, and that is reported
            return None
        skips = isinstance(answer, Status) and answer.is_skip
        # Refusals are for the hook to report, and a PreFilterResult for the caller to follow.
        if not (answer is None or skips or (isinstance(answer, Status) and answer.is_success)):
            return None
        return HookStep(None if own.is_empty else own, frozenset((self.step.name,) if skips else ()))

    def refusals(self, state: CycleState, pod: Pod, table: NodeTable) -> Codes:
        """Return the filter's codes on all nodes, shape (n,). Not to be changed.

        Raises what the hooks raise, or NotTogetherError for a failure or a refusal that ends at a time.
        """
        column = self._refusals
        if column is None:
            column = self._refusals = Column(table, self.step.reads, np.int32, UNKNOWN_CODE)
        elif column.follow(table) == ():
            return column.values
        missing = column.missing(table.all_rows)
        if len(missing):
            try:
                codes = self._asked(state, pod, table, missing)
            except HOOK_FAILURES:
                self.filter_fails, self._refusals = True, None
                raise
            column.values[missing] = codes
        return column.values

    def _asks_together(self, rows: IntArray, of: int) -> bool:
        """Return whether to ask about these of so many rows by the batch form."""
        if not self.step.is_learned:
            return len(rows) > FEW_ROWS or len(rows) == of
        # Always: what a hook reads is noted there.
        for form in self.step.learned.forms.values():
            form.credit(of - len(rows))
        return True

    def ask_again(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> None:
        """Compare a learned answer about a node with the hook's own. If they differ, learning ends: it isn't pure."""
        # Otherwise nothing is kept.
        if not self._is_followed or self.pre_filter is None or self.pre_score is None:
            return
        info, forms = table.node_infos[row], self.step.learned.forms
        if self.pre_score.written is not None:
            state = state.clone()
            state.take(self.pre_score.written)
        if not self.pre_filter.skipped and not self._keeps_refusal_of(state, pod, row, info):
            forms["filter_batch"].found_impure(pod, info)
        elif not self.pre_score.skipped and not self._keeps_score_of(state, pod, table, row, info):
            forms["score_batch"].found_impure(pod, info)
        elif hook := self._impure_pre_hook(self.pre_filter, self.pre_score, state, pod, table, info):
            for each in forms.values():
                each.found_impure(pod, info, hook)

    def _keeps_refusal_of(self, state: CycleState, pod: Pod, row: int, info: NodeInfo) -> bool:
        """Return whether the kept answer about a node, if there is one, is the filter's."""
        if self._refusals is None:
            return True
        code = int(self._refusals.values[row])
        return code in (UNKNOWN_CODE, self._codes.code_of(self.step.ask_filter(state, pod, info)))

    def _keeps_score_of(
        self, state: CycleState, pod: Pod, table: NodeTable, row: int, info: NodeInfo
    ) -> bool:
        scores = self._scores
        if scores is None or self.score_fails:
            return True
        scores.follow(table)
        score = int(scores.values[row])
        try:
            return score in (UNKNOWN_SCORE, self.step.ask_score(state, pod, info))
        except ScoreError:
            return False

    def _impure_pre_hook(
        self,
        pre_filter: HookStep,
        pre_score: HookStep,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        info: NodeInfo,
    ) -> str:
        """Return the pre_filter or pre_score that, called again, leads to another answer about this node; "" if none.

        Only answers are compared: what the hooks write need not have an equality.
        """
        step, nodes, anew = self.step, table.node_infos, CycleState()
        if step.pre_filter is not None:
            again = self._prepared(step.pre_filter, pod, nodes)
            if again is None or again.skipped != pre_filter.skipped:
                return "pre_filter"
            anew = anew if again.written is None else again.written
            if step.filter is not None and not again.skipped:
                code_of, ask = self._codes.code_of, step.ask_filter
                if code_of(ask(state, pod, info)) != code_of(ask(anew, pod, info)):
                    return "pre_filter"
        if step.pre_score is not None:
            again = self._prepared(step.pre_score, pod, nodes, anew)
            if again is None or again.skipped != pre_score.skipped:
                return "pre_score"
            anew = anew if again.written is None else again.written
        if step.score is None or pre_score.skipped:
            return ""
        try:
            is_same = step.ask_score(state, pod, info) == step.ask_score(anew, pod, info)
        except ScoreError:
            is_same = True  # the framework hears of it from the hook
        return "" if is_same else "pre_score" if step.pre_score is not None else "pre_filter"

    def _asked(self, state: CycleState, pod: Pod, table: NodeTable, rows: IntArray) -> Codes:
        each = self.step
        if each.filter_batch is not None and self._asks_together(rows, len(table)):
            rows.setflags(write=False)
            verdicts = each.verdicts(state, pod, table, rows)
            if verdicts is None and self.step.is_learned:
                raise NotTogetherError
            if verdicts is not None:
                if not all(map(is_plain, verdicts.statuses)):
                    raise NotTogetherError
                return self._codes.of_verdicts(verdicts, each.name)
        asked, infos = rows.tolist(), table.node_infos
        statuses: list[Status] = self._parallelizer.map(
            len(asked), lambda index: each.ask_filter(state, pod, infos[asked[index]])
        )
        if not all(map(is_plain, statuses)):
            raise NotTogetherError
        return np.array([self._codes.code_of(status) for status in statuses], dtype=np.int32)

    def scores(self, state: CycleState, pod: Pod, table: NodeTable, rows: IntArray) -> IntArray:
        """Return the raw scores of these nodes, shape (k,). Not to be changed.

        Raises:
            ScoreError: the plugin fails for one of them.
        """
        each = self.step
        column = self._scores
        if column is None:
            column = self._scores = Column(table, self.step.reads, np.int64, UNKNOWN_SCORE)
        else:
            column.follow(table)
        known: IntArray = table.take(column.values, rows)
        if not len(known) or int(known[known.argmin()]) != UNKNOWN_SCORE:
            return known
        missing = rows[known == UNKNOWN_SCORE]
        fresh = None
        if self._asks_together(missing, len(rows)):
            fresh = each.scores_on(state, pod, NodeSelection(table, missing))
            if fresh is None and self.step.is_learned:
                self.score_fails = True
                raise NotTogetherError
        if fresh is None:
            asked, infos = missing.tolist(), table.node_infos
            scores = self._parallelizer.map(
                len(asked), lambda index: each.ask_score(state, pod, infos[asked[index]])
            )
            fresh = np.array(scores, dtype=np.int64)
        column.values[missing] = fresh
        found: IntArray = column.values.take(rows)
        return found

    def scores_of_all(self, state: CycleState, pod: Pod, table: NodeTable) -> IntArray | None:
        """Return the raw scores of all nodes, feasible or not; None, and `score_fails`, if any can't be kept."""
        each = self.step
        try:
            raw = self.scores(state, pod, table, table.all_rows)
            if each.normalize_score is None:
                check_range(each.name, raw)
        # kube-scheduler scores feasible nodes alone, where there may be no failure.
        except (ScoreError, NotTogetherError):
            self.score_fails = True
            return None
        return raw
