"""Real input, which is not part of the distribution, and what modules share in which much is measured."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Finds real input in the directory that KSCHEDFW_SHARED_DATA names; skips the test where it is missing.

    By default that is `shared/data` beside the repository.
    """
    default = Path(__file__).parent / ".." / ".." / ".." / ".." / "shared" / "data"
    directory = Path(os.environ.get("KSCHEDFW_SHARED_DATA", default)).resolve()

    def find(name: str) -> Path:
        path = directory / name
        if not path.exists():
            pytest.skip(
                f"NOT TESTED: no {name} in {directory}; set KSCHEDFW_SHARED_DATA to where the real input is"
            )
        return path

    return find


@pytest.fixture(scope="module")
def _little_garbage() -> None:
    """Spare each measurement, which begins with a full collection, what is there already."""
    gc.collect()
    gc.freeze()
