"""The documentation leads to pages that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(REPOSITORY)
    for folder in (".", "docs", "docs/changelog.d", "examples/*", "examples", "plugins/*")
    for page in REPOSITORY.glob(f"{folder}/*.md")
)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (REPOSITORY / page.parent / target).exists(), target
