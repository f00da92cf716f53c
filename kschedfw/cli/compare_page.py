"""A comparison as a page of its own: HTML with plots, without scripts and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kschedfw.cli import compare_plots
from kschedfw.cli.compare_plots import plots_of
from kschedfw.cli.compare_rows import moved_anywhere, percent, sections, stories
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.missing_output import missing_lines
from kschedfw.compare import Comparison
from kschedfw.scheduler.errors import MissingExtraError

NEEDS_EXTRA = "--html needs the extra compare: pip install 'kschedfw[compare]'"
TEMPLATE = "compare_page.html"
MOST_PODS = 2000
"""The page lists so many pods that fared differently; the JSON has all of them."""


def page_writer(file: Path) -> Callable[[Comparison], None]:
    """What writes a comparison to the file; whatever would keep it from doing so is found out now.

    Raises:
        MissingExtraError: jinja2 isn't installed.
        UsageError: the file can't be written.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtraError(NEEDS_EXTRA) from None

    if file.is_dir() or not file.parent.is_dir():
        why = "is a directory" if file.is_dir() else "its directory isn't there"
        raise UsageError(f"--html {file}: {why}")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kschedfw.cli", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    template = environment.get_template(TEMPLATE)

    def write(comparison: Comparison) -> None:
        page = template.render(
            comparison=comparison,
            first=comparison.runs[0],
            sections=list(sections(comparison)),
            plots=plots_of(comparison),
            layout=compare_plots,
            stories=list(stories(comparison, MOST_PODS)),
            moved=moved_anywhere(comparison),
            percent=percent,
            missing=list(missing_lines(comparison.missing)),
        )
        file.write_text(page, encoding="utf-8")

    return write
