"""The documentation leads to pages that exist; messages lead to none, since an installed package has no pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(REPOSITORY)
    for folder in (".", "docs", "docs/changelog.d", "examples/*", "examples", "plugins/*")
    for page in REPOSITORY.glob(f"{folder}/*.md")
)

PAGE = re.compile(r"\bdocs/[\w-]+\.md")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    base = page.parent
    if base.name == "changelog.d" and page.name != "README.md":
        base = base.parent  # fragments become part of docs/changelog.md
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (REPOSITORY / base / target).exists(), target


def test_no_message_cites_a_page() -> None:
    """Docstrings may: whoever reads them has the repository."""
    files = [*REPOSITORY.glob("kschedfw/**/*.py"), *REPOSITORY.glob("plugins/*/src/**/*.py")]
    assert len(files) > 400
    citing = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        if not PAGE.search(text):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        docstrings = {each.value for each in nodes if isinstance(each, ast.Expr)}
        citing += [
            f"{file.relative_to(REPOSITORY)}:{each.lineno}"
            for each in nodes
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and PAGE.search(each.value)
            if each not in docstrings
        ]
    assert citing == []
