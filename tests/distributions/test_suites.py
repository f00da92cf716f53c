"""The suites of all projects in this repository: none depends on how fast the machine is, nor on files elsewhere.

`make sdists` runs the tests of each distribution from its sdist, which takes minutes. Most of what it finds is found
here, in what the tests import.
"""

from __future__ import annotations

import ast
import configparser
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kschedfw.testing.waiting import PATIENCE

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "pyproject.toml"
PROJECTS = sorted(REPOSITORY.glob("plugins/*/pyproject.toml"))
EXAMPLES = sorted([*REPOSITORY.glob("examples/*/pytest.ini"), *REPOSITORY.glob("examples/*/pyproject.toml")])
TEMPLATE = REPOSITORY / "kschedfw" / "cli" / "plugin_template" / "project" / "pyproject.toml.jinja"
SUITES = [REPOSITORY / "tests", *(each.parent / "tests" for each in PROJECTS), REPOSITORY / "examples"]
TESTS = sorted(path for each in SUITES for path in each.rglob("*.py"))


def configured(path: Path) -> dict[str, Any]:
    """Pytest's options in a project's file. A template's are read without what Jinja makes of the rest."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ini":
        parser = configparser.ConfigParser()
        parser.read_string(text)
        return dict(parser["pytest"])
    if path.suffix == ".jinja":
        text = text[text.index("[tool.pytest.ini_options]") :]
    options: dict[str, Any] = tomllib.loads(text).get("tool", {}).get("pytest", {}).get("ini_options", {})
    return options


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
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS}
    found = {
        str(path.relative_to(REPOSITORY)): list(limits_of_time(ast.parse(text)))
        for path, text in texts.items()
        if "suppress_health_check" in text or "deadline=" in text  # to parse them all takes seconds
    }
    assert found
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


WAITS = ("wait", "join", "result", "wait_for_sync", "wait_for")
WITH_TIMEOUT = (
    *WAITS,
    *("run", "communicate", "check_output", "Barrier"),
    *("create_connection", "HTTPConnection", "urlopen"),
)
SHORT = 5.0
"""Seconds: what waits for less wants to see that nothing comes."""


def guesses(tree: ast.AST) -> Iterator[str]:
    """Waits for something that must come, with a limit that says how fast the machine is."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        limits = [each.value for each in node.keywords if each.arg == "timeout" and last in WITH_TIMEOUT]
        if last in WAITS and name != "Status.wait":
            limits += node.args[last == "wait_for" :][:1]
        for limit in limits:
            if isinstance(limit, ast.Constant) and SHORT <= float(ast.unparse(limit)) < PATIENCE:
                yield f"line {limit.lineno}: {name}(… {ast.unparse(limit)}) instead of PATIENCE"


def test_no_test_waits_for_less_than_what_only_a_hang_takes() -> None:
    examples = REPOSITORY / "examples"
    tests = [each for each in TESTS if each.parent.name != "benchmarks" and not each.is_relative_to(examples)]
    texts = {path: path.read_text(encoding="utf-8") for path in tests}
    found = {
        str(path.relative_to(REPOSITORY)): list(guesses(ast.parse(text)))
        for path, text in texts.items()
        if _WAIT.search(text)  # to parse them all takes seconds
    }
    assert found
    assert {path: lines for path, lines in found.items() if lines} == {}


_WAIT = re.compile(r"timeout=\d|(?<!Status)\.(?:wait|join|result|wait_for_sync)\(\d|\.wait_for\(.*, \d")


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("thread.join(10)", 1),
        ("assert begun.wait(timeout=20)", 1),
        ("asyncio.wait_for(test(), 60)", 1),
        ("subprocess.run(command, timeout=300)", 1),
        ("thread.join(PATIENCE)", 0),
        ("assert not ended.wait(0.05)", 0),
        ("Status.wait(60)", 0),
        ("replica.wait_for(lambda: bound(10))", 0),
    ],
)
def test_short_waits_are_found(code: str, count: int) -> None:
    assert len(list(guesses(ast.parse(code)))) == count


class Suite:
    """The tests of a distribution, and what it declares for them."""

    def __init__(self, project: Path) -> None:
        self.tests = project / "tests"
        paths = configured(project / "pyproject.toml").get("pythonpath", ())
        self.roots = [project / "src", *(project / each for each in paths)]
        self.declared = declared(project.name, "test")

    def problems(self, path: Path, code: str) -> Iterator[str]:
        """What the code of a file of tests needs and an sdist's environment hasn't got."""
        # To parse all files takes seconds, so only those are that look as if there were something.
        named = {first or second for first, second in _IMPORT.findall(code)}
        if "parents[" not in code and not any(map(self.problem, named)):
            return
        for node in ast.walk(ast.parse(code)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            yield from filter(None, map(self.problem, modules))
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Path(__file__).parents":
                folder = path.parents[int(ast.unparse(node.slice))]
                if not folder.is_relative_to(self.tests.parent):
                    yield f"{ast.unparse(node)} is outside of the distribution"

    def problem(self, module: str) -> str:
        """Why a module can't be imported; empty if it can."""
        first = module.partition(".")[0]
        if first in sys.stdlib_module_names or any(self.has(root, module) for root in self.roots):
            return ""
        if any(self.has(root, first) for root in self.roots):
            return f"{module} isn't in this distribution"
        homes = {canonicalize_name(each) for each in MODULES.get(first, ())}
        if homes & self.declared:
            return ""
        return f"{module} is of {' or '.join(sorted(homes)) or 'nobody'}, which the extra test doesn't bring"

    @staticmethod
    def has(root: Path, module: str) -> bool:
        place = root.joinpath(*module.split("."))
        return place.is_dir() or place.with_suffix(".py").is_file()


_IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import|import ([\w.]+))", re.MULTILINE)

MODULES: dict[str, list[str]] = {
    **packages_distributions(),  # those that are installed as editable name no module
    **{package.name: [each.parent.name] for each in PROJECTS for package in (each.parent / "src").iterdir()},
    **{each: ["kschedfw"] for each in ("kschedfw", "kschedfw_command", "pytest_kschedfw")},
}


def declared(name: str, extra: str) -> set[str]:
    """The distributions that are installed with an extra of one of this repository."""
    found: set[tuple[str, str]] = set()
    left = [(name, ""), (name, extra)]
    while left:
        at = left.pop()
        if at in found:
            continue
        found.add(at)
        project = ROOT.parent if at[0] == "kschedfw" else ROOT.parent / "plugins" / at[0]
        if (project / "pyproject.toml").is_file():
            said = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            lines = said.get("optional-dependencies", {})[at[1]] if at[1] else said["dependencies"]
            for requirement in map(Requirement, lines):
                left += [(requirement.name, each) for each in ("", *requirement.extras)]
    return {str(canonicalize_name(each)) for each, _ in found}


OF_EVERY_SDIST = {"LICENSE", "README.md", "pyproject.toml"}


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_a_distributions_sdist_has_all_of_its_folder(path: Path) -> None:
    included = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["sdist"]
    there = {each.name for each in path.parent.iterdir() if not each.name.startswith((".", "__pycache__"))}
    assert there - OF_EVERY_SDIST == set(included["only-include"])


@pytest.mark.parametrize("project", [each.parent for each in PROJECTS], ids=lambda each: each.name)
def test_a_distributions_tests_import_what_its_sdist_and_its_extra_test_have(project: Path) -> None:
    suite = Suite(project)
    files = sorted(suite.tests.rglob("*.py"))
    found = {
        str(path.relative_to(project)): list(suite.problems(path, path.read_text(encoding="utf-8")))
        for path in files
    }
    assert files
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "problems"),
    [
        ("import json\nimport pytest\nfrom kschedfw.testing import Command", []),
        ("from scenes import node", []),
        ("from kschedfw_costaware.price import of", ["kschedfw_costaware.price isn't in this distribution"]),
        ("from tests.properties import examples", ["tests.properties isn't in this distribution"]),
        ("import sybil", ["sybil is of sybil, which the extra test doesn't bring"]),
        ("import nowhere.at.all", ["nowhere.at.all is of nobody, which the extra test doesn't bring"]),
        ("HERE = Path(__file__).parents[1]", []),
        ("ROOT = Path(__file__).parents[2]", ["Path(__file__).parents[2] is outside of the distribution"]),
    ],
)
def test_what_an_sdist_has_not_got_is_found(tmp_path: Path, code: str, problems: list[str]) -> None:
    project = tmp_path / "kschedfw-costaware"
    (project / "tests").mkdir(parents=True)
    (project / "src" / "kschedfw_costaware").mkdir(parents=True)
    (project / "tests" / "scenes.py").write_text("")
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.', 'tests']")
    assert list(Suite(project).problems(project / "tests" / "test_it.py", code)) == problems
