"""Examples for readers import public names alone: whatever else they import may change without notice."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PUBLIC = frozenset(
    re.findall(r"\| `(kschedfw[\w.]*)` \|", (REPOSITORY / "docs/reference.md").read_text(encoding="utf-8"))
)
CHECKED = {name.partition(".")[0] for name in PUBLIC}
"""The packages whose public names the reference lists; those of policies have theirs in their READMEs."""
FILES = [
    path
    for pattern in (
        "README.md",
        "docs/*.md",
        "examples/**/*.md",
        "examples/**/*.py",
        "plugins/*/README.md",
        "kschedfw/cli/plugin_template/**/*.py*.jinja",
    )
    for path in sorted(REPOSITORY.glob(pattern))
]
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def programs(path: Path) -> Iterator[str]:
    """The Python in a file: all of it, or the blocks of a page."""
    text = re.sub(
        r"\{\{ (\w+) \}\}", r"\1", path.read_text(encoding="utf-8")
    )  # a template's names stand for themselves
    if path.suffix != ".md":
        yield text
    for kind, block in BLOCK.findall(text) if path.suffix == ".md" else ():
        typed = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
        yield "\n".join(typed) if kind == "pycon" else block


def private_imports(program: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(program)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            yield from (name for name in names if name.partition(".")[0] in CHECKED and name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in CHECKED:
            module = node.module or ""
            public = (
                {*importlib.import_module(module).__all__, *_parts(module)} if module in PUBLIC else set()
            )
            yield from (f"{module}.{name}" for name in names if name not in public)


def _parts(module: str) -> set[str]:
    return {name.removeprefix(f"{module}.") for name in PUBLIC if name.startswith(f"{module}.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_only_public_names_are_imported(path: Path) -> None:
    assert [name for program in programs(path) for name in private_imports(program)] == []


def test_a_private_name_would_be_noticed() -> None:
    program = (
        "from kschedfw import Pod\nfrom kschedfw.api.pod import Pod\nfrom kschedfw.testing import nothing\n"
    )
    assert list(private_imports(program)) == ["kschedfw.api.pod.Pod", "kschedfw.testing.nothing"]


NAMED = re.compile(r"`(kschedfw(?:\.\w+)+)`")


@pytest.mark.parametrize("page", sorted((REPOSITORY / "docs").glob("*.md")), ids=lambda page: page.name)
def test_modules_and_names_that_a_page_tells_users_of_are_public(page: Path) -> None:
    # For developers of kschedfw, and of names that are gone.
    if page.name in ("architecture.md", "from-a-checkout.md"):
        return
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [name for name in NAMED.findall(text) if _is_code(name) and not _is_public(name)] == []


def _is_code(name: str) -> bool:
    """Tell whether the name begins with a module or an attribute; entry-point groups have dots, too."""
    first = name.split(".")[1]
    if first == "mypy":  # mypy loads its plugin by the name in a configuration; nobody imports it
        return False
    return first in importlib.import_module("kschedfw").__all__ or (
        importlib.util.find_spec(f"kschedfw.{first}") is not None
    )


def _is_public(name: str) -> bool:
    """Tell whether it is a public module, a name in one, or an attribute of such a name."""
    if name in PUBLIC:
        return True
    modules = [module for module in PUBLIC if name.startswith(f"{module}.")]
    return any(
        name.removeprefix(f"{module}.").split(".")[0] in importlib.import_module(module).__all__
        for module in modules
    )
