"""Checks that plans, batch forms and scalar forms give the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from kschedfw import CycleState, Evaluation, Framework, NodeSelection, Pod, Status
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.plugin_contract.subject import Subject, concerns, violated
from kschedfw.testing.plugin_contract.world import World

_BATCH: Final = "in batches"
_PLAN: Final = "from memory"

_REMEDIES: Final = {
    _BATCH: (
        "filter_batch and score_batch must give, row by row, exactly what filter and score give; compare them on the "
        "nodes of the example, rounding included, or remove the batch form"
    ),
    _PLAN: (
        "`sign` must name everything of the pod that an answer depends on, and `reads` must cover everything else; add "
        "what is missing, or leave them out: then answers aren't kept. An `amounts_rule` must say exactly what the "
        "hooks do. The clock of the handle moves on between two questions: what the time makes of an answer belongs "
        "into `sign`, or into a refusal's `retry_at`"
    ),
}


_STEPS: Final = (1.0, 75.0, 4_000.0, 22_000.0)
"""Seconds that pass before a call, while the cluster changes: from a moment to many hours."""


class EvaluationChecks(Subject):
    """Checks that batch forms agree with `filter` and `score`, and that a plugin's promises hold."""

    @concerns("filter", "score")
    def test_every_evaluation_gives_the_same_answers_while_the_cluster_changes(self) -> None:
        def through_a_history(world: World) -> None:
            clock = FakeClock(self.start_time.timestamp())
            plain = self._framework(snapshot=world.snapshot, clock=clock)
            planned = partial(
                self._framework, snapshot=world.snapshot, clock=clock, evaluation=Evaluation.MEMO
            )
            others = {_BATCH: planned(registry=self._without_promises), _PLAN: planned()}
            for seconds in _STEPS:
                first, *more = world.pending()
                # Pods come again, since an answer from memory needs an earlier question.
                for pod in (first, first, *more, *more, first):
                    clock.advance(seconds)
                    rows = world.rows()
                    expected = _answers(plain, pod, rows)
                    for way, framework in others.items():
                        given = _answers(framework, pod, rows)
                        if given != expected:
                            _differ(self._name, way, given, expected)
                world.change()

        self._in_worlds(through_a_history)


def _differ(name: str, way: str, given: Mapping[str, object], expected: Mapping[str, object]) -> None:
    step = next(step for step in (*expected, *given) if given.get(step) != expected.get(step))
    violated(
        f"{name} answers differently {way} than node by node: "
        f"{step} is {given.get(step)!r}, but {expected.get(step)!r} node by node",
        _REMEDIES[way],
    )


def _answers(framework: Framework, pod: Pod, rows: Sequence[int]) -> Mapping[str, object]:
    """Return the results of filtering the rows and scoring those that pass."""
    table, state = framework.handle.snapshot.table, CycleState()
    result, status, _ = framework.run_pre_filter_plugins(state, pod)
    answers: dict[str, object] = {"pre_filter": (result, status, sorted(state.skip_filter_plugins))}
    if not status.is_success:
        return answers
    in_order = list(rows) == list(range(len(table)))
    nodes = NodeSelection.whole(table) if in_order else NodeSelection(table, np.array(rows, dtype=np.int64))
    found = framework.filter_nodes(state, pod, nodes)
    answers["feasible"] = found.feasible.names
    answers["refused"] = list(found.refused)
    answers["error"] = _text(found.error)
    status = framework.run_pre_score_plugins(state, pod, found.feasible)
    answers["pre_score"] = (_text(status), sorted(state.skip_score_plugins))
    if not status.is_success:
        return answers
    totals, status = framework.total_scores(state, pod, found.feasible)
    answers["totals"] = _text(status)
    if totals is not None:
        answers["totals"] = totals.values.tolist()
        answers["best"] = list(totals.best_rows(found.feasible))
    scores, status = framework.run_score_plugins(state, pod, found.feasible)
    answers["scores"] = _text(status)
    if scores is not None:
        answers |= {
            name: (each.raw.tolist(), each.normalized.tolist()) for name, each in scores.by_plugin.items()
        }
    return answers


def _text(status: Status | None) -> object:
    return None if status is None else (str(status.code), status.reasons)
