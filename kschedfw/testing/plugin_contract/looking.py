"""Checks of filters and scores: no side effects, the same answer twice, scores from 0 to 100, and an opinion at all."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kschedfw import CycleState, NodeInfo, Pod, PodInfo, Status
from kschedfw.testing.plugin_contract.stage import NewStage, PluginStage, difference, on_stages, run_on_stages
from kschedfw.testing.plugin_contract.subject import Subject, concerns, violated


class LookingChecks(Subject):
    """Checks of `filter`, `score` and the hooks before and after them."""

    @on_stages("filter")
    def test_filter_answers_the_same_twice_and_changes_nothing(self, new_stage: NewStage) -> None:
        stage = new_stage()
        for pod in stage.pods:
            state = stage.begin(pod)
            if state is not None and stage.name not in state.skip_filter_plugins:
                _only_looks(stage, "filter", state, pod, stage.nodes, stage.hooks.status)

    @on_stages("score")
    def test_score_answers_the_same_twice_and_changes_nothing(self, new_stage: NewStage) -> None:
        stage = new_stage()
        for pod in stage.pods:
            state = stage.begin(pod)
            if state is None:
                continue
            nodes = stage.feasible(state, pod)
            if stage.begin_scoring(state, pod, nodes):
                _only_looks(stage, "score", state, pod, nodes, stage.hooks.answer)

    @on_stages("score")
    def test_scores_are_whole_numbers_from_0_to_100(self, new_stage: NewStage) -> None:
        stage = new_stage()
        for pod in stage.pods:
            state = stage.begin(pod)
            feasible = [] if state is None else stage.feasible(state, pod)
            # Also a single node and a part of them: `normalize_score` sees the feasible nodes alone, whose
            # scores may all be equal.
            for nodes in (feasible, feasible[:1], feasible[1:]):
                if state is not None:
                    _scores_fit(stage, state.clone(), pod, nodes)


def _only_looks(
    stage: PluginStage,
    hook: str,
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    ask: Callable[..., object],
) -> None:
    name = stage.name
    before, written = stage.surroundings(), _written(state)
    first = {info.name: ask(hook, state, pod, info) for info in nodes}
    # In reverse, so that an answer that depends on the nodes asked about before differs.
    again = {info.name: ask(hook, state, pod, info) for info in reversed(nodes)}
    rows = np.array([stage.snapshot.table.rows[info.name] for info in nodes], dtype=np.int64)
    arguments: Any = (len(rows), state, pod, stage.snapshot.table, rows)
    (stage.hooks.filter_batch if hook == "filter" else stage.hooks.score_batch)(*arguments)
    if (changed := difference(before, stage.surroundings())) != "":
        violated(
            f"{name}.{hook} (or {hook}_batch) changes {changed}",
            "hooks of filter and score run on several threads at once, and only look: work on a `clone()`, or take "
            "notes in `reserve`, where they are given back",
        )
    if changed := difference(written, _written(state)):
        violated(
            f"{name}.{hook} (or {hook}_batch) writes to the cycle state, or changes a value in it: {changed}",
            f"write what it needs in {'pre_filter' if hook == 'filter' else 'pre_score'}; {hook} is called from "
            "several threads at once",
        )
    if first != again:
        different = next(node for node in first if first[node] != again[node])
        violated(
            f"{name}.{hook} says {_shown(first[different])} of {different}, and when asked again "
            f"{_shown(again[different])}",
            "an answer depends on pod, node, state and the snapshot alone; is something counted or remembered between "
            "calls?",
        )


def _written(state: CycleState) -> Mapping[str, object]:
    """Return the identity of each value, and what its text shows; the attributes of an object without a text."""
    with np.printoptions(threshold=sys.maxsize):
        return {key: (id(value), _text(value)) for key, value in state._data.items()}


def _text(value: object) -> str:
    # Values needn't be comparable, nor can all be copied.
    try:
        return repr(vars(value) if type(value).__repr__ is object.__repr__ else value)
    except Exception:
        return ""


def _scores_fit(stage: PluginStage, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> None:
    if not stage.begin_scoring(state, pod, nodes):
        return
    scores, status = stage.framework.run_score_plugins(state, pod, nodes)
    if scores is None and status.plugin == stage.name:
        violated(
            status.message,
            "a score is an int from 0 to 100. Where it has another range, `normalize_score` brings it into this "
            "one, in whole numbers: also for a single node, and where all are equal",
            status.error,
        )


def _shown(answer: object) -> object:
    return (str(answer.code), *answer.reasons) if isinstance(answer, Status) else answer


_ADD, _REMOVE = "pre_filter_add_pod", "pre_filter_remove_pod"


class FollowingChecks(Subject):
    """Checks that the state written by pre_filter can be cloned, and follows added and removed pods."""

    @on_stages(_ADD, _REMOVE)
    def test_following_pods_is_undone_and_never_reaches_the_original_state(self, new_stage: NewStage) -> None:
        stage = new_stage()
        for hook, other in ((_ADD, _REMOVE), (_REMOVE, _ADD)):
            if not stage.hooks.has(hook):
                violated(
                    f"{self._name} has {other} but not {hook}",
                    "preemption's dry runs take pods off a node and put some of them back: have both, each undoing "
                    "the other",
                )
        for pod in stage.pods:
            state = stage.begin(pod)
            if state is None or stage.name in state.skip_filter_plugins:
                continue
            for info in stage.nodes:
                if info.pods:
                    _there_and_back(stage, state, pod, info, info.pods[0], (_REMOVE, _ADD))
                visitor = next((each for each in stage.pods if each is not pod), None)
                if visitor is not None:
                    guest = PodInfo.of(visitor.bound_to(info.name))
                    _there_and_back(stage, state, pod, info, guest, (_ADD, _REMOVE))


def _there_and_back(
    stage: PluginStage, state: CycleState, pod: Pod, info: NodeInfo, moved: PodInfo, hooks: tuple[str, str]
) -> None:
    before = stage.verdicts(state, pod)
    copy, node = state.clone(), info.clone()
    nodes = [node if each is info else each for each in stage.nodes]
    for hook in hooks:
        _follow(stage, hook, copy, pod, moved, node)
        stage.verdicts(copy, pod, nodes)
        _same(
            before,
            stage.verdicts(state, pod),
            f"{stage.name}.{hook} on a clone of the cycle state changes what filter answers from the original",
            "what pre_filter writes and this hook changes needs a `clone()` that copies all that changes, also what "
            "is nested; values without `clone` are shared",
        )
    _same(
        before,
        stage.verdicts(copy, pod, nodes),
        f"{stage.name}: after {hooks[0]} and {hooks[1]} of the same pod, filter answers otherwise than before",
        "each must undo the other exactly; count what is there, rather than note that something is",
    )


def _follow(
    stage: PluginStage, hook: str, state: CycleState, pod: Pod, moved: PodInfo, node_info: NodeInfo
) -> None:
    if hook == _ADD:
        node_info.add_pod(moved)
    else:
        node_info.remove_pod(moved.pod)
    stage.hooks.status(hook, state, pod, moved, node_info)


def _same(before: dict[str, Status], after: dict[str, Status], wrong: str, remedy: str) -> None:
    for node, status in before.items():
        if after[node] != status:
            violated(
                f"{wrong}: {node} was {status.code} ({status.message}), and is {after[node].code} "
                f"({after[node].message})",
                remedy,
            )


_REMEDY = "Override `pods` and `nodes` so that they have what the plugin looks at"


class OpinionChecks(Subject):
    """Checks that the plugin rejects or scores something. If not, they are skipped: that breaks no rule."""

    @concerns("filter")
    def test_filter_refuses_some_node(self) -> None:
        asked = 0

        def refuses(stage: PluginStage) -> bool:
            nonlocal asked
            for pod in stage.pods:
                state = stage.begin(pod)
                verdicts = {} if state is None else stage.verdicts(state, pod)
                asked += len(verdicts)
                if any(status.is_rejected for status in verdicts.values()):
                    return True
            return False

        if not self._is_seen(refuses):
            how = (
                f"about {asked:,} nodes"
                if asked
                else "about none, since pre_filter skips or refuses every pod"
            )
            self._tell(f"{self._name}.filter refuses no node in the generated clusters (it was asked {how})")

    @concerns("score")
    def test_scores_differ_between_some_nodes(self) -> None:
        asked = 0

        def differ(stage: PluginStage) -> bool:
            nonlocal asked
            for pod in stage.pods:
                state = stage.begin(pod)
                nodes = [] if state is None else stage.feasible(state, pod)
                if state is None or not stage.begin_scoring(state, pod, nodes):
                    continue
                scores, _ = stage.framework.run_score_plugins(state, pod, nodes)
                own = None if scores is None else scores.by_plugin.get(stage.name)
                if own is None:
                    continue
                asked += len(nodes)
                if len(set(own.normalized.tolist())) > 1:
                    return True
            return False

        if not self._is_seen(differ):
            how = f"about {asked:,} nodes" if asked else "about none, since pre_score skips every pod"
            self._tell(
                f"{self._name} scores all nodes of a generated cluster alike, for every pod (it was asked {how})"
            )

    def _is_seen(self, holds: Callable[[PluginStage], bool]) -> bool:
        """Tell whether `holds` is true in some generated world; stops at the first one."""
        seen = False

        def check(new_stage: NewStage) -> None:
            nonlocal seen
            seen = seen or holds(new_stage())

        run_on_stages(self, check)
        return seen

    def _tell(self, what: str) -> None:
        # unittest's exception, so that the contract doesn't need pytest, which also understands it.
        raise unittest.SkipTest(f"{what}: its other tests show little. {_REMEDY}")
