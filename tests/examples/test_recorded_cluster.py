"""The tables that are an example are what their script writes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "recorded-cluster"


@pytest.mark.slow
def test_tables_are_what_the_script_writes(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLE / "generate.py"))["main"](tmp_path)
    for name in ("machine_events.csv", "task_events.csv"):
        assert (tmp_path / name).read_bytes() == (EXAMPLE / name).read_bytes()
