"""A part of an explanation as it is shown."""

from __future__ import annotations

import attrs

EXAMPLES = 3
"""How many nodes or victims are named before they are only counted."""


@attrs.frozen
class Section:
    """A table with sentences under it; either may be missing. The columns in `text` hold words, the others numbers."""

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
            "plugin",
            "reason",
            "score",
            "victims",
            "what is asked for",
            "what is in the way",
        )
    )
