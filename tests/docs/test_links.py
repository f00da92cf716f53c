"""Pages link to pages and sections that exist; messages link to none, since an installed package has no pages."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(REPOSITORY)
    for folder in (".", "docs", "docs/changelog.d", "examples/*", "examples", "plugins/*")
    for page in REPOSITORY.glob(f"{folder}/*.md")
)

PAGE = re.compile(r"\bdocs/[\w-]+\.md")


@cache
def prose(page: Path) -> str:
    """The page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def sections(page: Path) -> frozenset[str]:
    """The anchors of the page's headings, as GitHub and MyST make them, and those that are written out."""
    text = prose(page)
    titles = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    seen: dict[str, int] = {}
    for slug in slugs:
        seen[slug] = seen.get(slug, 0) + 1
    repeated = (f"{slug}-{number}" for slug, times in seen.items() for number in range(1, times))
    written = re.findall(r'<a id="([^"]+)">', text) + re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    return frozenset({*seen, *repeated, *written})


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_between_pages_lead_to_sections_that_exist(page: Path) -> None:
    base = page.parent
    if base.name == "changelog.d" and page.name != "README.md":
        base = base.parent  # fragments become part of docs/changelog.md
    wrong = []
    for target, section in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", prose(REPOSITORY / page)):
        if "://" in target:
            continue
        found = REPOSITORY / (base / target if target else page)
        # The reference's sections come from docstrings.
        is_read = found.suffix == ".md" and found.parent.name != "reference" and section
        if not found.exists() or (is_read and section not in sections(found.resolve())):
            wrong.append(f"{target}#{section}")
    assert wrong == []


def test_terms_of_the_search_lead_to_sections_that_exist() -> None:
    docs = REPOSITORY / "docs"
    terms: dict[str, str] = tomllib.loads((docs / "search.toml").read_text(encoding="utf-8"))["terms"]
    places = {place.partition("#")[::2] for place in terms.values()}
    assert {f"{page}#{section}" for page, section in places if not (docs / f"{page}.md").exists()} == set()
    read = {(page, section) for page, section in places if section and not page.startswith("reference/")}
    missing = {f"{page}#{section}" for page, section in read if section not in sections(docs / f"{page}.md")}
    assert missing == set()


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
