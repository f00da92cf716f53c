"""The metrics of one run, and its time series."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kschedfw import Pod
from kschedfw.api import PODS
from kschedfw.api.reading import printable
from kschedfw.simulator import Outcome, Spread
from kschedfw_lab.compare import ComparedRun, Comparison, NodeAllocation, RequestMix, fragmentation
from kschedfw_lab.compare.metric_values import COUNTS, DIFFERENCES, WITHIN, value_of
from kschedfw_lab.sweep.prices import NANO, Prices
from kschedfw_lab.sweep.usage import Usage, mean_over_time

# Each reason is a metric of its own, and messages may name pods or nodes.
_MOST_REASONS: Final = 50
_HUMPS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")

Metrics = Mapping[str, float]
Series = Mapping[str, Sequence[tuple[float, float]]]
"""Pairs of virtual time, in seconds since the start, and value, by metric."""


def metrics_of(run: ComparedRun, usage: Usage, prices: Prices | None = None) -> Metrics:
    """Return all metrics of a finished run; docs/sweep.md describes them.

    Raises:
        SweepError: there is no price for a node.
    """
    return dict(_metrics(run, usage, prices))


def metrics_by_label(comparison: Comparison) -> Mapping[str, Metrics]:
    """Return the metrics of each run of a finished comparison, by its label, without metrics of node times and prices.

    `moved`, `gained`, `lost` and `changed` count the pods whose outcome differs from that under the baseline.
    """
    whole = comparison.runs[:-1] if comparison.interrupted else comparison.runs
    found: dict[str, Metrics] = {}
    for index, run in enumerate(whole):
        differences = {name: int(value_of(name, comparison, index)) if index else 0 for name in DIFFERENCES}
        found[run.label] = {**dict(_outcomes(run)), **differences, **dict(_speed(run))}
    return found


def _metrics(run: ComparedRun, usage: Usage, prices: Prices | None) -> Iterator[tuple[str, float]]:
    yield from _outcomes(run)
    report = run.report
    left = [
        (each, usage.gone[each.pod])
        for each in report.decisions
        if each.bound is not None and each.pod in usage.gone and each.outcome is Outcome.PLACED
    ]
    if left:
        yield from _spread("completion_seconds", (gone - each.arrived for each, gone in left))
    node_prices = {} if prices is None else {node.name: prices.of(node) for node in usage.nodes.values()}
    held, nodes, price = mean_over_time(usage, node_prices)
    if report.replay is not None:
        yield "makespan_seconds", usage.end
        yield "departed", report.replay.departed
        yield "mean_nodes_in_use", nodes
        for peak in report.replay.peaks:
            yield f"peak_utilisation.{peak.resource}", peak.share
            yield f"mean_utilisation.{peak.resource}", held.get(peak.resource, 0.0) / peak.allocatable
    if prices is not None:
        in_use = sum(node_prices[each.node] for each in run.allocations if each.pods)
        yield "cost.hourly", in_use / NANO
        if report.replay is not None:
            yield "cost.total", price * usage.end / 3600 / NANO
    yield from _speed(run)


def _outcomes(run: ComparedRun) -> Iterator[tuple[str, float]]:
    report = run.report
    for name, count in COUNTS.items():
        yield _HUMPS.sub("_", name).lower(), count(run)
    yield from _reasons(run)
    for each in report.utilisation:
        yield f"utilisation.{each.resource}", each.share
        yield f"imbalance.{each.resource}", each.per_node.stddev
    yield WITHIN, run.imbalance_within.mean
    for part in run.fragmentation:
        yield f"fragmentation.{part.resource}", part.share
    yield from _spread(
        "wait_seconds",
        (each.bound - each.arrived for each in report.decisions if each.bound is not None),
    )
    yield from run.own.items()


def _speed(run: ComparedRun) -> Iterator[tuple[str, float]]:
    yield "elapsed_seconds", run.report.elapsed
    yield "decisions_per_second", run.report.decisions_per_second


def _reasons(run: ComparedRun) -> Iterator[tuple[str, int]]:
    for reason in run.report.reasons[:_MOST_REASONS]:
        yield f"pending.{printable(' '.join(reason.text.split()))}", reason.pods
    if others := run.report.reasons[_MOST_REASONS:]:
        yield "pending.other reasons", sum(reason.pods for reason in others)


def _spread(name: str, values: Iterable[float]) -> Iterator[tuple[str, float]]:
    ordered = sorted(values)
    spread = Spread.of(ordered)
    # The median by nearest rank, as `Spread` computes p95.
    median = ordered[(len(ordered) + 1) // 2 - 1] if ordered else 0.0
    yield f"{name}.mean", spread.mean
    yield f"{name}.p50", median
    yield f"{name}.p95", spread.p95
    yield f"{name}.max", spread.max


def series_of(run: ComparedRun, usage: Usage, objects: Iterable[object], points: int) -> Series:
    """Return series of placed, pending, used and fragmented amounts.

    They have `points` values at times that are evenly spread from the start to the last change. If no time passes, they
    have only one value.
    """
    end = usage.end
    times = [end * index / (points - 1) for index in range(points)] if end else [0.0]
    workload = RequestMix.of(obj for obj in objects if isinstance(obj, Pod))
    offered = {each.node: each.allocatable for each in run.allocations}
    found: dict[str, list[tuple[float, float]]] = {}
    for time, state in zip(times, usage.states(times), strict=True):
        values: dict[str, float] = {"placed": state.held[PODS], "pending": state.pending}
        for each in run.report.utilisation:
            values[f"utilisation.{each.resource}"] = state.held[each.resource] / each.allocatable
        allocations = [
            NodeAllocation(node, {name: state.on(node)[name] for name in amounts}, amounts)
            for node, amounts in offered.items()
        ]
        for part in fragmentation(allocations, workload):
            values[f"fragmentation.{part.resource}"] = part.share
        for name, value in values.items():
            found.setdefault(name, []).append((time, value))
    return found
