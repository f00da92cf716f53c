"""The names that a plugin author needs are few, and the template and the examples use no others in their plugins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import kschedfw

REPOSITORY: Final = Path(__file__).parents[2]
PAGE: Final = (REPOSITORY / "docs" / "writing-plugins.md").read_text(encoding="utf-8")
TABLE: Final = PAGE.partition("<!-- names of plugin authors -->")[2].partition("<!-- end of names -->")[0]
NAMES: Final = re.findall(r"`(\w+)`", TABLE)
REFERENCE: Final = (REPOSITORY / "docs" / "reference" / "plugin-authors.md").read_text(encoding="utf-8")

# Hooks for groups of pods, of post_filter and of queue_sort have arguments and results of their own.
EXPERTS: Final = {"11-rack-packing", "13-making-room", "15-fair-share"}
TEMPLATE: Final = REPOSITORY / "kschedfw" / "cli" / "plugin_template" / "project"


def test_at_most_twenty_public_names_are_enough() -> None:
    assert 0 < len(NAMES) == len(set(NAMES)) <= 20
    assert set(NAMES) <= set(dir(kschedfw))


def test_the_reference_has_them_in_its_first_group() -> None:
    first = REFERENCE.split("\n## ")[1]
    assert sorted(re.findall(r"^\.\. [\w:]+:: kschedfw\.(\w+)", first, re.MULTILINE)) == sorted(NAMES)


def sources() -> Iterator[Path]:
    """Yield the modules of the examples, and those of the template that have a plugin."""
    for path in sorted((REPOSITORY / "examples").glob("*/*.py")):
        if path.parent.name not in EXPERTS:
            yield path
    yield from sorted(TEMPLATE.rglob("*.py.jinja"))


def used_by_plugins(source: str) -> set[str]:
    """Return the names imported from kschedfw that the classes of plugins use."""
    tree = ast.parse(source)
    imported = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "kschedfw"
        for each in node.names
    }
    plugins = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).startswith("Plugin") for base in node.bases)
    ]
    return {
        node.id
        for plugin in plugins
        for node in ast.walk(plugin)
        if isinstance(node, ast.Name) and node.id in imported
    }


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_plugin_uses_no_others(path: Path) -> None:
    source = re.sub(r"{%.*?%}", "", re.sub(r"{{.*?}}", "Name", path.read_text(encoding="utf-8")))
    assert used_by_plugins(source) - set(NAMES) == set()
