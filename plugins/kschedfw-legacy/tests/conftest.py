"""Where real input is found, and how properties are tried."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("kschedfw-legacy", deadline=None, derandomize=True)
settings.load_profile("kschedfw-legacy")


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Find real input, in `shared/data` beside the repository or where KSCHEDFW_SHARED_DATA says; else skip."""
    default = Path(__file__).parents[4] / "shared" / "data"
    directory = Path(os.environ.get("KSCHEDFW_SHARED_DATA", default))

    def find(name: str) -> Path:
        path = directory / name
        if not path.exists():
            pytest.skip(
                f"NOT TESTED: no {name} in {directory}; set KSCHEDFW_SHARED_DATA to where the real input is"
            )
        return path

    return find
