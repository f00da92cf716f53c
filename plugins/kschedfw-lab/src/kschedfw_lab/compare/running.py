"""Runs configurations one after another on the same cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import count

import attrs

from kschedfw import FeatureGates, Pod, Registry
from kschedfw.api import RefusedPod
from kschedfw.cluster import Cluster
from kschedfw.explain import Explaining, Explanation
from kschedfw.scheduler import HostSelector, Setup, objects_of
from kschedfw.simulator import Report
from kschedfw_lab.compare.comparison import ComparedRun, Comparison, Move, Moves, fate, place
from kschedfw_lab.compare.own_metrics import OwnMetric
from kschedfw_lab.compare.trial import Trial
from kschedfw_lab.compare.upgrade import reasons
from kschedfw_lab.compare.why import Against, against

Progress = Callable[[str, int, int], None]
"""Called with the label of the step, the number of finished pods and the number of all pods."""

Asked = Mapping[str, Collection[str]]
"""Nodes by pod. The comparison records why these nodes weren't chosen for the pod."""

_NOTHING: Asked = {}


def compare(
    cluster: Cluster,
    candidates: Sequence[Setup],
    *,
    seed: int = 0,
    selector: Callable[[], HostSelector | None] = lambda: None,
    start_time: datetime | None = None,
    attempt_time: float = 0.0,
    registry: Registry | None = None,
    parallelism: int = 1,
    clock: Callable[[], float] = lambda: 0.0,
    progress: Progress | None = None,
    notes: Sequence[str] = (),
    refused: Sequence[RefusedPod] = (),
    remake: Callable[[FeatureGates], Setup] | None = None,
    metrics: Mapping[str, OwnMetric] | None = None,
    causes: bool = False,
) -> Comparison:
    """Simulate the cluster under each candidate, and compare each with the first one.

    The cluster doesn't change: each simulation has a copy, and begins with the same `seed` at the same `start_time`.
    `attempt_time` is the virtual time of an attempt, in seconds (see `Simulation`). The first candidate runs twice:
    only after the other runs is it known for which pods and nodes the reasons are needed. `selector` makes a new
    HostSelector for each run. `clock` is only used for the reports' `elapsed`. `metrics` are own metrics to measure; by
    default those of installed distributions. `notes`, and pods that admission
    `refused`, are passed on to the comparison.

    Candidates that are one configuration in several versions of Kubernetes are compared with `remake`, which returns
    that configuration with other gates: then the changes are found that pods fare differently by. Each candidate is
    simulated some more times for that, with a part of the changes.

    With `causes`, the decisions say what keeps pods without a place off nodes.

    Raises:
        ValueError: there is no candidate, or two have the same label.
        ProfileError, PluginError: a profile can't run.
        ExtenderConfigError, MissingExtraError: extenders can't run.
    """
    labels = [candidate.label for candidate in candidates]
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"candidates need labels of their own, and there must be some; found {labels}")
    trial = Trial(
        objects_of(cluster),
        seed=seed,
        selector=selector,
        start_time=start_time,
        attempt_time=attempt_time,
        registry=registry,
        parallelism=parallelism,
        clock=clock,
        refused=refused,
        metrics=metrics,
    )

    def run(candidate: Setup, asked: Asked, what: str = "") -> tuple[ComparedRun, _Said]:
        """Simulate, and record why the nodes in `asked` weren't chosen."""
        said = _Said(asked)
        return trial.run(
            candidate,
            explaining=Explaining(said.hear, said.wants, beyond_on=said.nodes_of) if asked else None,
            # The second run of the baseline is only asked about nodes.
            causes=causes and not what,
            progress=None if progress is None else partial(progress, what or candidate.label),
        ), said

    first, *others = candidates
    baseline, _ = run(first, _NOTHING)
    runs, moves = [baseline], []
    places = _places(baseline.report)
    asked = {pod: (node,) for pod, node in places.items()}
    for candidate in others:
        if runs[-1].report.interrupted:
            break
        other, said = run(candidate, asked)
        runs.append(other)
        if not other.report.interrupted:
            moves.append(
                Moves(baseline.label, other.label, tuple(_moves(baseline.report, other.report, said)))
            )
    if remake is not None:
        moves = [
            _with_reasons(each, first, candidate, remake, run)
            for each, candidate in zip(moves, others, strict=False)
        ]
    went = _where_they_went(moves)
    if went and not runs[-1].report.interrupted:
        # The same seed and cluster: the second run decides as the first one did.
        again, said = run(first, went, what=f"{first.label}, once more to see why")
        if not again.report.interrupted:
            moves = [_with_baseline_view(each, said) for each in moves]
    return Comparison(seed, runs, moves, tuple(notes))


class _Said:
    """Records why nodes weren't chosen in the pods' last scheduling cycles."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._said: dict[str, Mapping[str, Against]] = {}

    def wants(self, pod: Pod) -> bool:
        return pod.key in self._asked

    def nodes_of(self, pod: Pod) -> Collection[str]:
        return self._asked.get(pod.key, ())

    def hear(self, explanation: Explanation) -> None:
        nodes = self._asked.get(explanation.pod, ())
        self._said[explanation.pod] = {
            node: said for node in nodes if (said := against(explanation, node)) is not None
        }

    def of(self, pod: str, node: str | None) -> Against | None:
        return None if node is None else self._said.get(pod, {}).get(node)


def _places(report: Report) -> Mapping[str, str]:
    return {decision.pod: node for decision in report.decisions if (node := place(decision)) is not None}


def _moves(baseline: Report, other: Report, said: _Said) -> Iterator[Move]:
    before = {decision.pod: decision for decision in baseline.decisions}
    after = {decision.pod: decision for decision in other.decisions}
    # A dict, which keeps the baseline's order.
    for pod in {**before, **after}:
        had, has = before.get(pod), after.get(pod)
        if fate(had) != fate(has):
            yield Move(pod, had, has, against=said.of(pod, place(had)))


def _with_reasons(
    moves: Moves,
    first: Setup,
    other: Setup,
    remake: Callable[[FeatureGates], Setup],
    run: Callable[[Setup, Asked, str], tuple[ComparedRun, _Said]],
) -> Moves:
    number = count(1)

    def fates_with(gates: FeatureGates) -> Mapping[str, object]:
        report = run(remake(gates), _NOTHING, f"{moves.label}, by which change ({next(number)})")[0].report
        return {decision.pod: fate(decision) for decision in report.decisions}

    found = reasons(
        first.configuration.gates,
        other.configuration.gates,
        {move.pod: fate(move.before) for move in moves.moves},
        {move.pod: fate(move.after) for move in moves.moves},
        fates_with,
    )
    return attrs.evolve(
        moves, moves=tuple(attrs.evolve(move, reason=found.get(move.pod)) for move in moves.moves)
    )


def _where_they_went(moves: Sequence[Moves]) -> Asked:
    went: dict[str, set[str]] = {}
    for each in moves:
        for move in each.moves:
            if (node := place(move.after)) is not None:
                went.setdefault(move.pod, set()).add(node)
    return went


def _with_baseline_view(moves: Moves, said: _Said) -> Moves:
    return attrs.evolve(
        moves,
        moves=tuple(
            attrs.evolve(move, baseline_against=said.of(move.pod, place(move.after))) for move in moves.moves
        ),
    )
