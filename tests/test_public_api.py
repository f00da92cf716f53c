"""Every public name exists and explains itself; tests/docs/test_site.py sees to its entry in the reference."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import attrs
import pytest

import kschedfw
import kschedfw.api

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = (DOCS / "reference.md").read_text(encoding="utf-8")
PUBLIC = sorted(set(re.findall(r"\| `(kschedfw[\w.]*)` \|", REFERENCE)))
MODULES = {name: importlib.import_module(name) for name in PUBLIC}


@pytest.mark.parametrize("module", PUBLIC)
def test_no_name_is_listed_twice(module: str) -> None:
    names = MODULES[module].__all__
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "module",
    [
        "kschedfw",
        "kschedfw.api",
        "kschedfw.cli",
        "kschedfw.cluster",
        "kschedfw.config",
        "kschedfw.plugins",
        "kschedfw.simulator",
        "kschedfw.what_if",
        "kschedfw_lab",
    ],
)
def test_names_are_those_that_type_checkers_see(module: str) -> None:
    file = MODULES[module].__file__
    assert file is not None
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = [alias for each in stub.body if isinstance(each, ast.ImportFrom) for alias in each.names]
    assert [
        alias for alias in imported if alias.asname != alias.name
    ] == []  # else mypy takes them for private
    declared = {
        each.target.id
        for each in stub.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    assert {alias.name for alias in imported} | declared == set(MODULES[module].__all__)


@pytest.mark.parametrize("module", PUBLIC)
def test_each_exists_and_explains_itself(module: str) -> None:
    for name in MODULES[module].__all__:
        public = getattr(MODULES[module], name)
        if name in ("__version__", "hookimpl", "AnyPlugin"):  # a string, pluggy's marker, an alias
            continue
        own = public.__doc__ if inspect.isclass(public) else inspect.getdoc(public)
        if module == "kschedfw" or inspect.isclass(public):
            assert own, f"{name} has no docstring"
            assert not own.startswith(f"{name}("), (
                f"{name}: a docstring, not the signature that a decorator puts in its place"
            )


def test_constants_and_aliases_have_an_entry_in_the_reference() -> None:
    """Sphinx finds classes and functions by their docstrings; a value or an alias has none."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    entries = set(re.findall(r"\.\. (?:py:data|autodata):: (kschedfw[\w.]*)", pages))
    values = {
        name
        for module in MODULES.values()
        for name in module.__all__
        if not callable(getattr(module, name)) and name != "__version__"
    }
    assert values - {entry.rpartition(".")[2] for entry in entries} == set()


def test_the_types_of_an_objects_fields_are_public() -> None:
    names = MODULES["kschedfw.api"].__all__
    public = (getattr(kschedfw.api, name) for name in names)
    classes = [each for each in public if inspect.isclass(each) and attrs.has(each)]
    hints = {cls: get_type_hints(cls, localns={"PodRequests": kschedfw.api.PodRequests}) for cls in classes}
    used = {
        each
        for cls in classes
        for field in attrs.fields(cls)
        if not field.name.startswith("_")
        for each in _classes_in(hints[cls][field.name])
    }
    assert {cls.__name__ for cls in used} <= set(names)


def _classes_in(hint: object) -> Iterator[type]:
    """The project's classes that a type hint names."""
    if inspect.isclass(hint) and hint.__module__.startswith("kschedfw."):
        yield hint
    for argument in get_args(hint):
        yield from _classes_in(argument)


def test_the_version_is_the_distributions() -> None:
    assert kschedfw.__version__ == importlib.metadata.version("kschedfw")


IMPORTED = """
import sys
{}
print(*(name for name in sys.modules if name.partition(".")[0] in {{"kschedfw", "numpy", "click"}}))
"""


def imported(program: str) -> set[str]:
    """The modules of kschedfw, numpy and click that a program has imported at its end."""
    command = [sys.executable, "-c", IMPORTED.format(program)]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_importing_it_imports_nothing_but_what_pauses_the_garbage_collector() -> None:
    assert imported("import kschedfw") == {"kschedfw", "kschedfw.api", "kschedfw.api.garbage"}


def test_objects_need_no_numpy() -> None:
    everything = imported("from kschedfw.api import *")
    assert "kschedfw.api.pod" in everything
    assert {name.partition(".")[0] for name in everything} == {"kschedfw"}
    assert not {name for name in everything if name.count(".") == 1} - {"kschedfw.api"}


def test_a_scheduler_of_the_default_profile_loads_nothing_that_reads_documents() -> None:
    program = """
for name in ("yaml", "msgspec", "cattrs"):
    sys.modules[name] = None
import kschedfw
kschedfw.Scheduler(kschedfw.InMemoryCluster())
"""
    assert "kschedfw.plugins.dynamic_resources" in imported(program)


@pytest.mark.slow
def test_importing_it_needs_neither_the_extras_nor_the_plugins() -> None:
    program = """
for name in ("rich", "click", "pytest", "hypothesis"):
    sys.modules[name] = None
from kschedfw import *
import kschedfw.testing, kschedfw.simulator
"""
    everything = imported(program)
    assert "kschedfw.framework.plugin" in everything
    assert not {name for name in everything if name.startswith("kschedfw.plugins")}


def test_a_class_name_has_one_owner_in_the_core() -> None:
    owners: dict[str, list[str]] = {}
    for path in (Path(__file__).parents[1] / "kschedfw").rglob("*.py"):
        for each in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(each, ast.ClassDef):
                owners.setdefault(each.name.lstrip("_"), []).append(path.stem)
    several = {name: sorted(modules) for name, modules in owners.items() if len(modules) > 1}
    # A field of the API, and the plugin that is named after it in kube-scheduler.
    assert several == {"NodeAffinity": ["affinity", "node_affinity"]}
