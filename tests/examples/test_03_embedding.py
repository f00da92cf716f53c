"""The third example prints what its README shows."""

from __future__ import annotations

import pytest

from tests.examples.running import output_as_shown

pytestmark = pytest.mark.slow


def test_it_prints_what_its_readme_shows() -> None:
    lines = output_as_shown("03-embedding", "batch_scheduler.py")

    nodes = {
        job: found.split() for job, runs, found in (line.partition(" runs on ") for line in lines) if runs
    }
    assert {job: len(found) for job, found in nodes.items()} == {
        "simulation": 4,
        "report": 3,
        "training": 6,
        "rendering": 5,
    }, "jobs run whole"
    assert len(set(nodes["report"])) == 1, "training's task had been there, and was taken back"
