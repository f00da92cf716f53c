"""docs/plugin-projects.md has what `kschedfw plugins new` takes and makes, and the recipe is found where one looks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kschedfw.cli import app
from kschedfw.cli.plugins_new import TEMPLATE

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "plugin-projects.md").read_text(encoding="utf-8")


def test_every_option_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["plugins", "new", "--help"]) == 0
    options = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)) - {"--help"}
    assert options
    rows = "".join(re.findall(r"^\|.*\|$", PAGE, re.MULTILINE))
    assert [option for option in sorted(options) if not re.search(rf"`{option}[ `]", rows)] == []


def test_every_file_that_is_made_is_there() -> None:
    made = {
        re.sub(
            r"\{% if \w+ %\}|\{% endif %\}", "", path.relative_to(TEMPLATE / "project").as_posix()
        ).removesuffix(".jinja")
        for path in (TEMPLATE / "project").rglob("*")
        if path.is_file()
    }
    named = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)))
    unnamed = [
        file
        for file in made
        if not any(file.replace("{{package}}", "…").startswith(each) for each in named)
        and not file.endswith(("__init__.py", "py.typed"))
    ]
    assert unnamed == []


@pytest.mark.parametrize("file", ["README.md", "docs/plugin-projects.md"])
def test_the_recipe_and_the_command_are_found_in(file: str) -> None:
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    assert "make downstream DIST=" in text
    assert "kschedfw plugins new" in text


def test_make_lists_the_recipe() -> None:
    listed = subprocess.run(["make", "help"], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
    assert "  make downstream " in listed.stdout
