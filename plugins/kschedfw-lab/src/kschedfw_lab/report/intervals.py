"""Plots of means and mean differences: a row per treatment, with its interval and all single values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from kschedfw_lab.report.analysis import Analysis
from kschedfw_lab.report.axes import RIGHT, WIDTH, Axis, Tick, series_order, ticks
from kschedfw_lab.report.comparison import MetricTable, Row
from kschedfw_lab.report.numbers import LEVEL, Format
from kschedfw_lab.report.statistics import Estimate

ROW: Final = 34
"""The height of a treatment's row, which has its name and below it the interval."""

VALUES: Final = 76
"""The width of the column with the means as texts."""


@attrs.frozen
class Interval:
    """A row of the plot. `low` and `high` are None if there is no interval. `values` is the path data of all values."""

    series: int
    name: str
    text: str
    y: float
    mean: float
    low: float | None
    high: float | None
    values: str


@attrs.frozen
class Intervals:
    """A plot of one context. `zero` is the position of 0 in plots of differences, else None."""

    caption: str
    rows: tuple[Interval, ...]
    ticks: tuple[Tick, ...]
    zero: float | None
    height: float


@attrs.frozen
class _Sample:
    treatment: int
    estimate: Estimate
    values: Sequence[float]
    text: str


def means(analysis: Analysis, table: MetricTable, form: Format, context: int | None) -> Intervals | None:
    """Return the means of the treatments in a context, or overall; None if there is no value."""
    samples = [
        _Sample(row.treatment, row.estimate, tuple(row.values.values()), form.value(row.estimate.mean))
        for row in _rows(table, context)
        if row.estimate
    ]
    caption = _caption(f"Means with {LEVEL} intervals. A stroke is a run.", analysis, context)
    return _intervals(analysis, samples, form, caption)


def differences(
    analysis: Analysis, table: MetricTable, form: Format, context: int | None
) -> Intervals | None:
    """Return the mean differences of the treatments from the baseline; None if there is no pair."""
    samples = [
        _Sample(row.treatment, found.estimate, found.values, form.difference(found.estimate.mean))
        for row in _rows(table, context)
        if (found := row.difference)
    ]
    base = analysis.treatment_label(analysis.baseline)
    what = f"Mean differences from {base} with {LEVEL} intervals. A stroke is a pair of runs."
    return _intervals(analysis, samples, form, _caption(what, analysis, context), zero=True)


def _rows(table: MetricTable, context: int | None) -> Sequence[Row]:
    return table.overall if context is None else [row for row in table.rows if row.context == context]


def _caption(what: str, analysis: Analysis, context: int | None) -> str:
    if context is not None:
        return f"{analysis.context_label(context)}: {what[0].lower()}{what[1:]}"
    if not analysis.context_factors:
        return what
    return f"{what} Each value is a mean over {' and '.join(analysis.context_factors)}."


def _intervals(
    analysis: Analysis, samples: Iterable[_Sample], form: Format, caption: str, *, zero: bool = False
) -> Intervals | None:
    order = {treatment: series for series, treatment in enumerate(series_order(analysis))}
    shown = (sample for sample in samples if sample.treatment in order)
    samples = sorted(shown, key=lambda sample: order[sample.treatment])
    if not samples:
        return None
    extent = [value for sample in samples for value in (*sample.values, *sample.estimate.ends)]
    axis = Axis.over([*extent, *([0.0] if zero else [])], RIGHT, WIDTH - VALUES)
    return Intervals(
        caption,
        tuple(
            _row(analysis, sample, order[sample.treatment], axis, place * ROW)
            for place, sample in enumerate(samples)
        ),
        ticks(axis, form.unit.of_differences if zero else form.unit),
        axis.at(0.0) if zero else None,
        len(samples) * ROW,
    )


def _row(analysis: Analysis, sample: _Sample, series: int, axis: Axis, y: float) -> Interval:
    estimate = sample.estimate
    return Interval(
        series,
        analysis.treatment_label(sample.treatment),
        sample.text,
        y,
        axis.at(estimate.mean),
        None if estimate.low is None else axis.at(estimate.low),
        None if estimate.high is None else axis.at(estimate.high),
        "".join(f"M{axis.at(value)} {y + 19:.0f}v8" for value in sample.values),
    )
