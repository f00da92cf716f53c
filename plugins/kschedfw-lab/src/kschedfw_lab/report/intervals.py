"""Plots of means and mean differences: a row per treatment, with its interval and all single values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from kschedfw_lab.pages.axes import RIGHT, WIDTH, Axis, mark, ticks
from kschedfw_lab.pages.charts import VALUES, Row, Rows
from kschedfw_lab.report.analysis import Analysis, series_order
from kschedfw_lab.report.comparison import MetricTable
from kschedfw_lab.report.comparison import Row as TreatmentRow
from kschedfw_lab.report.numbers import LEVEL, Format
from kschedfw_lab.report.statistics import Estimate

ROW: Final = 34
"""The height of a treatment's row, which has its name and below it the interval."""

_MIDDLE: Final = 23


@attrs.frozen
class _Sample:
    treatment: int
    estimate: Estimate
    values: Sequence[float]
    text: str


def means(analysis: Analysis, table: MetricTable, form: Format, context: int | None) -> Rows | None:
    """Return the means of the treatments in a context, or overall; None if there is no value."""
    samples = [
        _Sample(row.treatment, row.estimate, tuple(row.values.values()), form.value(row.estimate.mean))
        for row in _rows(table, context)
        if row.estimate
    ]
    caption = _caption(f"Means with {LEVEL} intervals. A stroke is a run.", analysis, context)
    return _intervals(analysis, samples, form, caption)


def differences(analysis: Analysis, table: MetricTable, form: Format, context: int | None) -> Rows | None:
    """Return the mean differences of the treatments from the baseline; None if there is no pair."""
    samples = [
        _Sample(row.treatment, found.estimate, found.values, form.difference(found.estimate.mean))
        for row in _rows(table, context)
        if (found := row.difference)
    ]
    base = analysis.treatment_label(analysis.baseline)
    what = f"Mean differences from {base} with {LEVEL} intervals. A stroke is a pair of runs."
    return _intervals(analysis, samples, form, _caption(what, analysis, context), zero=True)


def _rows(table: MetricTable, context: int | None) -> Sequence[TreatmentRow]:
    return table.overall if context is None else [row for row in table.rows if row.context == context]


def _caption(what: str, analysis: Analysis, context: int | None) -> str:
    if context is not None:
        return f"{analysis.context_label(context)}: {what[0].lower()}{what[1:]}"
    if not analysis.context_factors:
        return what
    return f"{what} Each value is a mean over {' and '.join(analysis.context_factors)}."


def _intervals(
    analysis: Analysis, samples: Iterable[_Sample], form: Format, caption: str, *, zero: bool = False
) -> Rows | None:
    order = {treatment: series for series, treatment in enumerate(series_order(analysis))}
    shown = (sample for sample in samples if sample.treatment in order)
    samples = sorted(shown, key=lambda sample: order[sample.treatment])
    if not samples:
        return None
    extent = [value for sample in samples for value in (*sample.values, *sample.estimate.ends)]
    axis = Axis.over([*extent, *([0.0] if zero else [])], RIGHT, WIDTH - VALUES)
    return Rows(
        caption,
        tuple(
            _row(analysis, sample, order[sample.treatment], axis, place * ROW + _MIDDLE)
            for place, sample in enumerate(samples)
        ),
        ticks(axis, form.unit.of_differences if zero else form.unit),
        len(samples) * ROW,
        axis.at(0.0) if zero else None,
    )


def _row(analysis: Analysis, sample: _Sample, number: int, axis: Axis, y: float) -> Row:
    name, estimate = analysis.treatment_label(sample.treatment), sample.estimate
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        low, high = axis.at(estimate.low), axis.at(estimate.high)
        interval = f"M{low} {y}H{high}M{low} {y - 4}v8M{high} {y - 4}v8"
    return Row(
        number,
        name,
        name,
        sample.text,
        y,
        mark(number, axis.at(estimate.mean), y),
        interval,
        "".join(f"M{axis.at(value)} {y - 4}v8" for value in sample.values),
    )
