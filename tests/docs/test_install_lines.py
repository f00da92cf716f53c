"""Pages say how to install what they need: from an index, and from a checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = [
    page
    for pattern in ("README.md", "docs/*.md", "examples/*/README.md", "plugins/*/README.md")
    for page in sorted(REPOSITORY.glob(pattern))
]
FROM_INDEX = re.compile(r"pip install 'kschedfw(\[[a-z,]+\])'")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_what_comes_from_an_index_comes_from_a_checkout_too(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [extras for extras in FROM_INDEX.findall(text) if f"pip install '.{extras}'" not in text] == []


def test_there_are_such_pages() -> None:
    assert sum(bool(FROM_INDEX.search(page.read_text(encoding="utf-8"))) for page in PAGES) > 5
