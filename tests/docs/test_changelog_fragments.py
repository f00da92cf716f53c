"""Names in the changelog and its fragments are those of the release, not those that something had before it."""

from __future__ import annotations

import importlib
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FRAGMENTS = [
    fragment
    for kind in ("feature", "fix", "doc")
    for fragment in sorted((REPOSITORY / "docs" / "changelog.d").glob(f"*.{kind}.md"))
]
CHANGELOG = REPOSITORY / "docs" / "changelog.md"
NAME = re.compile(r"`(?:python -m )?(kschedfw\w*(?:\.\w+)+)[`(]")
PROJECTS = [REPOSITORY / "pyproject.toml", *REPOSITORY.glob("plugins/*/pyproject.toml")]
GROUPS = {  # of entry points
    group
    for project in PROJECTS
    for group in tomllib.loads(project.read_text(encoding="utf-8"))["project"].get("entry-points", {})
} | {"kschedfw.replace", "kschedfw_lab.traces"}  # those of others' distributions


def exists(name: str) -> bool:
    """Return whether a dotted name is a module or something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.slow
def test_every_name_in_the_changelog_exists() -> None:
    named = {
        (fragment.name, name)
        for fragment in (*FRAGMENTS, CHANGELOG)
        for name in NAME.findall(fragment.read_text(encoding="utf-8"))
        if name not in GROUPS and importlib.util.find_spec(name.partition(".")[0]) is not None
    }
    assert named
    assert sorted((fragment, name) for fragment, name in named if not exists(name)) == []


def test_names_of_former_versions_are_found() -> None:
    assert exists("kschedfw.testing.PluginContract")
    assert not exists("kschedfw.experiments.omega")
    assert NAME.findall("`kschedfw.testing.decide(pod)` and `python -m kschedfw_lab.omega`") == [
        "kschedfw.testing.decide",
        "kschedfw_lab.omega",
    ]
