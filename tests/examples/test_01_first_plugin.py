"""The first example prints what its README shows."""

from __future__ import annotations

import pytest

from tests.examples.running import output_as_shown

pytestmark = pytest.mark.slow


def test_it_prints_what_its_readme_shows() -> None:
    lines = output_as_shown("01-first-plugin", "first_plugin.py")
    assert len(lines) == 5
    assert (
        "web-3 is pending: 0/3 nodes are available: 1 node(s) were in the wrong rack, 2 Insufficient cpu."
        in lines
    )
