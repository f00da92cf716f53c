"""Time series as plots: the mean over all repetitions and the range of their values, by treatment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kschedfw_lab.pages.axes import LEFT, MOST_SERIES, RIGHT, WIDTH, Axis, general_ticks, line, ticks
from kschedfw_lab.pages.charts import Chart, Series, upwards
from kschedfw_lab.report.analysis import Analysis, series_order
from kschedfw_lab.report.numbers import unit_of
from kschedfw_lab.results.results import RunResult
from kschedfw_lab.results.values import Value

Columns: TypeAlias = Mapping[str, Sequence[Value]]
"""The columns that `read_series` returns."""

MOST_CONTEXTS: Final = 6
_POINTS: Final = 120

_Floats: TypeAlias = NDArray[np.float64]
_Curve: TypeAlias = tuple[_Floats, _Floats]


def curves(analysis: Analysis, runs: Sequence[RunResult], series: Columns) -> list[Chart]:
    """Return a chart per metric and context (the first six), with a line per treatment.

    Between two points, a series has the value of the first: most series are counts or shares that change at events.
    """
    by_run = _by_run(series)
    charts: list[Chart] = []
    for metric in dict.fromkeys(str(each) for each in series["metric"]):
        for context in range(min(MOST_CONTEXTS, len(analysis.contexts))):
            chart = _chart(analysis, runs, by_run, metric, context)
            if chart is not None:
                charts.append(chart)
    return charts


def _by_run(series: Columns) -> dict[tuple[str, str], _Curve]:
    points: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for run, time, metric, value in zip(
        *(series[each] for each in ("run", "time", "metric", "value")), strict=True
    ):
        times, values = points.setdefault((str(run), str(metric)), ([], []))
        times.append(float(time or 0))
        values.append(float(value or 0))
    return {key: _sorted(*found) for key, found in points.items()}


def _sorted(times: Sequence[float], values: Sequence[float]) -> _Curve:
    # Stable: of several values at the same time, the last one counts.
    order = np.argsort(times, kind="stable")
    return np.array(times)[order], np.array(values)[order]


def _chart(
    analysis: Analysis,
    runs: Sequence[RunResult],
    by_run: Mapping[tuple[str, str], _Curve],
    metric: str,
    context: int,
) -> Chart | None:
    shown_first = series_order(analysis)
    order = {treatment: series for series, treatment in enumerate(shown_first)}
    places = {cell: place for place, cell in enumerate(analysis.treatments)}
    found: dict[int, list[_Curve]] = {}
    for run in runs:
        curve = by_run.get((run.run, metric))
        if (
            curve is None
            or run.error
            or analysis.contexts[context] != tuple(run.factors[name] for name in analysis.context_factors)
        ):
            continue
        treatment = places[tuple(run.factors[name] for name in analysis.question.compared)]
        if treatment in order:
            found.setdefault(order[treatment], []).append(curve)
    shown = {series: found[series] for series in sorted(found)[:MOST_SERIES]}
    if not shown:
        return None
    every = [curve for own in shown.values() for curve in own]
    begin, end = min(times[0] for times, _ in every), max(times[-1] for times, _ in every)
    grid = np.linspace(begin, end if end > begin else begin + 1, _POINTS)
    sampled = {series: np.array([_at(curve, grid) for curve in own]) for series, own in shown.items()}
    x = Axis(float(grid[0]), float(grid[-1]), LEFT, WIDTH - RIGHT)
    y = upwards([float(each) for own in sampled.values() for each in (own.min(), own.max())])
    where = f", {analysis.context_label(context)}" if analysis.context_factors else ""
    return Chart(
        f"{metric}{where}.",
        "curves over time",
        "virtual time in seconds",
        general_ticks(x),
        ticks(y, unit_of(metric)),
        tuple(
            Series(
                series,
                analysis.treatment_label(shown_first[series]),
                line=_path(grid, own.mean(axis=0), x, y),
                band=_band(grid, own, x, y) if len(own) > 1 else "",
            )
            for series, own in sampled.items()
        ),
        left_out=len(found) - len(shown),
    )


def _at(curve: _Curve, grid: _Floats) -> _Floats:
    """Return the curve's values at these times. Times before the first point have its value."""
    times, values = curve
    found: _Floats = values[np.maximum(0, np.searchsorted(times, grid, side="right") - 1)]
    return found


def _path(grid: _Floats, values: _Floats, x: Axis, y: Axis) -> str:
    return line([(x.at(float(time)), y.at(float(value))) for time, value in zip(grid, values, strict=True)])


def _band(grid: _Floats, own: _Floats, x: Axis, y: Axis) -> str:
    upper, lower = own.max(axis=0), own.min(axis=0)
    return _path(np.concatenate((grid, grid[::-1])), np.concatenate((upper, lower[::-1])), x, y) + "z"
