"""Prints a comparison for terminals of any width and for pipes, and writes it as an HTML page.

The page has plots, but no scripts, and loads nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from kschedfw.cli import block, counted, missing_lines, plain_table, print_parts, stdout_console
from kschedfw_lab.cli import compare_plots
from kschedfw_lab.cli.compare_plots import plots_of
from kschedfw_lab.cli.compare_rows import Section, Story, moved_anywhere, percent, sections, stories
from kschedfw_lab.compare import Comparison
from kschedfw_lab.pages.static_page import check_page_file, environment

WIDEST_NAMES = 36
"""The greatest width of first columns, in characters, unless half of the terminal is wider.

The first columns of all tables are equally wide, so that the other columns line up.
"""

MOST_OPEN = 20
"""The most pods that fared differently that the page shows at once; the others are folded."""
MOST_PODS = 2000
"""The most pods with different outcomes that the page lists. The JSON has all of them."""

TEMPLATE = "compare_page.html"


def print_comparison(comparison: Comparison, *, show: int) -> None:
    """Print the comparison to stdout, with up to `show` of the pods with different outcomes."""
    console = stdout_console()
    print_parts(console, _parts(comparison, show, console.width))


def _parts(comparison: Comparison, show: int, width: int) -> Iterator[RenderableType]:
    yield _headline(comparison)
    if comparison.missing:
        yield block(*missing_lines(comparison.missing))
    shown = list(sections(comparison))
    room = max(WIDEST_NAMES, width // 2)
    names = min(room, max(len(name) for section in shown for name, _ in section.rows))
    yield from (_table(section, names) for section in shown)
    moved = moved_anywhere(comparison)
    if moved and show:
        yield _stories(list(stories(comparison, show)), moved)
    elif comparison.moves and not moved:
        yield block("Every pod fares the same everywhere.")
    notes = [*comparison.notes]
    for run in comparison.runs:
        notes += [f"{run.label}: {note}" for note in run.report.notes]
    if notes:
        yield block(*(f"note: {note}" for note in notes))


def _headline(comparison: Comparison) -> Text:
    text = Text()
    if comparison.interrupted:
        text.append("Interrupted. This is what was done so far.\n", style="bold yellow")
    first = comparison.runs[0].report
    what = f"{counted(first.pods, 'pod')} on {counted(first.nodes, 'node')}"
    text.append(f"{what} under {counted(len(comparison.runs), 'configuration')}; seed {comparison.seed}")
    return text


def _table(section: Section, names: int) -> Padding:
    table = plain_table("", "", *section.columns)
    table.columns[0].width = names
    for column in table.columns[1:]:
        column.no_wrap = False  # Labels of configurations may be long.
    for name, cells in section.rows:
        table.add_row(Text(name), *cells)
    # Printed apart from the table: a table's own title would be wrapped at the table's width.
    parts: list[RenderableType] = [Text(section.title, style="bold"), table]
    if section.note:
        parts.append(Text(section.note))
    return Padding(Group(*parts), (1, 0, 0, 0))


def _stories(told: Sequence[Story], moved: int) -> Padding:
    parts: list[RenderableType] = [Text("Pods", style="bold")]
    for story in told:
        parts.append(Text(story.pod))
        for fate in story.fates:
            what = Text.assemble((f"{fate.label}: ", "dim"), fate.what)
            parts += [Padding(what, (0, 0, 0, 2)), *(Padding(Text(why), (0, 0, 0, 4)) for why in fate.why)]
    if (rest := moved - len(told)) > 0:
        parts.append(
            Text(f"and {counted(rest, 'more pod')}; --show N lists more, --json and --html all of them")
        )
    return Padding(Group(*parts), (1, 0, 0, 0))


def page_writer(file: Path) -> Callable[[Comparison], None]:
    """Return a function that writes a comparison to the file. Errors are raised here, before any work.

    Raises:
        PageFileError: the file can't be written.
    """
    check_page_file(file)
    template = environment("kschedfw_lab.cli").get_template(TEMPLATE)

    def write(comparison: Comparison) -> None:
        page = template.render(
            comparison=comparison,
            first=comparison.runs[0],
            keys=[(number, run.label) for number, run in enumerate(comparison.runs)],
            sections=list(sections(comparison)),
            plots=plots_of(comparison),
            layout=compare_plots,
            stories=list(stories(comparison, MOST_PODS)),
            most_open=MOST_OPEN,
            moved=moved_anywhere(comparison),
            percent=percent,
            missing=list(missing_lines(comparison.missing)),
        )
        file.write_text(page, encoding="utf-8")

    return write
