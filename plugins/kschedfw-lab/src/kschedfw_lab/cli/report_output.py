"""The analysis of a sweep as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw_lab.report.analysis import MOST_TREATMENTS, Analysis, named, series_order
from kschedfw_lab.report.page import Cell, constant_metrics, overview_of

LISTED = 5
"""The number of failed runs, and of runs without a pair, that are listed. The page lists more, and the JSON all."""

BETWEEN = 2
"""The space between columns, in characters."""

LEGEND = (
    "▲ ▼ more than chance, at 5 % by the paired permutation test; ≈ could be chance; = the same in every pair; "
    "? too few pairs"
)


def print_analysis(analysis: Analysis) -> None:
    """Print the analysis to stdout."""
    console = stdout_console()
    print_parts(console, _parts(analysis, console.width))


def _parts(analysis: Analysis, width: int) -> Iterator[RenderableType]:
    yield Text(_headline(analysis))
    for note in analysis.notes:
        yield Text(f"note: {note}")
    if analysis.tables and (analysis.question.compared or not analysis.context_factors):
        if any(table.only_value is None for table in analysis.tables):
            yield from _tables(analysis, width)
        same = ", ".join(f"{metric} {value}" for metric, value in constant_metrics(analysis).items())
        if same:
            yield block(f"the same in every run: {same}")
        if len(analysis.treatments) > MOST_TREATMENTS:
            yield block(f"and {len(analysis.treatments) - MOST_TREATMENTS:,} more; --json has all of them")
        if len(analysis.treatments) > 1:
            yield block(LEGEND)
    if analysis.failed:
        lines = [
            f"{named(tuple(run.factors), tuple(run.factors.values()), always=True)}: {run.error}"
            for run in analysis.failed
        ]
        yield _list(f"{counted(len(analysis.failed), 'run')} failed", lines)
    if analysis.unpaired:
        lines = [
            ", ".join(
                text
                for text in (
                    analysis.treatment_label(each.treatment),
                    analysis.context_label(each.context),
                    analysis.repetition_label(each.repetition),
                )
                if text
            )
            + f": {each.why}"
            for each in analysis.unpaired
        ]
        yield _list(f"{counted(len(analysis.unpaired), 'run')} without a pair", lines)


def _headline(analysis: Analysis) -> str:
    parts = [counted(analysis.runs, "run")]
    if analysis.question.compared:
        compared = " and ".join(analysis.question.compared)
        parts.append(f"{compared} compared with {analysis.treatment_label(analysis.baseline)}")
    if analysis.context_factors and analysis.question.compared:
        parts.append(f"means over {' and '.join(analysis.context_factors)}")
    return "; ".join(parts)


def _tables(analysis: Analysis, width: int) -> Iterator[RenderableType]:
    """Yield tables with a column per treatment. Each has as many columns as fit, and begins with the baseline."""
    tables = [table for table in analysis.tables if table.only_value is None]
    names = [table.metric for table in tables]
    rows = [[_cell(cell) for cell in overview_of(analysis, table)] for table in tables]
    columns = [
        [analysis.treatment_label(place), *(row[number] for row in rows)]
        for number, place in enumerate(series_order(analysis))
    ]
    widths = [max(len(line) for cell in column for line in cell.splitlines()) + BETWEEN for column in columns]
    room = width - max(map(len, names)) - BETWEEN - widths[0]
    shown: list[int] = []
    for number in range(1, len(columns)):
        if shown and sum(widths[each] for each in (*shown, number)) > room:
            yield _table(names, [columns[each] for each in (0, *shown)])
            shown = []
        shown.append(number)
    yield _table(names, [columns[each] for each in (0, *shown)])


def _table(names: Sequence[str], columns: Sequence[Sequence[str]]) -> Padding:
    table = plain_table("", "", *(column[0] for column in columns))
    for column in table.columns[1:]:
        column.no_wrap = False  # Names of treatments may be long.
    for number, name in enumerate(names, 1):
        table.add_row(Text(name), *(Text(column[number]) for column in columns))
    return Padding(table, (1, 0, 0, 0))


def _cell(cell: Cell) -> str:
    if cell.judgement is None:
        return cell.text
    return f"{cell.text}\n{cell.judgement.sign} {cell.difference}".rstrip()


def _list(title: str, lines: Sequence[str]) -> Padding:
    rest = len(lines) - LISTED
    more = [f"and {rest:,} more"] if rest > 0 else []
    return Padding(
        Group(Text(title, style="bold"), *(Text(line) for line in (*lines[:LISTED], *more))), (1, 0, 0, 0)
    )
