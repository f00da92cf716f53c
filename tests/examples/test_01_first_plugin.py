"""The first example prints what its README shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-first-plugin"


def test_it_prints_what_its_readme_shows() -> None:
    result = subprocess.run(
        [sys.executable, EXAMPLE / "first_plugin.py"], check=True, capture_output=True, encoding="utf-8"
    )
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert len(lines) == 5
    assert (
        "web-3 is pending: 0/3 nodes are available: 1 node(s) were in the wrong rack, 2 Insufficient cpu."
        in lines
    )
    command = "$ python examples/01-first-plugin/first_plugin.py\n"
    assert f"{command}{result.stdout}```\n" in (EXAMPLE / "README.md").read_text(encoding="utf-8")
