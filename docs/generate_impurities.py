"""Writes the table of impurities into docs/pure-hooks.md: `python docs/generate_impurities.py`.

The rows are the plugins of tests/testing/impurities.py, whose declarations the tests hold.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
PAGE: Final = HERE / "pure-hooks.md"
TABLE: Final = re.compile(r"(<!-- impurities: .*? -->\n).*?(<!-- end of impurities -->)", re.DOTALL)


def written(page: str, impurities: Sequence[Any]) -> str:
    """The page with the table of these impurities."""
    rows = [
        "| a hook that | the contract | a scheduler that runs | the mypy plugin |",
        "| --- | --- | --- | --- |",
    ]
    for each in impurities:
        found = "yes", "yes" if each.is_found_running else "", "yes" if each.in_mypy else ""
        rows.append(f"| {' | '.join((each.kind, *found))} |")
    text = "\n".join(["", *rows, "", ""])
    return TABLE.sub(lambda found: f"{found[1]}{text}{found[2]}", page)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    from tests.testing.impurities import IMPURITIES

    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), IMPURITIES), encoding="utf-8")
