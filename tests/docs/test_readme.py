"""What README.md shows first: short, with pictures of what the commands print, and eleven lines of code."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedfw.cli import EXPORT, NO_NODES

REPOSITORY = Path(__file__).parents[2]
BEGINNING, _, REST = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("\n## More\n")
PICTURES = re.findall(r"!\[[^\]]+\]\((docs/pictures/[^)]+)\)", BEGINNING)
SCRIPT: dict[str, Any] = runpy.run_path(str(REPOSITORY / "docs" / "generate_pictures.py"))


def test_it_has_at_most_500_words_before_the_links() -> None:
    assert REST
    assert len(BEGINNING.split()) <= 500


def test_it_begins_with_two_commands_that_a_fresh_machine_has() -> None:
    first = re.findall(r"^```console\n(.*?)^```$", BEGINNING, re.MULTILINE | re.DOTALL)[0]
    assert first == "$ make demo\n$ make test\n"


def test_its_code_has_eleven_lines_and_its_other_commands_are_three() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", BEGINNING, re.MULTILINE | re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 11
    assert len(re.findall(r"^\$ (?!make )", BEGINNING, re.MULTILINE)) == 3


def test_it_shows_every_picture_and_none_is_large() -> None:
    assert sorted(PICTURES) == sorted(
        str(each.relative_to(REPOSITORY)) for each in (REPOSITORY / "docs" / "pictures").iterdir()
    )
    assert [each for each in PICTURES if (REPOSITORY / each).stat().st_size > 150_000] == []


def test_the_commands_of_its_pictures_are_those_that_the_script_runs() -> None:
    assert f"$ {SCRIPT['COMMAND']}\n" in BEGINNING
    assert f"$ kschedfw {' '.join(SCRIPT['PAGE'][:2])}\n" in BEGINNING


def test_both_exports_are_those_that_input_without_nodes_is_answered_with() -> None:
    exports = [
        re.findall(
            r"kubectl get -A -o json \S+ > cluster.json", (REPOSITORY / page).read_text(encoding="utf-8")
        )
        for page in ("README.md", "docs/simulate.md")
    ]
    assert [len(each) for each in exports] == [1, 1]
    assert {command for each in exports for command in each} == {EXPORT}
    assert EXPORT in NO_NODES


def test_the_chart_shows_the_table_beside_kube_scheduler() -> None:
    assert len(SCRIPT["rates"]()) == 4
    kept = (REPOSITORY / "docs" / "pictures" / "pods-per-second.svg").read_text(encoding="utf-8")
    assert SCRIPT["chart"]() == kept, "run: python docs/generate_pictures.py"


@pytest.mark.slow
def test_the_terminal_in_the_picture_shows_what_the_command_prints() -> None:
    now = SCRIPT["terminal_picture"](SCRIPT["explained"]())
    kept = (REPOSITORY / "docs" / "pictures" / "explain.svg").read_text(encoding="utf-8")
    assert SCRIPT["words_of"](now) == SCRIPT["words_of"](kept), "run: python docs/generate_pictures.py"


def test_who_cites_it_names_this_version() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert "(docs/reproductions.md#how-to-cite)" in REST
