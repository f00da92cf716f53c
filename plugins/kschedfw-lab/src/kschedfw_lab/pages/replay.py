"""Simulations for the page: the history of every step, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kschedfw.api import Node
from kschedfw.simulator import Report, Timeline
from kschedfw_lab.pages.cluster_map import ClusterMap, cluster_map, row_of
from kschedfw_lab.pages.columns import Column, column

INTERRUPTED = "It was interrupted: this is what was done so far."

MOST_STEPS = 20_000
"""The most steps that the page gets; of longer simulations a step stands for several attempts."""


class Moves(msgspec.Struct, frozen=True):
    """Changes in order: at the end of a step a pod, by its place in the map, is at a row of the nodes."""

    steps: Column
    pods: Column
    nodes: Column


class PodView(msgspec.Struct, frozen=True):
    """The outcome for a pod, and kube-scheduler's message if it wasn't placed."""

    pod: int
    outcome: str
    message: str
    attempts: int


class Run(msgspec.Struct, frozen=True):
    """One simulation. `start` has the row of each pod's node at step 0; `figures` are the report's, as text."""

    label: str
    start: Column
    times: list[float]
    queues: dict[str, Column]
    moves: Moves
    outcomes: list[PodView]
    figures: list[tuple[str, str]]
    notes: list[str]


class ReplayView(msgspec.Struct, frozen=True):
    """Simulations of the same cluster, and the map of all pods that ever existed, at the start of the first one."""

    map: ClusterMap
    runs: list[Run]


def replay(nodes: Sequence[Node], runs: Sequence[tuple[str, Timeline, Report]]) -> ReplayView:
    """Return the data to show these simulations, each with its label."""
    pods = {key: pod for _, timeline, _ in runs for key, pod in timeline.pods.items()}
    first = runs[0][1].start
    overall = cluster_map(nodes, list(pods.values()), {key: first.get(key) for key in pods})
    rows = {name: row for row, name in enumerate(overall.nodes.names)}
    places = {key: place for place, key in enumerate(pods)}
    return ReplayView(
        overall, [_run(label, timeline, report, rows, places) for label, timeline, report in runs]
    )


def _run(
    label: str, timeline: Timeline, report: Report, rows: Mapping[str, int], places: Mapping[str, int]
) -> Run:
    steps = len(timeline.times)
    stride = max(1, -(-steps // MOST_STEPS))
    kept = [*range(0, steps - 1, stride), steps - 1]
    last = len(kept) - 1
    return Run(
        label,
        start=column(row_of(timeline.start.get(pod), rows) for pod in places),
        times=[timeline.times[step] for step in kept],
        queues={
            place.value: column(numbers[step] for step in kept) for place, numbers in timeline.queues.items()
        },
        moves=Moves(
            # Rounded up: a change is seen at the first kept step that isn't before it.
            column(min(-(-step // stride), last) for step, _, _ in timeline.moves),
            column(places[pod] for _, pod, _ in timeline.moves),
            column(row_of(place, rows) for _, _, place in timeline.moves),
        ),
        outcomes=[
            PodView(places[each.pod], each.outcome.value, each.message, each.attempts)
            for each in report.decisions
            if each.pod in places
        ],
        figures=figures_of(report),
        notes=[*([INTERRUPTED] if report.interrupted else []), *report.notes],
    )


def figures_of(report: Report) -> list[tuple[str, str]]:
    """Return the report's figures in words."""
    counts = [
        ("pods to schedule", report.pods),
        ("placed", report.placed),
        ("unschedulable", report.unschedulable),
        ("preempted", report.preempted),
        ("deleted", report.deleted),
        ("gated", report.gated),
        ("failed", report.failed),
        ("not tried before the interruption", report.left),
        ("attempts", report.attempts),
        ("pods that made room by preemption", report.preemptions),
        ("victims of preemption", report.victims),
    ]
    shown = [
        (name, f"{count:,}") for name, count in counts if count or name in ("pods to schedule", "placed")
    ]
    shares = [(f"{usage.resource} requested", f"{usage.share:.1%}") for usage in report.utilisation]
    return [*shown, *shares]
