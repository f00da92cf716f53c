"""A comparison's plots: rows of bars, curves over many nodes, and a strip with all nodes for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from kschedfw_lab.cli.compare_rows import (
    FEW_NODES,
    deviations,
    fullest,
    percent,
    resources_of,
    shares,
    unusable_shares,
)
from kschedfw_lab.compare import ComparedRun, Comparison
from kschedfw_lab.pages.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    PERCENT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Tick,
    Unit,
    line,
    ticks,
)
from kschedfw_lab.pages.charts import BAR, VALUES, Chart, Row, Rows, Series, bar

WITHIN = "within a node"

STRIP_WIDTH, STRIP = 720, 26
"""The width and height of a strip, which the page scales."""

MOST_POINTS = 240
"""The most points of a curve or strip. With more nodes, a point stands for several neighbours."""

_HEADING, _GAP, _GROUP_GAP = 20, 3, 6


@attrs.frozen
class Cell:
    x: float
    width: float
    share: float
    title: str


@attrs.frozen
class Strip:
    """All nodes of one run as cells, in the input's order. Fuller nodes are darker."""

    label: str
    cells: tuple[Cell, ...]


@attrs.frozen
class Plots:
    """All plots: named bars for few nodes, curves for many."""

    bars: tuple[Rows, ...]
    nodes: tuple[Rows, ...]
    curves: tuple[Chart, ...]
    strips: tuple[Strip, ...]


def plots_of(comparison: Comparison) -> Plots:
    runs = comparison.runs
    is_small = len(runs[0].allocations) <= FEW_NODES
    names = (*resources_of(runs), WITHIN)
    bars = (
        _bars("Utilisation: requested share of what nodes offer.", runs, shares, names, 1.0),
        _bars(
            "Imbalance: standard deviation of requested shares between nodes, and within a node on average, in "
            "percentage points. Shorter is more even.",
            runs,
            lambda run: {**deviations(run), WITHIN: run.imbalance_within.mean},
            names,
            unit=Unit(100.0, "", ""),
        ),
        _bars(
            "Fragmentation: share of what is free that a typical pod of the workload can’t use. Shorter is better.",
            runs,
            unusable_shares,
            names,
            1.0,
        ),
    )
    return Plots(
        tuple(each for each in bars if each.rows),
        tuple(_node_bars(runs)) if is_small else (),
        () if is_small else tuple(_curves(runs)),
        tuple(map(_strip, runs)),
    )


def _bars(
    caption: str,
    runs: Sequence[ComparedRun],
    values: Callable[[ComparedRun], Mapping[str, float]],
    names: Sequence[str],
    longest: float | None = None,
    unit: Unit = PERCENT,
) -> Rows:
    """Return a group of bars, one for each run, for each of the names that has a value in some run.

    `longest` is the value of a bar of full length; by default the largest value.
    """
    of_runs = [values(run) for run in runs]
    names = [name for name in names if any(name in each for each in of_runs)]
    longest = longest or max((each.get(name, 0.0) for each in of_runs for name in names), default=0.0) or 1.0
    axis = Axis(0.0, longest, RIGHT, WIDTH - VALUES)
    rows: list[Row] = []
    y = 0.0
    for name in names:
        y += _HEADING
        for number, (run, each) in enumerate(zip(runs, of_runs, strict=True)):
            middle, told = y + BAR / 2, percent(each.get(name), unit.text)
            heading = "" if number else name
            drawn = bar(axis, each.get(name, 0.0), middle)
            rows.append(Row(number, f"{name}, {run.label}", heading, told, middle, drawn))
            y += BAR + _GAP
        y += _GROUP_GAP
    return Rows(caption, tuple(rows), ticks(axis, unit), y)


def _node_bars(runs: Sequence[ComparedRun]) -> Iterator[Rows]:
    """Yield bars with the requested share of each node, by resource, in the order of the input."""
    nodes = [allocation.node for allocation in runs[0].allocations]
    for resource in resources_of(runs):
        yield _bars(f"{resource}: requested share per node.", runs, partial(_by_node, resource), nodes, 1.0)


def _by_node(resource: str, run: ComparedRun) -> Mapping[str, float]:
    return {each.node: share for each in run.allocations if (share := each.share(resource)) is not None}


def _curves(runs: Sequence[ComparedRun]) -> Iterator[Chart]:
    """Yield a resource's requested share on each node, the fullest node first."""
    y = Axis(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    for resource in resources_of(runs):
        ordered = [sorted(_by_node(resource, run).values(), reverse=True) for run in runs]
        nodes = max(map(len, ordered))
        x = Axis(0.0, 1.0, LEFT, WIDTH - RIGHT)
        yield Chart(
            f"{resource}: requested share per node, the fullest first.",
            "requested share per node, sorted; the tables have the figures",
            "nodes",
            (Tick(x.start, "1"), Tick(x.end, f"{nodes:,}")),
            ticks(y, PERCENT),
            tuple(
                Series(number, run.label, line(_points(_thinned(own), x, y)))
                for number, (run, own) in enumerate(zip(runs, ordered, strict=True))
            ),
        )


def _thinned(values: Sequence[float]) -> list[float]:
    """Return at most `MOST_POINTS` of the values, including the first and the last."""
    if len(values) <= MOST_POINTS:
        return list(values)
    step = (len(values) - 1) / (MOST_POINTS - 1)
    return [values[round(index * step)] for index in range(MOST_POINTS)]


def _points(values: Sequence[float], x: Axis, y: Axis) -> list[tuple[float, float]]:
    last = max(1, len(values) - 1)
    return [(x.at(index / last), y.at(min(1.0, value))) for index, value in enumerate(values)]


def _strip(run: ComparedRun) -> Strip:
    per_cell = max(1, -(-len(run.allocations) // MOST_POINTS))
    groups = [run.allocations[start : start + per_cell] for start in range(0, len(run.allocations), per_cell)]
    width = STRIP_WIDTH / max(1, len(groups))
    cells = []
    for index, group in enumerate(groups):
        share = sum(map(fullest, group)) / len(group)
        names = group[0].node if len(group) == 1 else f"{group[0].node} to {group[-1].node}, mean"
        cells.append(Cell(index * width, width, min(1.0, share), f"{names}: {percent(share)}"))
    return Strip(run.label, tuple(cells))
