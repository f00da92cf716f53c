"""The suites of all projects in this repository: no verdict of a property depends on how fast the machine is."""

from __future__ import annotations

import ast
import configparser
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "pyproject.toml"
PROJECTS = sorted(REPOSITORY.glob("plugins/*/pyproject.toml"))
EXAMPLES = sorted([*REPOSITORY.glob("examples/*/pytest.ini"), *REPOSITORY.glob("examples/*/pyproject.toml")])
TEMPLATE = REPOSITORY / "kschedfw" / "cli" / "plugin_template" / "project" / "pyproject.toml.jinja"
SUITES = [REPOSITORY / "tests", *(each.parent / "tests" for each in PROJECTS), REPOSITORY / "examples"]
TESTS = sorted(path for each in SUITES for path in each.rglob("*.py"))


def configured(path: Path) -> dict[str, object]:
    """Pytest's options in a project's file. A template's are read without what Jinja makes of the rest."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ini":
        parser = configparser.ConfigParser()
        parser.read_string(text)
        return dict(parser["pytest"])
    if path.suffix == ".jinja":
        text = text[text.index("[tool.pytest.ini_options]") :]
    tools = tomllib.loads(text).get("tool", {})
    # A project without options of its own runs with those of the repository.
    own: dict[str, object] = tools["pytest"]["ini_options"] if "pytest" in tools else configured(ROOT)
    return own


@pytest.mark.parametrize(
    "path",
    [ROOT, *PROJECTS, *EXAMPLES, TEMPLATE],
    ids=lambda path: str(path.relative_to(REPOSITORY)),
)
def test_every_project_has_the_profiles_without_limits_of_time(path: Path) -> None:
    assert configured(path).get("kschedfw_profiles") in (True, "true")


def limits_of_time(tree: ast.AST) -> Iterator[str]:
    """What gives a test of Hypothesis a limit of time that its profile hasn't got."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for argument in node.keywords:
            value = ast.unparse(argument.value)
            if argument.arg == "deadline" and ast.unparse(node.func).endswith("settings"):
                yield f"line {argument.value.lineno}: the profiles say it"
            suppressed = argument.arg == "suppress_health_check"
            if suppressed and "too_slow" not in value and value != "list(HealthCheck)":
                yield f"line {argument.value.lineno}: {value} has no HealthCheck.too_slow, which the profiles have"


def test_no_test_brings_a_limit_of_time_back() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in TESTS}
    found = {str(path.relative_to(REPOSITORY)): list(limits_of_time(tree)) for path, tree in trees.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("settings(deadline=500)", 1),
        ("settings(suppress_health_check=[HealthCheck.function_scoped_fixture])", 1),
        ("settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])", 0),
        ("settings(suppress_health_check=list(HealthCheck))", 0),
        ("cluster.bind(pod, deadline=3)", 0),
    ],
)
def test_limits_of_time_are_found(code: str, count: int) -> None:
    assert len(list(limits_of_time(ast.parse(code)))) == count
