"""Plots over two axes: means and differences over a numeric factor, and pairs of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kschedfw_lab.pages.axes import MOST_SERIES, SQUARE, Axis, general_ticks, line, mark, ticks
from kschedfw_lab.pages.charts import Chart, Series, across, marked, upwards
from kschedfw_lab.report.analysis import Analysis, series_order
from kschedfw_lab.report.comparison import MetricTable, Row
from kschedfw_lab.report.numbers import LEVEL, Format
from kschedfw_lab.report.question import are_numbers
from kschedfw_lab.report.statistics import Estimate
from kschedfw_lab.results.values import Value

MOST_LINED: Final = 40
"""With more values of a factor than this, single runs are drawn instead of lines."""

_BESIDE: Final = 1.6


def numeric_factor(analysis: Analysis) -> str | None:
    """Return the factor over which means are drawn as lines: the only context factor, or else the compared one.

    Return None if its values aren't numbers, or fewer than three.
    """
    if len(analysis.context_factors) == 1 and len(analysis.contexts) <= MOST_LINED:
        return next(iter(numeric_contexts(analysis)), None)
    if not analysis.context_factors and len(analysis.question.compared) == 1:
        return (
            analysis.question.compared[0] if _are_numbers([cell[0] for cell in analysis.treatments]) else None
        )
    return None


def numeric_contexts(analysis: Analysis) -> list[str]:
    """Return the context factors with at least three values, all of them numbers."""
    columns = zip(*analysis.contexts, strict=True)
    # Without factors there are no columns, so the lengths may differ.
    pairs_of = zip(analysis.context_factors, columns, strict=False)
    return [name for name, column in pairs_of if _are_numbers(column)]


def _are_numbers(values: Sequence[Value]) -> bool:
    return len(set(values)) >= 3 and are_numbers(values)


def means(analysis: Analysis, table: MetricTable, form: Format, factor: str) -> Chart | None:
    """Return the means over a factor: a line per treatment, or a single line if the factor is compared.

    Return None if there is no value.
    """
    points = [(row, row.estimate) for row in table.rows if row.estimate]
    caption = f"Means over {factor}, with {LEVEL} intervals."
    return _lines(analysis, points, form, factor, caption)


def differences(analysis: Analysis, table: MetricTable, form: Format, factor: str) -> Chart | None:
    """Return the mean differences from the baseline over a factor; None if there is no pair."""
    points = [(row, row.difference.estimate) for row in table.rows if row.difference]
    base = analysis.treatment_label(analysis.baseline)
    caption = f"Mean differences from {base} over {factor}, with {LEVEL} intervals."
    return _lines(analysis, points, form, factor, caption, zero=True)


def _lines(
    analysis: Analysis,
    points: Sequence[tuple[Row, Estimate]],
    form: Format,
    factor: str,
    caption: str,
    *,
    zero: bool = False,
) -> Chart | None:
    if not points:
        return None
    by_context = factor in analysis.context_factors
    cells = analysis.contexts if by_context else analysis.treatments

    def x_of(row: Row) -> float:
        return float(cells[(row.context or 0) if by_context else row.treatment][0] or 0)

    x = across([x_of(row) for row, _ in points])
    extent = [end for _, estimate in points for end in estimate.ends]
    y = upwards([*extent, *([0.0] if zero else [])])
    order = series_order(analysis)[:MOST_SERIES] if by_context else [analysis.baseline]
    lines = {
        analysis.treatment_label(treatment) if by_context else factor: [
            (x_of(row), estimate)
            for row, estimate in sorted(points, key=lambda each: x_of(each[0]))
            if not by_context or row.treatment == treatment
        ]
        for treatment in order
    }
    return Chart(
        caption,
        f"lines over {factor}",
        factor,
        general_ticks(x),
        ticks(y, form.unit.of_differences if zero else form.unit),
        estimated(lines, x, y),
        left_out=_left_out(analysis) if by_context else 0,
        reference=f"M{x.start} {y.at(0.0)}H{x.end}" if zero else "",
    )


def estimated(lines: Mapping[str, Sequence[tuple[float, Estimate]]], x: Axis, y: Axis) -> tuple[Series, ...]:
    """Return a line with intervals for each name that has points, (x, estimate) in ascending order."""
    series = []
    for number, (name, points) in enumerate(lines.items()):
        # Intervals are drawn beside each other, so that none hides another.
        shift = (number - (len(lines) - 1) / 2) * _BESIDE
        places = [(round(x.at(at) + shift, 1), y.at(estimate.mean)) for at, estimate in points]
        if places:
            bars = (
                f"M{place} {y.at(estimate.low)}V{y.at(estimate.high)}"
                for (place, _), (_, estimate) in zip(places, points, strict=True)
                if estimate.low is not None and estimate.high is not None
            )
            marks = "".join(mark(number, *place) for place in places)
            series.append(Series(number, name, line(places), marks, "".join(bars)))
    return tuple(series)


def values(analysis: Analysis, table: MetricTable, form: Format, factor: str) -> Chart | None:
    """Return every value over a numeric context factor, as a mark; None if there are fewer than three."""
    place = analysis.context_factors.index(factor)
    order = series_order(analysis)[:MOST_SERIES]
    found = {
        number: [
            (float(analysis.contexts[row.context or 0][place] or 0), value)
            for row in table.rows
            if row.treatment == treatment
            for value in row.values.values()
        ]
        for number, treatment in enumerate(order)
    }
    points = [point for own in found.values() for point in own]
    if len(points) < 3:
        return None
    x, y = across([at for at, _ in points]), upwards([value for _, value in points])
    return Chart(
        f"Every run over {factor}.",
        f"runs over {factor}",
        factor,
        general_ticks(x),
        ticks(y, form.unit),
        _marks(analysis, found, x, y),
        left_out=_left_out(analysis),
    )


def pairs(analysis: Analysis, table: MetricTable, form: Format) -> Chart | None:
    """Return each repetition as a mark: its value under the baseline and under a treatment.

    Return None if there are fewer than three.
    """
    baselines = {row.context: row.values for row in table.rows if row.treatment == analysis.baseline}
    order = series_order(analysis)
    found = {
        number: [
            (baselines[row.context][key], value)
            for row in table.rows
            if row.treatment == treatment
            for key, value in row.values.items()
            if key in baselines.get(row.context, {})
        ]
        for number, treatment in enumerate(order[:MOST_SERIES])
        if treatment != analysis.baseline
    }
    both = [value for own in found.values() for point in own for value in point]
    # Fewer than three pairs, of two values each.
    if len(both) < 6:
        return None
    x, y = across(both), upwards(both, SQUARE)
    base = analysis.treatment_label(analysis.baseline)
    return Chart(
        f"Pairs of runs: across, under {base}; up, under the others. On the line both are equal.",
        "pairs of runs",
        base,
        ticks(x, form.unit),
        ticks(y, form.unit),
        _marks(analysis, found, x, y),
        SQUARE,
        _left_out(analysis),
        f"M{x.start} {y.start}L{x.end} {y.end}",
    )


def _marks(
    analysis: Analysis, found: Mapping[int, Sequence[tuple[float, float]]], x: Axis, y: Axis
) -> tuple[Series, ...]:
    """Return a series of marks for each treatment that has points, by its place in the order."""
    order = series_order(analysis)
    return tuple(
        Series(number, analysis.treatment_label(order[number]), marks=marked(points, number, x, y))
        for number, points in found.items()
        if points
    )


def _left_out(analysis: Analysis) -> int:
    return max(0, len(analysis.treatments) - MOST_SERIES)
