"""Figures say which code they are of, and the site marks those that are older than the code."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
BEGIN, END = "<!-- figures: workloads -->\n", "<!-- end of figures -->"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module("figures")
    for each in ("figures", "performance_tables"):
        sys.modules.pop(each, None)


class History:
    """A repository whose first commit is measured."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._git("init", "-q")
        self.first = self.change("kschedfw/plugins/fit.py")

    def change(self, path: str) -> str:
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.read_text() if file.exists() else ''}changed\n")
        self._git("add", "--all")
        self._git("-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "-q", "-m", path)
        return self._git("rev-parse", "--short", "HEAD")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.place), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def table(commit: str) -> str:
    return f"Before.\n{BEGIN}\nkschedfw 0.1.0 at {commit}, 2026-11-23, CPython 3.11.\n\n{END}\nAfter.\n"


def test_figures_of_the_last_change_are_not_marked(figures: ModuleType, history: History) -> None:
    assert figures.marked(table(history.first), history.place) == table(history.first)


def test_a_change_of_what_is_not_measured_does_not_mark_figures(
    figures: ModuleType, history: History
) -> None:
    history.change("docs/page.md")
    history.change("kschedfw/cli/app.py")
    assert figures.marked(table(history.first), history.place) == table(history.first)


def test_figures_older_than_a_change_of_the_code_are_marked_in_their_table(
    figures: ModuleType, history: History
) -> None:
    history.change("kschedfw/framework/runtime.py")
    history.change("plugins/kschedfw-lab/src/kschedfw_lab/bench/kinds.py")
    marked = figures.marked(table(history.first), history.place)
    note = f"```{{note}}\nOlder than the code: commits since {history.first} that changed it: 2.\n```\n\n"
    assert marked == table(history.first).replace(END, note + END)


def test_figures_that_name_no_commit_are_marked(figures: ModuleType, history: History) -> None:
    page = f"{BEGIN}\nkschedfw 0.1.0, CPython 3.11.\n\n{END}\n"
    assert "Older than the code: measured before tables named their commit." in figures.marked(
        page, history.place
    )


def test_figures_of_a_commit_outside_the_history_are_said_to_be_of_unknown_age(
    figures: ModuleType, history: History
) -> None:
    assert "0123abc isn't in this history" in figures.marked(table("0123abc"), history.place)


def test_each_command_is_listed_with_its_name_on_the_page_of_the_method(figures: ModuleType) -> None:
    page = (DOCS / "measuring.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\S+)` \| `kschedfw (bench [^`]+)` \|$", page, re.MULTILINE))
    assert listed == figures.COMMANDS


def test_the_code_that_is_measured_exists(figures: ModuleType) -> None:
    assert [each for each in figures.MEASURED if not (REPOSITORY / each).is_dir()] == []


def test_an_unknown_name_is_refused_with_those_that_there_are(figures: ModuleType) -> None:
    with pytest.raises(SystemExit, match="there is no nodez; there are workloads, distinct, nodes"):
        figures.measure(["nodez"])
