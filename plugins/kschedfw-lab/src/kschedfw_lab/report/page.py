"""The page of a report: one HTML file with all tables and plots.

It has no scripts, and loads nothing from elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from kschedfw_lab.pages.charts import Chart, Rows
from kschedfw_lab.pages.static_page import check_page_file, environment
from kschedfw_lab.report import charts, intervals
from kschedfw_lab.report.analysis import MOST_TREATMENTS, Analysis, named, series_order
from kschedfw_lab.report.comparison import MetricTable, Row
from kschedfw_lab.report.curves import Columns, curves
from kschedfw_lab.report.numbers import Format, Judgement, judgement, probability
from kschedfw_lab.report.question import label
from kschedfw_lab.results.results import RunResult

MOST_CONTEXTS: Final = 40
"""The most combinations of context factors on the page. The JSON has all of them."""

MOST_PLOTTED: Final = 4
"""The most combinations, and the most factors, for which each metric has plots."""

MOST_LISTED: Final = 100
_FOLDED: Final = 24
"""Tables with more rows than this are folded."""


@attrs.frozen
class Cell:
    """A cell of the overview."""

    text: str
    difference: str = ""
    judgement: Judgement | None = None
    tally: str = ""


@attrs.frozen
class Figures:
    """A row of a metric's table, as texts."""

    context: str
    series: int
    treatment: str
    values: int
    mean: str
    interval: str
    difference: str = ""
    difference_interval: str = ""
    pairs: str = ""
    p: str = ""
    judgement: Judgement | None = None


@attrs.frozen
class Section:
    """The part of the page about one metric."""

    id: str
    table: MetricTable
    overview: tuple[Cell, ...]
    intervals: tuple[Rows, ...]
    charts: tuple[Chart, ...]
    by_context: tuple[Rows, ...]
    figures: tuple[Figures, ...]
    is_folded: bool


class ReportPage:
    """Writes a report to a file. The constructor checks that the file can be written, before any work.

    Raises:
        PageFileError: the file can't be written.
    """

    def __init__(self, file: str | Path) -> None:
        self._template = environment("kschedfw_lab.report").get_template("report.html")
        self.file = Path(file)
        check_page_file(self.file)

    def write(
        self,
        analysis: Analysis,
        runs: Sequence[RunResult] = (),
        series: Columns | None = None,
        title: str = "",
    ) -> None:
        """Write the page.

        Args:
            analysis: the analysis.
            runs: the runs, if there are series.
            series: the columns of `read_series`.
            title: the title of the page.

        Raises:
            OSError: the file can't be written.
        """
        order = series_order(analysis)
        page = self._template.render(
            analysis=analysis,
            title=title,
            keys=[(number, analysis.treatment_label(place)) for number, place in enumerate(order)],
            sections=[
                section_of(analysis, table, number)
                for number, table in enumerate(analysis.tables)
                if table.only_value is None
            ],
            constant=constant_metrics(analysis),
            curves=curves(analysis, runs, series) if series else [],
            listed=MOST_LISTED,
            contexts=MOST_CONTEXTS,
            label=label,
            most=MOST_TREATMENTS,
        )
        # Names of files may have bytes that aren't UTF-8; Python keeps them as characters that it can't encode.
        self.file.write_text(page, encoding="utf-8", errors="replace")


def section_of(analysis: Analysis, table: MetricTable, number: int) -> Section:
    """Return a metric's part of the page."""
    form = Format.of(table)
    factor = charts.numeric_factor(analysis)
    lines = () if factor is None else (charts.means, charts.differences)
    scattered = charts.numeric_contexts(analysis) if factor is None else []
    drawn = [
        *(draw(analysis, table, form, factor or "") for draw in lines),
        charts.pairs(analysis, table, form),
        *(charts.values(analysis, table, form, each) for each in scattered[:MOST_PLOTTED]),
    ]
    contexts = range(min(MOST_PLOTTED, len(analysis.contexts))) if analysis.context_factors else ()
    figures = _figures(analysis, table, form)
    return Section(
        f"metric-{number}",
        table,
        tuple(overview_of(analysis, table)),
        _intervals(analysis, table, form, [None] if factor not in analysis.question.compared else []),
        tuple(each for each in drawn if each is not None),
        _intervals(analysis, table, form, contexts if factor is None and not scattered else []),
        tuple(figures),
        len(figures) > _FOLDED,
    )


def constant_metrics(analysis: Analysis) -> dict[str, str]:
    """Return the metrics that have the same value in every run, with this value."""
    found = {table.metric: (table, table.only_value) for table in analysis.tables}
    return {
        metric: Format.of(table).value(only) for metric, (table, only) in found.items() if only is not None
    }


def _intervals(
    analysis: Analysis, table: MetricTable, form: Format, contexts: Iterable[int | None]
) -> tuple[Rows, ...]:
    drawn = (
        draw(analysis, table, form, context)
        for context in contexts
        for draw in (intervals.means, intervals.differences)
    )
    return tuple(each for each in drawn if each is not None)


def overview_of(analysis: Analysis, table: MetricTable) -> list[Cell]:
    """Return a metric's cells, one per treatment and the baseline first: mean, and difference from the baseline."""
    form = Format.of(table)
    by_treatment: dict[int, list[Row]] = {}
    for row in table.rows:
        by_treatment.setdefault(row.treatment, []).append(row)
    overall = {row.treatment: row for row in table.overall}
    return [
        _overview_cell(table, form, overall.get(treatment), by_treatment.get(treatment, []))
        for treatment in series_order(analysis)
    ]


def _overview_cell(table: MetricTable, form: Format, overall: Row | None, rows: Sequence[Row]) -> Cell:
    mean = "–" if overall is None else form.mean(overall.estimate)
    if overall is None or overall.difference is None:
        return Cell(mean)
    judged = judgement(table, overall.difference)
    difference = "" if judged.sign == "=" else form.difference(overall.difference.estimate.mean)
    tally = _tally(table, rows) if len(rows) > 1 and difference else ""
    return Cell(mean, difference, judged, tally)


def _tally(table: MetricTable, rows: Sequence[Row]) -> str:
    """Return in how many contexts a difference is significant, as text."""
    found = [judgement(table, row.difference) for row in rows if row.difference is not None]
    told = Counter(each.tone or each.words for each in found if each.is_told)
    counts = ", ".join(f"{count} {words}" for words, count in told.items())
    return f"of {len(found)}: {counts or 'none told'}"


def figures_of(analysis: Analysis, table: MetricTable, form: Format, row: Row, series: int) -> Figures:
    """Return a row of a metric's table."""
    basic = Figures(
        "all" if row.context is None else named(analysis.context_factors, analysis.contexts[row.context]),
        series,
        analysis.treatment_label(row.treatment),
        len(row.values),
        form.mean(row.estimate),
        form.interval(row.estimate),
    )
    difference = row.difference
    if difference is None:
        return basic
    return attrs.evolve(
        basic,
        difference=form.difference(difference.estimate.mean),
        difference_interval=form.difference_interval(difference.estimate),
        pairs=str(difference.estimate.count),
        p=probability(difference.corrected),
        judgement=judgement(table, difference),
    )


def _figures(analysis: Analysis, table: MetricTable, form: Format) -> list[Figures]:
    """Return the rows of a metric's table: overall, then by context, the baseline first."""
    order = {treatment: series for series, treatment in enumerate(series_order(analysis))}
    rows = (*(table.overall if analysis.context_factors else ()), *table.rows)
    shown = (row for row in rows if row.treatment in order and (row.context or 0) < MOST_CONTEXTS)
    sorted_rows = sorted(
        shown, key=lambda row: (-1 if row.context is None else row.context, order[row.treatment])
    )
    return [figures_of(analysis, table, form, row, order[row.treatment]) for row in sorted_rows]
