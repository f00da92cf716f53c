"""The page's files: they fit together, load nothing from elsewhere, and never make markup from texts."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from explore.clusters import HOSTILE
from kschedfw_advisor.explore.app import ICON, MODULES, PAGE_STYLES, page_file
from kschedfw_lab.pages.static_page import data_block, joined

PACKAGES = ("kschedfw_lab.pages", "kschedfw_advisor.explore")
STATIC = sorted(each.name for package in PACKAGES for each in files(package).joinpath("static").iterdir())
PAGES = ("static_simulation.js", "static_explanation.js")
IMPORT = re.compile(r'from "\./([a-z_]+\.js)"')


def imported(name: str, known: set[str]) -> set[str]:
    known.add(name)
    for each in IMPORT.findall(page_file(name)):
        if each not in known:
            imported(each, known)
    return known


@pytest.mark.parametrize("page", PAGES)
def test_a_page_becomes_one_module(page: str) -> None:
    text = joined(page)
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)
    assert all(f"class {name}" in text for name in ("WindowedTable",))


def test_every_file_is_served_or_part_of_a_static_page() -> None:
    assert set(MODULES) == imported("explore.js", set())
    static = imported("static_simulation.js", set()) | imported("static_explanation.js", set())
    assert set(STATIC) == {*MODULES, *static, *PAGE_STYLES, ICON}


@pytest.mark.parametrize("name", STATIC)
def test_no_file_makes_markup_from_texts_or_names_another_place(name: str) -> None:
    text = page_file(name).replace("http://www.w3.org/2000/svg", "")
    assert "//" not in re.sub(r"(^|\s)//.*", "", text, flags=re.MULTILINE), "no address of another place"
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "@import",
    ):
        assert word not in text


def test_data_ends_no_script() -> None:
    block = data_block({"label": HOSTILE})
    assert "<" not in block
    assert ">" not in block
