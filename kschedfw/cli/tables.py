"""Tables and lines as text, for terminals of any width and for pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 100
"""The width of reports if stdout isn't a terminal: they end up in logs, mails and pagers; programs read the JSON."""

LIST_WIDTH = 1000
"""The width of lists with one item per line, which are for grep."""

_BETWEEN_COLUMNS = 2


def stdout_console(width_in_pipe: int = PIPE_WIDTH) -> Console:
    """Return a console as wide as the terminal, or of `width_in_pipe` columns if stdout isn't a terminal."""
    has_no_width = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=width_in_pipe if has_no_width else None)


def print_parts(console: Console, parts: Iterable[RenderableType], *, break_words: bool = True) -> None:
    """Print the parts under each other to stdout.

    With `break_words`, words of a table are broken if it is too wide even with one word per line; otherwise it is
    wider than the terminal.
    """
    width = console.width
    with console.capture() as capture:
        for part in parts:
            # print() takes no width beyond the console's
            console.width = width if break_words else max(width, _least_width(console, part))
            console.print(part)
    console.width = width
    # rich fills every line with spaces up to the width
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def plain_table(title: str, *headers: str, first: str = "left") -> Table:
    """Return a table without lines, which don't survive narrow terminals and pipes."""
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, _BETWEEN_COLUMNS, 0, 0),
        pad_edge=False,
    )
    for index, header in enumerate(headers):
        left = index == 0 and first == "left"
        table.add_column(
            header,
            justify="left" if left else "right",
            overflow="fold",
            no_wrap=not left,
            header_style="dim",
        )
    return table


def _least_width(console: Console, part: RenderableType) -> int:
    """Return the width of the widest table with one word per line, whatever the console's width."""
    group = part.renderable if isinstance(part, Padding) else part
    parts = group.renderables if isinstance(group, Group) else [group]
    return max((_least_table_width(console, each) for each in parts if isinstance(each, Table)), default=0)


def _least_table_width(console: Console, table: Table) -> int:
    # rich's own measure of a table treats columns without wrapping as if they wrapped
    options = console.options.update(max_width=LIST_WIDTH)
    width = _BETWEEN_COLUMNS * (len(table.columns) - 1)
    for column in table.columns:
        cells = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
        width += max(cell.maximum if column.no_wrap else cell.minimum for cell in cells)
    return width


def block(*parts: Table | str) -> Padding:
    """Return tables and lines below each other, after an empty line."""
    return Padding(Group(*(Text(part) if isinstance(part, str) else part for part in parts)), (1, 0, 0, 0))


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
