"""docs/from-a-checkout.md: old names are gone from where they were, and new ones are there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "from-a-checkout.md").read_text(encoding="utf-8")
ROWS = [
    (old, new)
    for old, new in re.findall(r"^\| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
    if old not in ("was", "---")
]
PRIVATE = PAGE.partition("\n## Names that are private now\n")[2]


def offers(package: str, name: str) -> bool:
    """Tell whether a package can be imported and has the name in its `__all__`."""
    try:
        return name in importlib.import_module(package).__all__
    except (ModuleNotFoundError, AttributeError):
        return False


def resolves(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute of one."""
    package, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return bool(package) and hasattr(importlib.import_module(package), last)
    return True


def places(text: str) -> Iterator[tuple[str, str]]:
    """Each name with the packages that it was in: "`A`, `B` in `kschedfw.x`" or "of `kschedfw.x`"."""
    names: list[str] = []
    packages: list[str] = []
    for each in re.findall(r"`([\w.]+)`", text):
        if not each.startswith("kschedfw"):
            if packages:
                names, packages = [], []
            names.append(each)
        else:
            packages.append(each)
            yield from ((each, name) for name in names)


def test_the_page_names_many_places() -> None:
    assert len(list(places(PRIVATE))) > 30
    assert len([place for old, _ in ROWS for place in places(old)]) > 50


@pytest.mark.parametrize("text", [*(old for old, _ in ROWS), PRIVATE], ids=lambda text: text[:40])
def test_a_name_is_no_longer_where_it_was(text: str) -> None:
    kept = {"MetricsRecorder"}
    assert [
        f"{package}.{name}" for package, name in places(text) if offers(package, name) and name not in kept
    ] == []


@pytest.mark.parametrize("new", [new for _, new in ROWS], ids=lambda text: text[:40])
def test_every_new_place_is_there(new: str) -> None:
    # An entry-point group is named like a module.
    named = re.findall(r"(?<!group )`(kschedfw[\w.]*)`", new)
    assert [each for each in named if not resolves(each)] == []


def test_a_name_of_one_new_package_is_in_it() -> None:
    for old, new in ROWS:
        if re.fullmatch(r"`kschedfw[\w.]*`", new):
            names = {name for _, name in places(old)}
            assert [name for name in names if not offers(new.strip("`"), name)] == [], new
