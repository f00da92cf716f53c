"""Pages say how to install what they need: from an index, and from a checkout."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[2]
PAGES = [
    page
    for pattern in ("README.md", "docs/*.md", "examples/*/README.md", "plugins/*/README.md")
    for page in sorted(REPOSITORY.glob(pattern))
]
FROM_INDEX = re.compile(r"pip install (?:'(kschedfw[a-z-]*)(\[[a-z,]+\])'|(kschedfw[a-z-]*))")
FROM_CHECKOUT = re.compile(r"pip install ((?:'?\.(?:/plugins/[a-z-]+)?(?:\[[a-z,]+\])?'?(?: |(?=[`\n])))+)")
PLACE = re.compile(r"\.(?:/plugins/([a-z-]+))?(?:\[([a-z,]+)\])?")


def places(text: str) -> Iterator[frozenset[str]]:
    """The local directories of each `pip install` of a text, with their extras."""
    for line in FROM_CHECKOUT.findall(text):
        yield frozenset(shlex.split(line))


@cache
def required(place: str) -> frozenset[str]:
    """The distributions of this repository that one in a directory requires, itself among them."""
    matched = PLACE.fullmatch(place)
    assert matched is not None, place
    name, extras = matched[1], (matched[2] or "").split(",")
    path = REPOSITORY / "plugins" / name if name else REPOSITORY
    project = tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {project["name"]}
    for text in (
        *project["dependencies"],
        *(each for extra in extras if extra for each in project["optional-dependencies"][extra]),
    ):
        requirement = Requirement(text)
        if requirement.name.startswith("kschedfw") and requirement.name != project["name"]:
            found.add(requirement.name)
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_what_comes_from_an_index_comes_from_a_checkout_too(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    from_checkout = {place for line in places(text) for place in line}
    missing = []
    for name, extras, plain in FROM_INDEX.findall(text):
        directory = "." if (name or plain) == "kschedfw" else f"./plugins/{name or plain}"
        if f"{directory}{extras}" not in from_checkout:
            missing.append(f"{directory}{extras}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_pip_finds_everything_of_this_repository_in_the_checkout(page: Path) -> None:
    """None of it is in an index: what one directory requires, the command names."""
    for line in places(page.read_text(encoding="utf-8")):
        named = {
            "kschedfw" if place.startswith((".[", ".")) and "/" not in place else place for place in line
        }
        named = {place.removeprefix("./plugins/").partition("[")[0] for place in named}
        assert {name for place in line for name in required(place)} <= named, f"pip install {sorted(line)}"


def test_the_readme_installs_what_its_commands_need() -> None:
    (line,) = places((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    assert "./plugins/kschedfw-advisor[explore]" in line  # `kschedfw explore`


def test_there_are_such_pages() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(bool(FROM_INDEX.search(text)) for text in texts) > 15
    assert sum(len(list(places(text))) for text in texts) > 25
