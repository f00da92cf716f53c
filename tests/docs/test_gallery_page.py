"""docs/gallery.md is written from its data, which names what the distributions of this repository offer."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
ENTRIES: list[dict[str, Any]] = tomllib.loads((DOCS / "gallery.toml").read_text(encoding="utf-8"))["entry"]
OURS = [each for each in ENTRIES if "://" not in each["source"]]


def test_it_is_what_the_script_writes() -> None:
    page = runpy.run_path(str(DOCS / "generate_gallery.py"))["gallery_page"]()
    assert page == (DOCS / "gallery.md").read_text(encoding="utf-8"), "run: python docs/generate_gallery.py"


def test_every_distribution_of_the_repository_is_there_once() -> None:
    here = {f"plugins/{each.parent.name}" for each in REPOSITORY.glob("plugins/*/pyproject.toml")}
    assert sorted(each["source"] for each in OURS) == sorted(here)
    assert len({each["name"] for each in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: str(entry["name"]))
def test_an_entry_names_what_its_distribution_offers(entry: dict[str, Any]) -> None:
    text = (REPOSITORY / entry["source"] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    offered = project.get("entry-points", {})
    assert project["name"] == entry["name"]
    assert sorted(offered.get("kschedfw", {})) == sorted(entry.get("plugins", []))
    assert sorted(offered.get("kschedfw.commands", {})) == sorted(entry.get("commands", []))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["name"]))
def test_an_entry_has_the_fields_of_the_format_and_no_others(entry: dict[str, Any]) -> None:
    assert (
        {"name", "summary", "source"} <= entry.keys() <= {"name", "summary", "source", "plugins", "commands"}
    )
    assert "\n" not in entry["summary"]
