"""Fixtures and settings of all suites: those of the core, and of the distributions that complete it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kschedfw.api.distributions import entry_points_of

REPOSITORY = Path(__file__).parents[1]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare every garbage collection what pytest knows of all tests, also while it finds them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # Each young collection goes through what was made since the last one: at 20,000 objects, as in commands, that
        # takes a fifth of the time of the recorded decisions, at a million hardly any, for 100 MB.
        gc.set_threshold(1_000_000)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first; tests of a module stay together, since they share what it prepares."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session", autouse=True)
def _installed_plugins_are_read_once() -> Iterator[None]:
    """Keep what is installed, by the directories that modules come from and their times.

    Thousands of tests make a registry, each of which reads the metadata of all distributions.
    """

    @cache
    def found(groups: tuple[str, ...], *_directories: tuple[str, int]) -> Sequence[EntryPoint]:
        return entry_points_of(groups)

    def kept(groups: Iterable[str]) -> Sequence[EntryPoint]:
        directories = [each for each in map(Path, sys.path) if each.is_dir()]
        return found(tuple(groups), *((str(each), each.stat().st_mtime_ns) for each in directories))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kschedfw.framework.runtime.registry.entry_points_of", kept)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Finds real input, which is not part of the repository; skips the test where it is missing.

    It is looked for in `../shared/data` beside the repository, or where KSCHEDFW_SHARED_DATA says.
    """
    override = os.environ.get("KSCHEDFW_SHARED_DATA")
    directory = Path(override) if override else REPOSITORY.parent / "shared" / "data"

    def find(name: str) -> Path:
        path = directory / name
        if not path.exists():
            pytest.skip(
                f"NOT TESTED: no {name} in {directory}; set KSCHEDFW_SHARED_DATA to where the real input is"
            )
        return path

    return find
