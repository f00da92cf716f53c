"""A section of an explanation for output."""

from __future__ import annotations

import attrs

EXAMPLES = 3
"""How many nodes or victims are named; more are counted."""


@attrs.frozen
class Section:
    """A table with sentences below it; either may be missing. Columns in `text` have words, the others numbers."""

    title: str = ""
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    text: frozenset[str] = frozenset(
        (
            "",
            "closest, or e.g.",
            "e.g.",
            "node",
            "placement",
            "plugin",
            "reason",
            "score",
            "victims",
            "what is asked for",
            "what is in the way",
        )
    )
