"""A page says in its first line whom it is for: a reader leaves at once, or stays."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ENTRANCE = "docs/index.md"  # it is for everyone, and names the ways in
PAGES = [
    name
    for pattern in ("docs/*.md", "plugins/*/README.md")
    for path in sorted(REPOSITORY.glob(pattern))
    if (name := str(path.relative_to(REPOSITORY))) != ENTRANCE
]


@pytest.mark.parametrize("page", PAGES)
def test_the_first_line_of_a_page_says_whom_it_is_for(page: str) -> None:
    title, empty, first = (REPOSITORY / page).read_text(encoding="utf-8").split("\n")[:3]
    assert title.startswith("# ")
    assert empty == ""
    assert first.startswith("For ")
