"""The six ways in on docs/index.md: short numbered paths, with a time in which they can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
WAYS = dict(re.findall(r"^### (.+?)\n\n(.+?)(?=^##)", INDEX, re.MULTILINE | re.DOTALL))
WORDS_PER_MINUTE = 250


def test_there_is_a_way_for_each_reader() -> None:
    ways = ["Write a policy", "Test policies", "Embed", "Plan capacity", "Run a scheduler", "Research"]
    assert list(WAYS) == ways


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_three_to_five_pages_that_can_be_read_in_its_time(way: str) -> None:
    minutes = re.match(r"In (\d+) minutes: ", WAYS[way])
    assert minutes is not None
    steps = re.findall(r"^(\d)\. \[(.+?)\]\((.+?)\): ", WAYS[way], re.MULTILINE)
    assert 3 <= len(steps) <= 5
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    texts = [(DOCS / page).read_text(encoding="utf-8") for _, _, page in steps]
    assert [text.partition("\n")[0] for text in texts] == [f"# {title}" for _, title, _ in steps]
    assert sum(len(text.split()) for text in texts) / WORDS_PER_MINUTE <= int(minutes[1])


def test_every_page_is_listed_among_all_pages() -> None:
    table = INDEX[INDEX.index("## All pages") :]
    pages = {each.name for each in DOCS.glob("*.md")} - {"index.md"}
    assert [page for page in sorted(pages) if f"]({page})" not in table] == []
