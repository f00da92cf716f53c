"""Docstrings of the code that users read: sections as the reference reads them, and first words that name a subject.

In a section, a line that begins with a name and a colon is an entry.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
# A text that begins so has no subject, or one that stands elsewhere.
RIDDLES = frozenset({"As", "How", "It", "Its", "That", "These", "They", "This", "Those", "What", "Whether"})
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


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def riddles(module: ast.Module) -> Iterator[str]:
    """First lines of docstrings, those of attributes too, that begin without a subject."""
    for node in ast.walk(module):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    word = re.match(r"\w*", text.strip())
                    if word and word[0] in RIDDLES:
                        yield f"{statement.lineno}: {text.strip().splitlines()[0]}"


def mistakes(module: ast.Module) -> Iterator[str]:
    for documented in ast.walk(module):
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
        f"{file.relative_to(REPOSITORY)}: {mistake}" for file in files for mistake in mistakes(tree(file))
    ]
    assert found == []


@pytest.mark.parametrize(
    "directory", DIRECTORIES, ids=lambda directory: str(directory.relative_to(REPOSITORY))
)
def test_no_docstring_begins_without_a_subject(directory: Path) -> None:
    found = [
        f"{file.relative_to(REPOSITORY)}:{riddle}"
        for file in sorted(directory.rglob("*.py"))
        for riddle in riddles(tree(file))
    ]
    assert found == []


def test_a_docstring_without_a_subject_is_found_at_modules_functions_and_attributes() -> None:
    text = '"""What is here."""\ndef f() -> None:\n    """It counts."""\nPODS = 1\n"""How many."""\n"""Pods."""\n'
    assert list(riddles(ast.parse(text))) == ["1: What is here.", "5: How many.", "3: It counts."]


def test_a_continuation_that_looks_like_an_entry_is_found() -> None:
    docstring = "Rate.\n\n    Args:\n        per: seconds, or\n        None: none.\n    "
    text = f"def rate(per: int) -> None:\n    {docstring!r}\n"
    assert list(mistakes(ast.parse(text))) == ["rate: Args: None: none."]
    assert list(mistakes(ast.parse(text.replace(r"\n        None", r"\n            None")))) == []
