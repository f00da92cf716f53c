"""In-tree plugins import what their authors' colleagues elsewhere would: public names, from where these are public."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kschedfw
import kschedfw.api

PLUGINS = Path(kschedfw.__path__[0]) / "plugins"
PUBLIC: frozenset[str] = frozenset(vars(kschedfw)["__all__"])
PUBLIC_IN_API: frozenset[str] = frozenset(vars(kschedfw.api)["__all__"])
FILES = sorted(PLUGINS.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PLUGINS)))
def test_public_names_come_from_public_modules(path: Path) -> None:
    deep: dict[str, str] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = node.module
            if module.startswith(("kschedfw.framework", "kschedfw.api")):
                public = PUBLIC if module == "kschedfw.api" else PUBLIC | PUBLIC_IN_API
                deep |= {alias.name: module for alias in node.names if alias.name in public}
    assert deep == {}, f"import these from kschedfw or kschedfw.api: {deep}"
