"""The geometry of a comparison's plots. Units are those of the SVG's viewBox."""

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

WITHIN = "within a node"

WIDTH = 720
"""The width of all plots. The page scales them."""

NAMES = 180
VALUES = 70
BAR, BAR_GAP, GROUP_GAP = 14, 3, 14
MOST_POINTS = 240
"""The most points of a curve or strip. With more nodes, a point stands for several neighbours."""

CURVE_WIDTH, CURVE_HEIGHT = 340, 180
STRIP = 26


@attrs.frozen
class Bar:
    """A run's bar. `series` is the run's number, which determines the colour."""

    series: int
    label: str
    y: float
    width: float
    text: str


@attrs.frozen
class BarGroup:
    name: str
    y: float
    bars: tuple[Bar, ...]


@attrs.frozen
class Bars:
    """Groups of horizontal bars."""

    id: str
    title: str
    caption: str
    groups: tuple[BarGroup, ...]
    height: float


@attrs.frozen
class Curve:
    series: int
    label: str
    points: str


@attrs.frozen
class Curves:
    """A resource's requested share on each node, the fullest node first. Many nodes are drawn as a line."""

    id: str
    resource: str
    nodes: int
    curves: tuple[Curve, ...]


@attrs.frozen
class Cell:
    x: float
    width: float
    share: float
    title: str


@attrs.frozen
class Strip:
    """All nodes of one run as cells, in the input's order. Fuller nodes are darker."""

    series: int
    label: str
    cells: tuple[Cell, ...]


@attrs.frozen
class Plots:
    """All plots: named bars for few nodes, curves for many."""

    bars: tuple[Bars, ...]
    nodes: tuple[Bars, ...]
    curves: tuple[Curves, ...]
    strips: tuple[Strip, ...]


def plots_of(comparison: Comparison) -> Plots:
    runs = comparison.runs
    is_small = len(runs[0].allocations) <= FEW_NODES
    return Plots(
        tuple(
            plot
            for plot in (
                _bars(
                    "utilisation", "Utilisation", "Requested share of what nodes offer.", runs, shares, 1.0
                ),
                _bars(
                    "imbalance",
                    "Imbalance",
                    "Standard deviation of requested shares between nodes, and within a node on average, in percentage "
                    "points. Shorter is more even.",
                    runs,
                    lambda run: {**deviations(run), WITHIN: run.imbalance_within.mean},
                    unit="",
                ),
                _bars(
                    "fragmentation",
                    "Fragmentation",
                    "Share of what is free that a typical pod of the workload can’t use. Shorter is better.",
                    runs,
                    unusable_shares,
                    1.0,
                ),
            )
            if plot.groups
        ),
        tuple(_node_bars(runs)) if is_small else (),
        () if is_small else tuple(_curves(runs)),
        tuple(_strip(number, run) for number, run in enumerate(runs)),
    )


def _bars(
    id: str,
    title: str,
    caption: str,
    runs: Sequence[ComparedRun],
    values: Callable[[ComparedRun], Mapping[str, float]],
    scale: float | None = None,
    unit: str = "%",
    names: Sequence[str] | None = None,
    heading: float = 0.0,
) -> Bars:
    """Make bars. `scale` is the value of a bar of full length; by default the largest value.

    There is a group for each of the `names` (by default the resources) that has a value in some run. With `heading`,
    long names are above the bars instead of beside them.
    """
    of_runs = [values(run) for run in runs]
    known = (*resources_of(runs), WITHIN) if names is None else names
    names = [name for name in known if any(name in each for each in of_runs)]
    longest = scale or max((each.get(name, 0.0) for each in of_runs for name in names), default=0.0) or 1.0
    room = WIDTH - NAMES - VALUES
    groups: list[BarGroup] = []
    y = 0.0
    for name in names:
        bars = tuple(
            Bar(
                number,
                run.label,
                y + heading + number * (BAR + BAR_GAP),
                room * min(1.0, each.get(name, 0.0) / longest),
                percent(each.get(name), unit),
            )
            for number, (run, each) in enumerate(zip(runs, of_runs, strict=True))
        )
        groups.append(BarGroup(name, y, bars))
        y += heading + len(runs) * (BAR + BAR_GAP) + GROUP_GAP
    return Bars(id, title, caption, tuple(groups), y - GROUP_GAP)


def _node_bars(runs: Sequence[ComparedRun]) -> Iterator[Bars]:
    """Yield bars with the requested share of each node, by resource, in the order of the input."""
    nodes = [allocation.node for allocation in runs[0].allocations]
    for index, resource in enumerate(resources_of(runs)):
        yield _bars(
            f"nodes-{index}",
            resource,
            "Requested share per node.",
            runs,
            partial(_by_node, resource),
            1.0,
            names=nodes,
            heading=BAR + BAR_GAP,
        )


def _by_node(resource: str, run: ComparedRun) -> Mapping[str, float]:
    return {each.node: share for each in run.allocations if (share := each.share(resource)) is not None}


def _curves(runs: Sequence[ComparedRun]) -> list[Curves]:
    found = []
    for index, resource in enumerate(resources_of(runs)):
        curves, nodes = [], 0
        for number, run in enumerate(runs):
            ordered = sorted(
                (share for each in run.allocations if (share := each.share(resource)) is not None),
                reverse=True,
            )
            nodes = max(nodes, len(ordered))
            curves.append(Curve(number, run.label, _points(_thinned(ordered))))
        found.append(Curves(f"curve-{index}", resource, nodes, tuple(curves)))
    return found


def _thinned(values: Sequence[float]) -> list[float]:
    """Return at most `MOST_POINTS` of the values, including the first and the last."""
    if len(values) <= MOST_POINTS:
        return list(values)
    step = (len(values) - 1) / (MOST_POINTS - 1)
    return [values[round(index * step)] for index in range(MOST_POINTS)]


def _points(values: Sequence[float]) -> str:
    step = CURVE_WIDTH / max(1, len(values) - 1)
    return " ".join(
        f"{index * step:.1f},{CURVE_HEIGHT * (1 - min(1.0, value)):.1f}" for index, value in enumerate(values)
    )


def _strip(number: int, run: ComparedRun) -> Strip:
    per_cell = max(1, -(-len(run.allocations) // MOST_POINTS))
    groups = [run.allocations[start : start + per_cell] for start in range(0, len(run.allocations), per_cell)]
    width = WIDTH / max(1, len(groups))
    cells = []
    for index, group in enumerate(groups):
        share = sum(map(fullest, group)) / len(group)
        names = group[0].node if len(group) == 1 else f"{group[0].node} to {group[-1].node}, mean"
        cells.append(Cell(index * width, width, min(1.0, share), f"{names}: {percent(share)}"))
    return Strip(number, run.label, tuple(cells))
