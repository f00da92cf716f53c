"""Explanations as plain text, for messages of failed tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kschedfw.explain.explanation import Explanation
from kschedfw.explain.section import Section
from kschedfw.explain.sections import headline, overview


def as_text(explanation: Explanation, top: int = 5) -> str:
    """The decision in tables, as `kschedfw explain` prints it."""
    return "\n".join([headline(explanation), *_blocks(overview(explanation, top))])


def _blocks(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield ""
        if section.title:
            yield section.title
        if section.headers:
            yield from _table(section)
        yield from section.lines


def _table(section: Section) -> Iterator[str]:
    rows = (section.headers, *section.rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if header in section.text else cell.rjust(width)
            for cell, width, header in zip(row, widths, section.headers, strict=True)
        )
        yield "  ".join(cells).rstrip()
