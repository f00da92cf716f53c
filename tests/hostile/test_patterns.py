"""No regular expression of the project takes more than linear time, whatever it is given.

Every pattern is given texts that are made of what is in it, and texts twice as long. What counts are a matcher's steps,
which are the same on every machine. A pattern has to be a constant of its module, so that none is missed.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain, product
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kschedfw
from kschedfw.testing.properties import examples
from tests.hostile.backtracking import StepCounter, TooManySteps

pytestmark = pytest.mark.slow

PACKAGE = Path(kschedfw.__file__).parent
PROJECT = PACKAGE.parent
METHODS = frozenset(("match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split"))
LENGTHS = (100, 200)
LIMIT = 100_000  # steps; far more than any linear pattern takes, and exponential ones are there at once
NOISE = 1_250  # steps; a text that takes fewer says nothing of how they grow
GROWTH = 3.2  # twice the length may take so many times the steps: linear takes 2, quadratic 4


def using_re(paths: Iterable[Path]) -> dict[Path, str]:
    """The text of the modules that use `re`; templates of projects aren't modules."""
    texts = {path: path.read_text("utf-8") for path in sorted(paths) if "plugin_template" not in path.parts}
    return {path: text for path, text in texts.items() if re.search(r"\bre\.[a-z]", text)}


MODULES = using_re(PACKAGE.rglob("*.py"))
PLUGINS = using_re((PROJECT / "plugins").glob("*/src/**/*.py"))


def calls_of_re(tree: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re":
            yield node


def patterns() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """Every pattern of the package, and of the plugins beside it, with its name and how its module uses it."""
    for path, text in (MODULES | PLUGINS).items():
        if "re.compile" not in text:  # to parse all modules takes seconds
            continue
        tree = ast.parse(text)
        used: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                used.setdefault(getattr(node.value, "id", ""), set()).add(node.attr)
        found = read(tree) if path in PLUGINS else None
        if found is None:
            parts = path.relative_to(PROJECT).with_suffix("").parts
            name = ".".join(parts[parts.index("src") + 1 if "src" in parts else 0 :]).removesuffix(
                ".__init__"
            )
            module = vars(importlib.import_module(name))
            found = {variable: each for variable, each in module.items() if isinstance(each, re.Pattern)}
        for variable, pattern in found.items():
            for method in sorted(used.get(variable) or set(chain(*used.values()))):
                yield f"{path.stem}.{variable}", pattern, method


def read(tree: ast.Module) -> dict[str, re.Pattern[Any]] | None:
    """Return the patterns of a module by their variables, or their lines; None if it puts one together.

    Distributions of policies may not be installed, so their modules are read and not imported.
    """
    calls = {id(node) for node in calls_of_re(tree) if node.attr == "compile"}
    compiled = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node.func) in calls]
    if not all(isinstance(node.args[0], ast.Constant) for node in compiled):
        return None
    variables = {
        id(node.value): ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign | ast.Assign)
    }
    return {
        variables.get(id(node), str(node.lineno)): re.compile(ast.literal_eval(node.args[0]))
        for node in compiled
    }


def as_text(pattern: re.Pattern[Any]) -> re.Pattern[str]:
    """Return the pattern; one of bytes as that of the characters with these numbers, which takes the same steps."""
    if isinstance(pattern.pattern, str):
        return pattern
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)


PATTERNS = [(name, as_text(pattern), method) for name, pattern, method in patterns()]


def pieces(pattern: re.Pattern[str]) -> list[str]:
    """What the pattern may like to read: its own characters, some of each class, and some that it has nowhere."""
    own = {each for each in pattern.pattern if not each.isalnum() and each not in "\\?*+|^$()"}
    alphabet = sorted(own | set("a0. \n{-") | set(re.findall(r"[A-Za-z0-9]", pattern.pattern)[:4]))
    return [*alphabet, *("".join(pair) for pair in product(alphabet[:7], repeat=2))]


@pytest.mark.parametrize(("name", "pattern", "method"), PATTERNS, ids=[f"{n}-{m}" for n, _, m in PATTERNS])
def test_takes_linear_time(name: str, pattern: re.Pattern[str], method: str) -> None:
    counter = StepCounter(pattern, LIMIT)
    for piece in pieces(pattern):
        for end in ("", "\x00"):
            half, whole = (steps(counter, method, piece * (length // len(piece)) + end) for length in LENGTHS)
            assert whole < max(GROWTH * half, NOISE), (
                f"{name}.{method}: {piece!r}: {half} steps, then {whole}"
            )


def steps(counter: StepCounter, method: str, text: str) -> float:
    """How many the matcher takes; infinitely many where it was stopped."""
    counter.steps = 0
    try:
        counter.spans(method, text)
    except TooManySteps:
        return inf
    return counter.steps


@pytest.mark.parametrize(("name", "pattern", "method"), PATTERNS, ids=[f"{n}-{m}" for n, _, m in PATTERNS])
@settings(max_examples=examples(100, usual=4))  # of each of a hundred patterns
@given(data=st.data())
def test_counted_matcher_finds_what_python_finds(
    name: str, pattern: re.Pattern[str], method: str, data: st.DataObject
) -> None:
    words = re.findall(r"\w{2,}", pattern.pattern)
    text = "".join(data.draw(st.lists(st.sampled_from([*pieces(pattern), *words]))))
    if method in ("search", "match", "fullmatch"):
        found = getattr(pattern, method)(text)
        expected = [found.span()] if found else []
    else:
        expected = [found.span() for found in pattern.finditer(text)]
    assert StepCounter(pattern, LIMIT).spans(method, text) == expected


def test_there_are_patterns() -> None:
    assert len(PATTERNS) > 15
    assert any(name.startswith("report.") for name, _, _ in PATTERNS), "of plugins"


@pytest.mark.parametrize(
    "path",
    [*MODULES, *PLUGINS],
    ids=lambda path: str(path.relative_to(PROJECT)),
)
def test_patterns_are_constants(path: Path) -> None:
    """Nothing is matched that isn't compiled at the top of its module, so that the test above sees it."""
    tree = ast.parse({**MODULES, **PLUGINS}[path])
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in calls_of_re(tree):
        assert node.attr not in METHODS, f"line {node.lineno}: re.{node.attr}"
        assert node.attr != "compile" or id(node) not in inside, (
            f"line {node.lineno}: re.compile in a function"
        )


@pytest.mark.parametrize(
    ("pattern", "method", "piece"),
    [
        pytest.param(r"(?:[0-9]+)+s", "fullmatch", "'0'", id="exponential"),
        pytest.param(r"[0-9]+s", "search", "'0'", id="quadratic"),
        pytest.param(r"(?m)^\s*(?=\{)", "search", r"'\\n'", id="spaces"),
    ],
)
def test_a_pattern_that_explodes_is_found(pattern: str, method: str, piece: str) -> None:
    with pytest.raises(AssertionError, match=f"{method}: .*{piece}.* steps"):
        test_takes_linear_time("it", re.compile(pattern), method)
