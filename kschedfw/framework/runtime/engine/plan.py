"""The plan for pods that are alike: which answers of plugins are kept, which the pass computes, and who is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Final, TypeVar, cast

import attrs
import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.api.requests import PodRequests
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.nodes.arrays import FloatArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AmountsRule
from kschedfw.framework.runtime.engine.errors import ScoreError, check_range
from kschedfw.framework.runtime.engine.kept import NOTHING, HookStep, Kept
from kschedfw.framework.runtime.engine.passes import Weights
from kschedfw.framework.runtime.engine.steps import Step
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.status_codes import PASS, StatusCodes

LARGEST_TOTAL: Final = 2**52
"""Totals up to this number, and their summands, are exact in float64."""
REFUSED: Final = -4.0 * LARGEST_TOTAL
"""The score of a node that refuses the pod. Totals stay below 0 whatever is added."""
BYTES_PER_PLAN: Final = 4096
"""The approximate size of a plan's objects beside its arrays."""

_MOST_COLUMNS: Final = 16
_SCORED: Final = (
    AmountsRule.LEAST_ALLOCATED,
    AmountsRule.BALANCED_ALLOCATION,
    AmountsRule.MOST_ALLOCATED,
)
"""The rules in the order of their weights in the pass."""

KeptT = TypeVar("KeptT")


@define(eq=False)
class Plan:
    """The way to decide pods of one key. Valid for any state of the nodes, which `prepare` and `base` follow.

    `kept` has the answers of steps that signed the pod, by name. `computed` are the steps whose answers the pass
    computes from requests and what nodes have left, with their rules. All other steps are asked for every pod.
    """

    steps: Sequence[Step]
    filters: Sequence[Step]
    """The steps with a filter, in the profile's order of filters."""
    scores: Sequence[Step]
    """The steps with a score, in the profile's order of scores."""
    kept: Mapping[str, Kept]
    codes: StatusCodes
    """The numbers of the statuses in what is kept."""
    computed: Mapping[str, AmountsRule]
    pre_filter: Sequence[HookStep] = ()
    pre_score: Sequence[HookStep] = ()
    filters_asked: Sequence[Step] = ()
    filters_kept: Sequence[Kept] = ()
    """The kept filters that follow the pods on nodes."""
    asked_last: frozenset[str] = frozenset()
    """The asked filters after which, in the profile's order, all others are asked, too."""
    scores_added: Sequence[tuple[Step, Kept | None]] = ()
    """The steps whose scores are added for every pod, with their kept raw scores."""
    balanced: str = attrs.field(init=False)
    """The plugin that scores the balance of resources, if the pass computes it; empty if none does."""
    weights: Weights = attrs.field(init=False)
    """The weights of the scores that the pass computes; 0 for one that isn't enabled."""
    fits: bool = attrs.field(init=False)
    """True if the pass refuses nodes without enough resources."""
    told: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The plugins whose pre_filter, and whose pre_score, isn't called, though they have one."""
    filters_refusing: Sequence[Step] = ()
    """The filters that may refuse a node now: all but those in the base that refuse none."""
    _counters: dict[tuple[str, frozenset[str]], Callable[[int], None]] = attrs.field(factory=dict)
    known_base: FloatArray | None = None
    """The result of `base`; None until it is made for the present node objects."""
    prepared_for: object = None
    """The state of node objects (`NodeTable.state_of_nodes`) that `prepare` has seen."""
    _columns: BoundedDict[Hashable, object] = attrs.field(factory=lambda: BoundedDict(_MOST_COLUMNS))

    def __attrs_post_init__(self) -> None:
        rules = {rule: name for name, rule in self.computed.items()}
        self.balanced = rules.get(AmountsRule.BALANCED_ALLOCATION, "")
        weights = {each.name: each.weight for each in self.scores}
        least, balanced, most = (weights.get(rules.get(rule, ""), 0) for rule in _SCORED)
        self.weights = least, balanced, most
        self.fits = any(step.name in self.computed for step in self.filters)

    def size(self, rows: int) -> int:
        """Return the approximate size in bytes, with a table of this many rows."""
        # 4 bytes a row for a code, 8 for a score or a sum of them: counted as if nothing were shared.
        return rows * (8 + 12 * len(self.kept)) + BYTES_PER_PLAN

    def column(self, key: Hashable, make: Callable[[], KeptT]) -> KeptT:
        """Return the column of this key, made by `make` if there is none. The oldest of many columns are dropped."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = make()
        return cast("KeptT", column)

    def follows_nodes(self, step: Step) -> bool:
        """Return whether the step's filter answers by the node object, and not by the pods on the node."""
        if step.declares:
            return step.reads_nodes
        # Of a pure hook that holds for the pods whose answers are noted.
        known = self.kept.get(step.name)
        return known is not None and known.reads_nodes and not known.filter_fails

    def is_local(self, skipped: frozenset[str], pod_followers: frozenset[str]) -> bool:
        """Return whether every filter's answer follows from requests, signatures and single nodes alone.

        `pod_followers` are the plugins with pre_filter_add_pod, which must be skipped or such plugins.
        """
        return all(
            each.name in skipped or (each.name in self.kept and not self.kept[each.name].filter_fails)
            for each in self.filters_asked
        ) and all(name in skipped or name in self.computed or name in self.kept for name in pod_followers)

    def prepare(
        self,
        pod: Pod,
        snapshot: Snapshot,
        pre_filters: Sequence[tuple[str, Hook]],
        pre_scores: Sequence[tuple[str, Hook]],
    ) -> None:
        """Call the hooks whose answers hold for all pods of the plan, after the node objects have changed."""
        nodes = snapshot.table.state_of_nodes
        for each in self.kept.values():
            each.prepare(pod, snapshot.node_infos, nodes)
        found = {name: each.pre_filter for name, each in self.kept.items()}
        scoring = {name: each.pre_score for name, each in self.kept.items()}
        # What the pass computes needs no preparation. The pre_filter of such a plugin is called, since preemption asks
        # its filter about single nodes.
        scoring |= dict.fromkeys(self.computed, NOTHING)
        self.pre_filter, self.pre_score = _hook_steps(pre_filters, found), _hook_steps(pre_scores, scoring)
        self.told = _told(pre_filters, found), _told(pre_scores, scoring)
        self._counters.clear()
        self.known_base = None
        self.prepared_for = nodes

    def base(self, state: CycleState, pod: Pod, table: NodeTable) -> FloatArray:
        """Return what the pass begins with, which is the same for all pods while the node objects are the same.

        It is the sum of the scores that depend on node objects alone, shape (n,), far below 0 where a node refuses the
        pod. Plugins whose answers are kept are asked where none is known; `state` has what the pre_filters wrote.

        Raises what hooks raise, or NotTogetherError.
        """
        if self.known_base is None:
            self.known_base = self._made_base(state, pod, table)
        return self.known_base

    def _made_base(self, state: CycleState, pod: Pod, table: NodeTable) -> FloatArray:
        refused, refusing = None, set()
        scores: FloatArray | float = 0.0
        own = state.clone()
        added: list[tuple[Step, Kept | None]] = []
        for kept in self.kept.values():
            if kept.pre_score is not None and kept.pre_score.written is not None:
                own.take(kept.pre_score.written)
        for step in self.filters:
            known = self.kept.get(step.name)
            if known is None or not known.reads_nodes or _skips(known.pre_filter) or known.filter_fails:
                continue
            try:
                codes = known.refusals(state, pod, table)
            except HOOK_FAILURES:
                continue  # asked for every pod, it fails again
            if codes.any():
                refusing.add(step.name)
                refused = codes != PASS if refused is None else refused | (codes != PASS)
        for step in self.scores:
            known = self.kept.get(step.name)
            if step.name in self.computed or (known is not None and _skips(known.pre_score)):
                continue
            its = None
            if known is not None and known.keeps_scores and known.reads_nodes:
                its = _score_in_base(known, own, pod, table)
            if its is None:
                added.append((step, known if known is not None and known.keeps_scores else None))
            else:
                scores = scores + its
        self._divide(added, refusing)
        array = scores if isinstance(scores, np.ndarray) else np.full(len(table), scores)
        if refused is not None:
            array = np.where(refused, REFUSED, array)
        array.setflags(write=False)  # the pass is compiled for arrays that can't be written to
        return array

    def _divide(self, added: Sequence[tuple[Step, Kept | None]], refusing: Collection[str]) -> None:
        """Tell asked steps from others, which depends on whose answers can be kept now.

        `refusing` are the filters in the base that refuse any node.
        """
        asked: list[Step] = []
        may_refuse: list[Step] = []
        following: list[Kept] = []
        last: list[str] = []
        for step in self.filters:
            known = self.kept.get(step.name)
            if step.name in self.computed:
                last.clear()
            elif known is None or not (known.keeps_refusals or _skips(known.pre_filter)):
                asked.append(step)
                last.append(step.name)
            elif not _skips(known.pre_filter):
                last.clear()
                if not known.reads_nodes:
                    following.append(known)
                elif step.name not in refusing:
                    continue
            else:
                continue
            may_refuse.append(step)
        self.filters_asked, self.filters_kept, self.asked_last = asked, following, frozenset(last)
        self.filters_refusing, self.scores_added = may_refuse, added

    def tell(self, meter: Meter, point: MeasuredPoint, skipped: frozenset[str], number: int) -> None:
        """Tell the meter of so many evaluations of each plugin that has a part in this point and isn't `skipped`.

        Hooks that are called count their calls themselves.
        """
        # The sets are few, since they follow from the kinds of pods. The key has `_value_`, since `value` and the hash
        # of an enumeration's member are Python functions: they take four times as long.
        count = self._counters.get((point._value_, skipped))
        if count is None:
            names = {
                MeasuredPoint.PRE_FILTER: self.told[0],
                MeasuredPoint.FILTER: [each.name for each in self.filters],
                MeasuredPoint.PRE_SCORE: self.told[1],
                MeasuredPoint.SCORE: [each.name for each in self.scores],
            }[point]
            count = meter.counter(point, [name for name in names if name not in skipped])
            self._counters[point._value_, skipped] = count
        count(number)

    def forget_failed(self) -> None:
        """Tell asked steps from others anew, after an answer turned out not to be one that can be kept."""
        self.known_base = None


def _score_in_base(known: Kept, state: CycleState, pod: Pod, table: NodeTable) -> FloatArray | float | None:
    """Return weight × score of all nodes, or one number for all; None where the feasible nodes matter."""
    each = known.step
    raw = known.scores_of_all(state, pod, table)
    if raw is None:
        return None
    lowest = int(raw[raw.argmin()]) if len(raw) else 0
    if not len(raw) or int(raw[raw.argmax()]) == lowest:
        try:
            # Normalising depends on the raw scores alone, so equal ones stay equal, whichever nodes are feasible.
            its = each.normalized(state, pod, NodeSelection.whole(table), raw.copy())
            check_range(each.name, its)
        except ScoreError:
            known.score_fails = True
            return None
        return float(int(its[0]) * each.weight) if len(its) else 0.0
    return None if each.normalize_score is not None else (raw * each.weight).astype(np.float64)


def _hook_steps(
    hooks: Sequence[tuple[str, Hook]], prepared: Mapping[str, HookStep | None]
) -> Sequence[HookStep]:
    """Return the hooks in profile order, with the results of prepared ones in their places.

    The order matters: if a hook refuses the pod, the results of the hooks after it must not show.
    """
    steps = []
    written, skipped = CycleState(), frozenset[str]()
    for name, hook in hooks:
        known = prepared.get(name)
        if known is None:
            steps.append(HookStep(None if written.is_empty else written, skipped, name, hook))
            written, skipped = CycleState(), frozenset()
            continue
        if known.written is not None:
            written.take(known.written)
        skipped |= known.skipped
    steps.append(HookStep(None if written.is_empty else written, skipped))
    return tuple(steps)


def _told(hooks: Sequence[tuple[str, Hook]], prepared: Mapping[str, HookStep | None]) -> tuple[str, ...]:
    return tuple(name for name, _ in hooks if (known := prepared.get(name)) is not None and not known.skipped)


def _skips(prepared: HookStep | None) -> bool:
    return prepared is not None and bool(prepared.skipped)


@frozen(eq=False)
class PlannedPod:
    """A pod about which no plugin has to be asked on any node: its plan has all answers."""

    plan: Plan
    base: FloatArray
    requests: PodRequests
    written: CycleState
    """The state that the pre_filters and pre_scores wrote."""
    skipped_filters: frozenset[str]
    skipped_scores: frozenset[str]

    def is_like(self, other: PlannedPod) -> bool:
        """Return whether both have the same answers on every node."""
        return self.base is other.base and self.requests is other.requests

    def write_to(self, state: CycleState) -> None:
        """Write what later hooks read, as the steps from pre_filter to score would."""
        state.take(self.written)
        state.skip_filter_plugins = self.skipped_filters
        state.skip_score_plugins = self.skipped_scores
