"""A section of an explanation for output."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw.api.records import frozen

EXAMPLES = 3
"""The most nodes or victims that are named; more are counted."""


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - EXAMPLES
    return ", ".join([*names[:EXAMPLES], *([f"{rest} more"] if rest > 0 else [])])


_WORDS = frozenset(
    {
        *("", "closest, or e.g.", "e.g.", "node", "placement", "plugin", "reason"),
        *("score", "victims", "what is asked for", "what is in the way"),
    }
)


@frozen
class Section:
    """A table with sentences below it; either may be missing. Columns in `text` have words, the others numbers."""

    title: str = ""
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    text: frozenset[str] = _WORDS
