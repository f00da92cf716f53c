"""Fixtures and settings of all suites: those of the core, and of the distributions that complete it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.control_plane import ControlPlane, control_plane
from tests.properties import register_profiles

REPOSITORY = Path(__file__).parents[1]

register_profiles()


def pytest_collection_finish() -> None:
    """Spare every garbage collection what pytest knows of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def _little_garbage() -> None:
    """For modules in which much is measured: each measurement begins with a full collection."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture(scope="session")
def lasting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A kube-apiserver with an etcd of its own, for fixtures that outlive a test; tests ask for `real_server`."""
    with control_plane(tmp_path_factory.mktemp("control-plane"), users={"alices": "alice"}) as real:
        yield real


@pytest.fixture
def real_server(lasting_server: ControlPlane) -> Iterator[ControlPlane]:
    """The kube-apiserver, without pods and nodes of tests before; for tests with the marks `needs_control_plane`."""
    yield lasting_server
    lasting_server.clear()
