"""CONTRIBUTING.md names commands, files and markers that exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kschedfw.cli.commands import COMMANDS

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", PAGE, flags=re.MULTILINE | re.DOTALL))
SHOWN = re.findall(r"^ *\$ (.+)$", PAGE, re.MULTILINE)
PATH = re.compile(r"(?:docs|kschedfw|plugins|tests)/[\w./-]*|pyproject\.toml|\.venv/[\w./-]+")


def test_targets_are_in_the_makefile() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):.* ## ", makefile, re.MULTILINE))
    named = set(re.findall(r"\bmake (\w+)", "\n".join([*CODE, *SHOWN])))
    assert {"quick", "test", "downstream", "changelog", "build", "release"} <= named <= targets


def test_commands_are_installed() -> None:
    by_hand = {".venv/bin/cosmic-ray", ".venv/bin/cr-report"}  # the page says so where it shows them
    programs = {command.split()[0] for command in SHOWN} - {"make"} - by_hand
    assert programs == {".venv/bin/python", ".venv/bin/towncrier"}
    installed = Path(sys.executable).parent
    assert [each for each in programs if not (installed / Path(each).name).exists()] == []
    assert set(re.findall(r"\bkschedfw (\w+)", "\n".join(CODE))) <= set(COMMANDS.names())


def test_files_are_there() -> None:
    named = {path for text in [*CODE, *SHOWN] for path in PATH.findall(text) if "<" not in text}
    assert len(named) > 15
    assert [path for path in named if not path.startswith(".venv") and not (REPOSITORY / path).exists()] == []


def test_the_marker_is_registered() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    markers = [each.partition(":")[0] for each in project["tool"]["pytest"]["ini_options"]["markers"]]
    assert "the marker `slow`" in PAGE
    assert "slow" in markers


@pytest.mark.slow
def test_the_changelog_of_a_release_can_be_made() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "1.0.0"]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, encoding="utf-8")
    fragments = [each for each in (REPOSITORY / "docs" / "changelog.d").glob("*.md") if each.stem != "README"]
    told = " ".join(done.stdout.split())
    for fragment in fragments:
        assert " ".join(fragment.read_text(encoding="utf-8").split()[:8]) in told
