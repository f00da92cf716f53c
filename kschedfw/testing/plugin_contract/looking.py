"""Checks that filters and scores have no side effects, give the same answer twice, and that scores are from 0 to
100.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.status import Status
from kschedfw.testing.plugin_contract.stage import PluginStage, difference, on_stages
from kschedfw.testing.plugin_contract.subject import Subject, concerns
from kschedfw.testing.plugin_contract.violation import violated


class LookingChecks(Subject):
    """Checks of `filter`, `score` and the hooks before and after them."""

    @concerns("filter")
    def test_filter_answers_the_same_twice_and_changes_nothing(self) -> None:
        def check(new_stage: Callable[[], PluginStage]) -> None:
            stage = new_stage()
            for pod in stage.pods:
                state = stage.begin(pod)
                if state is not None and stage.name not in state.skip_filter_plugins:
                    _only_looks(stage, "filter", state, pod, stage.nodes, stage.hooks.status)

        on_stages(self, check)

    @concerns("score")
    def test_score_answers_the_same_twice_and_changes_nothing(self) -> None:
        def check(new_stage: Callable[[], PluginStage]) -> None:
            stage = new_stage()
            for pod in stage.pods:
                state = stage.begin(pod)
                if state is None:
                    continue
                nodes = stage.feasible(state, pod)
                if stage.begin_scoring(state, pod, nodes):
                    _only_looks(stage, "score", state, pod, nodes, stage.hooks.answer)

        on_stages(self, check)

    @concerns("score")
    def test_scores_are_whole_numbers_from_0_to_100(self) -> None:
        def check(new_stage: Callable[[], PluginStage]) -> None:
            stage = new_stage()
            for pod in stage.pods:
                state = stage.begin(pod)
                feasible = [] if state is None else stage.feasible(state, pod)
                for nodes in (feasible, feasible[:1], feasible[1:]):
                    if state is not None:
                        _scores_fit(stage, state.clone(), pod, nodes)

        on_stages(self, check)


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
    if _written(state) != written:
        violated(
            f"{name}.{hook} (or {hook}_batch) writes to the cycle state",
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


def _written(state: CycleState) -> dict[str, int]:
    return {key: id(value) for key, value in state._data.items()}


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
