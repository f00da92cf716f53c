"""A comparison as rows of text, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from kschedfw.api import PODS
from kschedfw.simulator import Decision, Outcome
from kschedfw_lab.compare import (
    Against,
    ComparedRun,
    Comparison,
    FateChange,
    Ground,
    Move,
    Moves,
    NodeAllocation,
)

FEW_NODES = 20
"""The most nodes that are shown one by one. More nodes are counted by how full they are."""

NOTHING = "–"

FRAGMENTATION_NOTE = "share of what is free that a typical pod of the workload can't use"

_STEPS = ((0.25, "below 25%"), (0.5, "25% to 50%"), (0.75, "50% to 75%"), (1.0, "75% to 100%"))
_FULL = "full"


@attrs.frozen
class Section:
    """A table: rows with a value for each column. The columns are labels of runs; `note` explains the values."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, tuple[str, ...]]]
    note: str = ""


@attrs.frozen
class Fate:
    """A pod's outcome under one configuration, and why other nodes weren't chosen."""

    label: str
    what: str
    why: tuple[str, ...] = ()


@attrs.frozen
class Story:
    """A pod with different outcomes: its outcome under the baseline, and under each configuration where it differs."""

    pod: str
    fates: tuple[Fate, ...]


def sections(comparison: Comparison) -> Iterator[Section]:
    """Yield all tables of the comparison, without single pods."""
    runs = comparison.runs
    yield _pods(runs)
    yield _by_resource("Requested share of what nodes offer", runs, shares, "%")
    yield _imbalance(runs)
    if any(run.fragmentation for run in runs):
        yield _by_resource("Fragmentation", runs, unusable_shares, "%", FRAGMENTATION_NOTE)
    if any(run.own for run in runs):
        yield _own(runs)
    yield _single_nodes(runs) if len(runs[0].allocations) <= FEW_NODES else _fullness(runs)
    if comparison.moves:
        yield _changes(comparison.moves)
    if any(moves.reasons for moves in comparison.moves):
        yield _reasons(comparison.moves)
    if any(moves.causes for moves in comparison.moves):
        yield _causes(comparison.moves)


def _pods(runs: Sequence[ComparedRun]) -> Section:
    counts: list[tuple[str, Callable[[ComparedRun], int]]] = [
        ("placed", lambda run: run.report.placed),
        ("preempted", lambda run: run.report.preempted),
        ("deleted", lambda run: run.report.deleted),
        ("unschedulable", lambda run: run.report.unschedulable),
        ("gated", lambda run: run.report.gated),
        ("failed", lambda run: run.report.failed),
        ("not tried", lambda run: run.report.left),
        ("for another scheduler", lambda run: run.report.other_scheduler),
        ("attempts", lambda run: run.report.attempts),
        ("preemptions", lambda run: run.report.preemptions),
        ("victims of preemption", lambda run: run.report.victims),
        ("nodes in use", lambda run: run.nodes_in_use),
        ("nodes with their own pods only", lambda run: run.nodes_with_own_pods_only),
    ]
    always = ("placed", "unschedulable", "attempts", "nodes in use")
    rows = [(name, tuple(map(count, runs))) for name, count in counts]
    return Section(
        "Pods",
        tuple(run.label for run in runs),
        [
            (name, tuple(f"{value:,}" for value in values))
            for name, values in rows
            if any(values) or name in always
        ],
    )


def _own(runs: Sequence[ComparedRun]) -> Section:
    names = dict.fromkeys(name for run in runs for name in run.own)
    return Section(
        "Own metrics",
        tuple(run.label for run in runs),
        [
            (name, tuple(f"{run.own[name]:,.6g}" if name in run.own else "-" for run in runs))
            for name in names
        ],
    )


def resources_of(runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """Return the resources that nodes have and that are requested under any configuration, without `pods`."""
    return tuple(
        dict.fromkeys(
            usage.resource
            for run in runs
            for usage in run.report.utilisation
            if usage.requested > 0 and usage.resource != PODS
        )
    )


def shares(run: ComparedRun) -> dict[str, float]:
    """Return the requested share of all allocatable amounts, by resource."""
    return {usage.resource: usage.share for usage in run.report.utilisation}


def deviations(run: ComparedRun) -> dict[str, float]:
    """Return the standard deviation of the nodes' requested shares, by resource."""
    return {usage.resource: usage.per_node.stddev for usage in run.report.utilisation}


def unusable_shares(run: ComparedRun) -> dict[str, float]:
    """Return the unusable share of free amounts, by resource."""
    return {each.resource: each.share for each in run.fragmentation}


def _by_resource(
    title: str,
    runs: Sequence[ComparedRun],
    values: Callable[[ComparedRun], dict[str, float]],
    unit: str,
    note: str = "",
) -> Section:
    of_runs = [values(run) for run in runs]
    return Section(
        title,
        tuple(run.label for run in runs),
        [
            (name, tuple(percent(each.get(name), unit) for each in of_runs))
            for name in resources_of(runs)
            if any(name in each for each in of_runs)
        ],
        note,
    )


def _imbalance(runs: Sequence[ComparedRun]) -> Section:
    between = _by_resource(
        "Imbalance", runs, deviations, "", "standard deviation of the requested share, in percentage points"
    )
    within = ("within a node", tuple(percent(run.imbalance_within.mean, "") for run in runs))
    return attrs.evolve(
        between, rows=[*((f"between nodes, {name}", cells) for name, cells in between.rows), within]
    )


def _single_nodes(runs: Sequence[ComparedRun]) -> Section:
    rows = []
    for index, allocation in enumerate(runs[0].allocations):
        for name in resources_of(runs):
            if allocation.share(name) is not None:
                cells = tuple(percent(run.allocations[index].share(name)) for run in runs)
                rows.append((f"{allocation.node}, {name}", cells))
    return Section("Requested share per node", tuple(run.label for run in runs), rows)


def fullest(allocation: NodeAllocation) -> float:
    """Return the highest requested share of the node's resources, without `pods`."""
    found = [allocation.share(name) or 0.0 for name in allocation.allocatable if name != PODS]
    return max(found, default=0.0)


def _fullness(runs: Sequence[ComparedRun]) -> Section:
    def step(allocation: NodeAllocation) -> str:
        if not allocation.pods:
            return "no pod"
        share = fullest(allocation)
        return next((name for limit, name in _STEPS if share < limit), _FULL)

    steps = [[step(allocation) for allocation in run.allocations] for run in runs]
    names = ("no pod", *(name for _, name in _STEPS), _FULL)
    return Section(
        "Nodes by how full they are",
        tuple(run.label for run in runs),
        [(name, tuple(f"{each.count(name):,}" for each in steps)) for name in names],
        "by the resource of which the largest share is requested",
    )


def _changes(all_moves: Sequence[Moves]) -> Section:
    return Section(
        f"Pods that fared differently than under {all_moves[0].baseline}",
        tuple(moves.label for moves in all_moves),
        [
            (change.value, tuple(f"{moves.count(change):,}" for moves in all_moves))
            for change in FateChange
            if change is not FateChange.OTHER or any(moves.count(change) for moves in all_moves)
        ],
    )


def _reasons(all_moves: Sequence[Moves]) -> Section:
    known = dict.fromkeys(reason for moves in all_moves for reason in moves.reasons)
    return Section(
        "By which change of the version",
        tuple(moves.label for moves in all_moves),
        [(reason, tuple(f"{moves.reasons.get(reason, 0):,}" for moves in all_moves)) for reason in known],
        "pods; a pod that only gives way to one of them counts with it",
    )


_GROUNDS = {
    Ground.REFUSED: "refused",
    Ground.OUTSCORED: "fewer points",
    Ground.TIED: "equally good, not drawn",
    Ground.UNSEEN: "not looked at",
}


def _causes(all_moves: Sequence[Moves]) -> Section:
    causes = dict.fromkeys(cause for moves in all_moves for cause in moves.causes)
    ordered = sorted(causes, key=lambda cause: -max(moves.causes.get(cause, 0) for moves in all_moves))
    return Section(
        f"What spoke against the node that {all_moves[0].baseline} chose",
        tuple(moves.label for moves in all_moves),
        [
            (
                f"{_GROUNDS[ground]}{f': {plugin}' if plugin else ''}",
                tuple(f"{moves.causes.get((ground, plugin), 0):,}" for moves in all_moves),
            )
            for ground, plugin in ordered
        ],
        "pods, by the plugin that refused the node, or made most of the difference in points",
    )


_GRAVITY = {FateChange.LOST: 0, FateChange.GAINED: 1, FateChange.OTHER: 2, FateChange.MOVED: 3}


def stories(comparison: Comparison, most: int) -> Iterator[Story]:
    """Yield up to `most` of the pods with different outcomes. Pods that weren't placed come first."""
    by_pod: dict[str, list[tuple[str, Move]]] = {}
    for moves in comparison.moves:
        for move in moves.moves:
            by_pod.setdefault(move.pod, []).append((moves.label, move))
    baseline = comparison.runs[0].label
    gravest = {pod: min(_GRAVITY[move.change] for _, move in found) for pod, found in by_pod.items()}
    for pod in sorted(by_pod, key=gravest.__getitem__)[:most]:
        found = by_pod[pod]
        baseline_against = (move.baseline_against for _, move in found)
        yield Story(
            pod,
            (
                Fate(baseline, _fate(found[0][1].before), _told(*baseline_against)),
                *(Fate(label, _fate(move.after), _why(move)) for label, move in found),
            ),
        )


def _told(*found: Against | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(each) for each in found if each is not None))


def _why(move: Move) -> tuple[str, ...]:
    return (*_told(move.against), *(() if move.reason is None else (f"by {move.reason}",)))


def moved_anywhere(comparison: Comparison) -> int:
    """Return how many pods have a different outcome under any configuration."""
    return len({move.pod for moves in comparison.moves for move in moves.moves})


def _fate(decision: Decision | None) -> str:
    if decision is None:
        return "not scheduled"
    if decision.outcome is Outcome.PLACED:
        return decision.node or ""
    where = f" from {decision.node}" if decision.node else ""
    return f"{decision.outcome.value}{where}{f': {decision.message}' if decision.message else ''}"


def percent(share: float | None, unit: str = "%") -> str:
    return NOTHING if share is None else f"{share * 100:.1f}{unit}"
