"""Explanations as text, for terminals of any width and for pipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kschedfw.cli.missing_output import missing_lines
from kschedfw.cli.tables import block, plain_table, print_parts, stdout_console
from kschedfw.cluster import MissingObject
from kschedfw.explain import Explanation
from kschedfw.explain.section import Section
from kschedfw.explain.sections import headline, node_section, overview, plugin_section
from kschedfw.simulator import Decision


@attrs.frozen
class Context:
    """Context of the decision: objects that the pod refers to and the input lacks, and the pod's former node."""

    missing: Sequence[MissingObject] = ()
    was_on: str | None = None

    def to_json(self) -> dict[str, object]:
        return {"missing": [each.to_json() for each in self.missing], "wasOn": self.was_on}


def print_explanation(
    explanation: Explanation,
    attempts: Sequence[Explanation],
    context: Context,
    *,
    node: str | None = None,
    plugin: str | None = None,
    top: int = 5,
    end: Decision | None = None,
) -> None:
    """Print one of the attempts to stdout, or only the part about one node or plugin.

    `end` is the pod's outcome, if the attempt left it waiting.
    """
    sections: list[Section] = []
    if node is not None:
        sections.extend(node_section(explanation.of(node)))
    if plugin is not None:
        sections.extend(plugin_section(explanation, plugin, top))
    if node is None and plugin is None:
        sections.extend(overview(explanation, top))
    print_parts(stdout_console(), _parts(explanation, attempts, context, sections, end))


def _parts(
    explanation: Explanation,
    attempts: Sequence[Explanation],
    context: Context,
    sections: Sequence[Section],
    end: Decision | None,
) -> Iterator[RenderableType]:
    yield Text(headline(explanation), "bold")
    if context.was_on is not None:
        yield Text(f"before it was taken off: on {context.was_on}")
    if end is not None and explanation is attempts[-1]:
        yield Text(f"after that: {end.outcome.value}{f': {end.message}' if end.message else ''}")
    for other in attempts:
        if other is not explanation:
            yield Text(headline(other) + (f": {other.message}" if other.message else ""), "dim")
    if context.missing:
        yield block(*missing_lines(context.missing))
    for section in sections:
        yield section_block(section)


def section_block(section: Section) -> Padding:
    """A section for the console."""
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
