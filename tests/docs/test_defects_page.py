"""The page of defects is that of its table, and what the table names is there: tests, code that was mended, commits."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(REPOSITORY / "docs" / "generate_defects.py"))
DEFECTS: list[dict[str, Any]] = tomllib.loads((REPOSITORY / "docs" / "defects.toml").read_text())["defect"]
FIELDS = {"commit", "what", "found", "test"}
PLANTED = [each for each in DEFECTS if each.keys() > FIELDS]


def test_the_page_is_that_of_the_table() -> None:
    page = (REPOSITORY / "docs" / "defects.md").read_text(encoding="utf-8")
    assert page == SCRIPT["written"](DEFECTS), "run: python docs/generate_defects.py"


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda each: each["commit"])
def test_a_defect_has_a_test_that_is_there_and_a_way_in_which_it_was_found(defect: dict[str, Any]) -> None:
    assert defect.keys() in (FIELDS, FIELDS | {"file", "now", "was"})
    assert f"| {defect['found']} |" in SCRIPT["BEGIN"]
    path, *names = defect["test"].split("::")
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    assert names
    for name in names:
        assert re.search(rf"^ *(def |class )?{name}\b", text, re.MULTILINE), name
    assert defect["what"].endswith(".")


@pytest.mark.parametrize("defect", PLANTED, ids=lambda each: each["commit"])
def test_what_is_to_be_replaced_is_there_once(defect: dict[str, Any]) -> None:
    """Whoever changes that code carries `now` and `was` along; `make planted` runs the tests."""
    assert (REPOSITORY / defect["file"]).read_text(encoding="utf-8").count(defect["now"]) == 1
    assert defect["was"] != defect["now"]


def test_twenty_can_be_put_back() -> None:
    assert len(PLANTED) >= 20


def test_commits_are_in_the_history() -> None:
    known = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-list", "--abbrev=8", "--abbrev-commit", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    shallow = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-parse", "--is-shallow-repository"],
        capture_output=True,
        text=True,
        check=False,
    )
    if known.returncode or "false" not in shallow.stdout:
        pytest.skip("NOT TESTED: this checkout has no whole history")
    mended = {defect["commit"] for defect in DEFECTS}
    assert all(re.fullmatch("[0-9a-f]{8}", each) for each in mended)
    assert mended - set(known.stdout.split()) == set()
