"""The pages of in-tree plugins list every plugin, where it is enabled, its weight and its arguments."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
import pytest

from kschedfw import Registry, default_profile
from kschedfw.api.convert import json_name
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.hooks import points_of

REPOSITORY = Path(__file__).parents[2]
PROJECTS = (REPOSITORY, REPOSITORY / "plugins" / "kschedfw-legacy")
NAMES = sorted(
    name
    for project in PROJECTS
    for name in tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "entry-points"
    ]["kschedfw"]
)

REGISTRY = Registry()
"""One for all tests, since each registry looks for what is installed."""


@pytest.fixture(scope="module")
def page() -> str:
    names = ("plugins.md", "storage-plugins.md", "removed-plugins.md")
    return "".join((REPOSITORY / "docs" / name).read_text(encoding="utf-8") for name in names)


@pytest.fixture(scope="module")
def rows(page: str) -> dict[str, list[str]]:
    found = re.findall(
        r"^\| \[?([A-Z]\w+)(?:\]\((?:storage-plugins\.md)?#[\w-]+\))? \|(.*\|.*\|.*)\|$", page, re.MULTILINE
    )
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def test_the_first_table_is_the_default_profile_and_two_more_have_all_others(
    rows: dict[str, list[str]],
) -> None:
    default = default_profile().multi_point
    names = list(rows)
    assert names[: len(default)] == [plugin.name for plugin in default]
    assert [int(rows[plugin.name][0] or 0) for plugin in default] == [plugin.weight for plugin in default]
    assert sorted(names[len(default) :]) == sorted(set(NAMES) - {plugin.name for plugin in default})


@pytest.mark.parametrize("name", NAMES)
def test_every_plugin_has_a_row_with_its_extension_points(rows: dict[str, list[str]], name: str) -> None:
    points = [point.value for point in ExtensionPoint if point in points_of(REGISTRY.load(name))]
    assert rows[name][1] == ", ".join(points)


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_described_with_its_default(page: str, name: str) -> None:
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    text = section[1] if section else ""  # a plugin without arguments needs no more than its row
    described = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", text, re.MULTILINE))
    args_type = REGISTRY.load(name).args_type
    fields = attrs.fields(args_type) if args_type is not None and attrs.has(args_type) else ()
    assert list(described) == [json_name(field) for field in fields]
    scalars = {json_name(field): field.default for field in fields if isinstance(field.default, int | str)}
    assert {each: described[each].strip("`") for each in scalars} == {
        each: str(default).lower() if isinstance(default, bool) else str(default)
        for each, default in scalars.items()
    }
