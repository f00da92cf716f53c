"""A page says in its first line whom it is for: a reader leaves at once, or stays."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ENTRANCE = "index.md"  # it is for everyone, and names the ways in


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md") if path.name != ENTRANCE))
def test_the_first_line_of_a_page_says_whom_it_is_for(page: str) -> None:
    title, empty, first = (DOCS / page).read_text(encoding="utf-8").split("\n")[:3]
    assert title.startswith("# ")
    assert empty == ""
    assert first.startswith("For ")
