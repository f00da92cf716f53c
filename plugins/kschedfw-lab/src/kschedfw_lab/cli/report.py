"""`kschedfw report`: analyses the results of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kschedfw.cli import FILE, ExitCode, complain, counted, json_option, print_json
from kschedfw.scheduler import MissingExtraError
from kschedfw_lab.cli.report_output import print_analysis
from kschedfw_lab.report.analysis import analyse
from kschedfw_lab.report.document import document
from kschedfw_lab.report.page import ReportPage
from kschedfw_lab.results.reading import read_results, read_series, read_warnings

REPORT_HELP = """Show what the results of a sweep say: means with intervals, and which differences are more than chance.

RESULTS is the directory that sweep writes, or its results.csv, results.jsonl or results.parquet. Runs that differ in
one factor are compared in pairs, seed by seed, and a page with plots is written into the directory.

\b
Exit codes:
  0    done
  1    nothing to report: no run has finished, or all have failed; or an
       extra isn't installed
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""


@click.command("report", help=REPORT_HELP)
@click.argument("results", type=FILE, metavar="RESULTS", help="A directory of results, or a file.")
@click.option(
    "--baseline",
    metavar="FACTOR[=VALUE][,…]",
    help="The factor to compare, and the value that all others are compared with; without a value the first. "
    "Default: the first factor that is crossed with the others.",
)
@click.option(
    "--over",
    multiple=True,
    metavar="FACTOR",
    help="A factor whose values are repetitions, as the seed's are. Repeatable.",
)
@click.option(
    "--metric",
    multiple=True,
    metavar="NAME",
    help="A metric, or a pattern: 'utilisation.*'. Repeatable; default: all.",
)
@json_option
@click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Where the page goes. Default: report.html in the directory; none with --json.",
)
def report(
    results: Path,
    baseline: str | None,
    over: Sequence[str],
    metric: Sequence[str],
    as_json: bool,
    html: Path | None,
) -> None:
    try:
        found = read_results(results)
        page = None if as_json and html is None else ReportPage(html or _beside(results))
    except MissingExtraError as error:
        raise click.exceptions.Exit(complain(str(error), ExitCode.NOTHING_TO_DO)) from None
    runs = found.runs()
    if not runs:
        raise click.exceptions.Exit(complain(f"{results}: no run has finished", ExitCode.NOTHING_TO_DO))
    warnings = read_warnings(results) if results.is_dir() else ()
    analysis = analyse(found, baseline, over=over, metrics=metric, notes=warnings)
    if page is not None:
        series = read_series(results) if results.is_dir() else None
        page.write(analysis, runs, series, title=results.resolve().name)
    if as_json:
        print_json(document(analysis))
    else:
        print_analysis(analysis)
    if page is not None and not as_json:
        print(f"\npage: {page.file}")
    if len(analysis.failed) == len(runs):
        what = f"all of {counted(len(runs), 'run')} failed" if len(runs) > 1 else "the only run failed"
        raise click.exceptions.Exit(complain(f"{results}: {what}", ExitCode.NOTHING_TO_DO))


def _beside(results: Path) -> Path:
    """Return the page's default path, beside the results."""
    return results / "report.html" if results.is_dir() else results.with_suffix(".html")
