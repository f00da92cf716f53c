"""Tables and lines as text, for terminals of any width and for pipes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kschedfw.api import words
from kschedfw.api.field_errors import harmless

PIPE_WIDTH = 100
"""The width of reports if stdout isn't a terminal: they end up in logs, mails and pagers; programs read the JSON."""

LIST_WIDTH = 1000
"""The width of lists with one item per line, which are for grep."""

LEAST_WIDTH = 40
"""The width on narrower terminals: with a few columns rich prints a letter a line, and with none nothing at all."""

_BETWEEN_COLUMNS = 2


def stdout_console(width_in_pipe: int = PIPE_WIDTH) -> Console:
    """Return a console as wide as COLUMNS says, else as the terminal, or of `width_in_pipe` columns without one."""
    # COLUMNS=0, or what is no number, counts as unset, unlike in rich.
    columns = shutil.get_terminal_size((width_in_pipe, 0)).columns
    follows_terminal = sys.stdout.isatty() and "COLUMNS" not in os.environ and columns >= LEAST_WIDTH
    width = None if follows_terminal else max(columns, LEAST_WIDTH)
    # Texts of plugins and manifests are shown as they are: [x] is no style, and :x: no picture.
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_parts(console: Console, parts: Iterable[RenderableType], *, keep_tables: bool = False) -> None:
    """Print the parts under each other to stdout, with texts from outside made harmless.

    A table that is too wide even with one word per line is printed row by row, a cell a line: the name of a node is
    copied from a terminal, so it must not be broken. With `keep_tables` such a table is wider than the terminal.
    """
    width = console.width
    with console.capture() as capture:
        for part in map(_harmless, parts):
            # `print` takes no width beyond the console's.
            console.width = max(width, _least_width(console, part)) if keep_tables else width
            console.print(part if keep_tables else _in_rows(console, part, width))
    console.width = width
    # rich fills every line with spaces up to the width.
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _harmless(part: RenderableType) -> RenderableType:
    """Return a part of a report whose texts are harmless."""
    match part:
        case str():
            return harmless(part)
        case Text():
            text = harmless(part.plain)
            # Only what is changed loses the styles of its words.
            return part if text == part.plain else Text(text, part.style)
        case Padding():
            return Padding(_harmless(part.renderable), (part.top, part.right, part.bottom, part.left))
        case Group():
            return Group(*map(_harmless, part.renderables))
        case Table():
            for column in part.columns:
                # rich has no other way to change the cells of a table.
                column._cells[:] = map(_harmless, column.cells)
    return part


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


def _in_rows(console: Console, part: RenderableType, width: int) -> RenderableType:
    """The part with the tables that need more than the width row by row; no word of the others is broken."""
    if isinstance(part, Padding):
        inner = _in_rows(console, part.renderable, width - part.left - part.right)
        return Padding(inner, (part.top, part.right, part.bottom, part.left))
    if isinstance(part, Group):
        return Group(*(_in_rows(console, each, width) for each in part.renderables))
    if isinstance(part, Table):
        if _least_table_width(console, part) > width:
            return Group(*_rows_of(part))
        _keep_words(console, part, width)
        if part.title is not None:
            # rich would wrap it at the width of the columns.
            title, part.title = Text(str(part.title), "bold"), None
            return Group(title, part)
    return part


def _keep_words(console: Console, table: Table, width: int) -> None:
    """Fix the columns' widths where rich, which makes the widest column narrower first, would break words."""
    ranges = _ranges(console, table)
    room = width - _BETWEEN_COLUMNS * (len(ranges) - 1)
    limit = max(most for _, most in ranges)
    # This ends, since the least widths fit: other tables are printed row by row.
    while sum(min(most, max(least, limit)) for least, most in ranges) > room:
        limit -= 1
    if any(least > limit for least, _ in ranges):
        for column, (least, most) in zip(table.columns, ranges, strict=True):
            column.width = min(most, max(least, limit))


def _rows_of(table: Table) -> Iterator[RenderableType]:
    """Yield a line per cell of each row, with the column's header; all lines of a row but the first are indented."""
    if table.title is not None:
        yield Text(str(table.title), "bold")
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        for number, (column, cell) in enumerate(zip(table.columns, cells, strict=True)):
            text = cell.copy() if isinstance(cell, Text) else Text(str(cell))
            if text.plain and column.header:
                text = Text.assemble((f"{column.header}: ", "dim"), text)
            if text.plain:
                yield Padding(text, (0, 0, 0, 2 * (number > 0)))


def _least_width(console: Console, part: RenderableType) -> int:
    """Return the width of the widest table with one word per line, whatever the console's width."""
    group = part.renderable if isinstance(part, Padding) else part
    parts = group.renderables if isinstance(group, Group) else [group]
    return max((_least_table_width(console, each) for each in parts if isinstance(each, Table)), default=0)


def _least_table_width(console: Console, table: Table) -> int:
    ranges = _ranges(console, table)
    return _BETWEEN_COLUMNS * (len(ranges) - 1) + sum(least for least, _ in ranges)


def _ranges(console: Console, table: Table) -> list[tuple[int, int]]:
    """The width of each column with one word per line, and without wrapping."""
    # rich's own measure of a table treats columns without wrapping as if they wrapped.
    options = console.options.update(max_width=LIST_WIDTH)
    ranges = []
    for column in table.columns:
        cells = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
        most = max(cell.maximum for cell in cells)
        ranges.append((most if column.no_wrap else max(cell.minimum for cell in cells), most))
    return ranges


def block(*parts: Table | str) -> Padding:
    """Return tables and lines below each other, after an empty line."""
    return Padding(Group(*(Text(part) if isinstance(part, str) else part for part in parts)), (1, 0, 0, 0))


counted = words.counted
"""Commands count things by this name."""
