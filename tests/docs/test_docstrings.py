"""Sections of docstrings, as the reference reads them: a line that begins with a name and a colon is an entry."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DIRECTORIES = [REPOSITORY / "kschedfw", *sorted(REPOSITORY.glob("plugins/*/src"))]
SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):")
ENTRY = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): ")
Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def entries(docstring: str) -> Iterator[tuple[str, str]]:
    """The lines of the sections Args and Raises that aren't continuations, with their section."""
    section, indent = "", 0
    for line in docstring.splitlines():
        if matched := SECTION.fullmatch(line):
            section, indent = matched[1], 0
        elif line.strip():
            here = len(line) - len(line.lstrip())
            section, indent = (section if here else ""), indent or here
            if section in {"Args", "Raises"} and here == indent:
                yield section, line.strip()


def parameters(documented: Documented) -> set[str]:
    """The names that may stand under Args: of a class its fields and what its `__init__` takes."""
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef]
    if isinstance(documented, ast.ClassDef):
        functions = [
            each for each in documented.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"
        ]
        names = {
            each.target.id
            for each in documented.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        }
    else:
        functions, names = [documented], set()
    for function in functions:
        given = function.args
        names |= {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        names |= {each.arg for each in (given.vararg, given.kwarg) if each is not None}
    return names


def mistakes(text: str) -> Iterator[str]:
    for documented in ast.walk(ast.parse(text)):
        if not isinstance(documented, Documented):
            continue
        for section, line in entries(ast.get_docstring(documented) or ""):
            matched = ENTRY.match(line)
            names = {name.strip("*") for name in matched[1].split(", ")} if matched else set()
            if not names or (section == "Args" and not names <= parameters(documented)):
                yield f"{documented.name}: {section}: {line}"


@pytest.mark.parametrize(
    "directory", DIRECTORIES, ids=lambda directory: str(directory.relative_to(REPOSITORY))
)
def test_every_entry_of_a_section_is_a_parameter_or_an_error(directory: Path) -> None:
    """Else a continuation line that isn't indented is shown as a parameter of its own."""
    files = sorted(directory.rglob("*.py"))
    assert files
    found = [
        f"{file.relative_to(REPOSITORY)}: {mistake}"
        for file in files
        for mistake in mistakes(file.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_continuation_that_looks_like_an_entry_is_found() -> None:
    docstring = "Rate.\n\n    Args:\n        per: seconds, or\n        None: none.\n    "
    text = f"def rate(per: int) -> None:\n    {docstring!r}\n"
    assert list(mistakes(text)) == ["rate: Args: None: none."]
    assert list(mistakes(text.replace(r"\n        None", r"\n            None"))) == []
