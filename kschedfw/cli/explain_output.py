"""Explanations as text, for terminals of any width and for pipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kschedfw.cli.tables import block, plain_table, print_parts, stdout_console
from kschedfw.explain import Explanation
from kschedfw.explain.sections import Section, headline, node_section, overview, plugin_section
from kschedfw.simulator import Decision


def print_explanation(
    explanation: Explanation,
    attempts: Sequence[Explanation],
    *,
    node: str | None = None,
    plugin: str | None = None,
    top: int = 5,
    end: Decision | None = None,
) -> None:
    """Print one of the attempts to stdout, or what concerns one node or plugin in it.

    `end` is what became of the pod if it was left waiting.
    """
    sections: list[Section] = []
    if node is not None:
        sections.extend(node_section(explanation.of(node)))
    if plugin is not None:
        sections.extend(plugin_section(explanation, plugin, top))
    if node is None and plugin is None:
        sections.extend(overview(explanation, top))
    print_parts(stdout_console(), _parts(explanation, attempts, sections, end))


def _parts(
    explanation: Explanation,
    attempts: Sequence[Explanation],
    sections: Sequence[Section],
    end: Decision | None,
) -> Iterator[RenderableType]:
    yield Text(headline(explanation), "bold")
    if end is not None and explanation is attempts[-1]:
        yield Text(f"after that: {end.outcome.value}{f': {end.message}' if end.message else ''}")
    for other in attempts:
        if other is not explanation:
            yield Text(headline(other), "dim")
    for section in sections:
        yield _section(section)


def _section(section: Section) -> Padding:
    parts: list[Table | str] = []
    if section.headers:
        parts.append(_table(section))
    elif section.title:
        parts.append(section.title)
    return block(*parts, *section.lines)


def _table(section: Section) -> Table:
    table = plain_table(section.title, *section.headers)
    for header, column in zip(section.headers, table.columns, strict=True):
        is_text = header in section.text
        column.justify, column.no_wrap = "left" if is_text else "right", not is_text
    for row in section.rows:
        table.add_row(*map(Text, row))
    return table
