"""Every public name exists and explains itself; tests/docs/test_site.py sees to its entry in the reference."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import get_args, get_type_hints

import attrs
import pytest

import kschedfw
import kschedfw.api

PUBLIC = [
    "kschedfw",
    *(f"kschedfw.{each}" for each in ["api", "cluster", "compare", "explain", "simulator", "testing"]),
]
MODULES = {name: importlib.import_module(name) for name in PUBLIC}
NAMES = [(module, name) for module in PUBLIC for name in MODULES[module].__all__]


@pytest.mark.parametrize("module", PUBLIC)
def test_no_name_is_listed_twice(module: str) -> None:
    names = MODULES[module].__all__
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_each_exists_and_explains_itself(module: str, name: str) -> None:
    public = getattr(MODULES[module], name)
    if name in ("__version__", "hookimpl"):  # a string, and an instance of pluggy's marker
        return
    own = public.__doc__ if inspect.isclass(public) else inspect.getdoc(public)
    if module == "kschedfw" or inspect.isclass(public):
        assert own, f"{name} has no docstring"
        assert not own.startswith(f"{name}("), (
            "a docstring, not the signature that a decorator puts in its place"
        )


def test_the_types_of_an_objects_fields_are_public() -> None:
    classes = [
        public for public in vars(kschedfw.api).values() if inspect.isclass(public) and attrs.has(public)
    ]
    hints = {cls: get_type_hints(cls, localns={"PodRequests": kschedfw.api.PodRequests}) for cls in classes}
    used = {
        each
        for cls in classes
        for field in attrs.fields(cls)
        if not field.name.startswith("_")
        for each in _classes_in(hints[cls][field.name])
    }
    assert {cls.__name__ for cls in used} <= set(kschedfw.api.__all__)


def _classes_in(hint: object) -> Iterator[type]:
    """The project's classes that a type hint names."""
    if inspect.isclass(hint) and hint.__module__.startswith("kschedfw."):
        yield hint
    for argument in get_args(hint):
        yield from _classes_in(argument)


def test_the_version_is_the_distributions() -> None:
    assert kschedfw.__version__ == importlib.metadata.version("kschedfw")


def test_importing_it_needs_neither_the_extras_nor_the_plugins() -> None:
    program = """
import sys
for name in ("typer", "rich", "click", "pytest", "hypothesis"):
    sys.modules[name] = None
import kschedfw, kschedfw.testing, kschedfw.simulator
print(*[name for name in sys.modules if name.startswith("kschedfw.plugins")])
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
