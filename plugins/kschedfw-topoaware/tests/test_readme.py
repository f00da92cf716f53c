"""The README's example does what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kschedfw.testing.waiting import PATIENCE

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    for name, content in re.findall(r"^`([\w.-]+)`:\n\n```\w+\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    found = re.search(r"^```console\n\$ kschedfw (.*?)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found is not None
    run = subprocess.run(
        [sys.executable, "-m", "kschedfw", *found[1].split()],
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "120"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    shown = [
        re.escape(line).replace(re.escape("..."), ".*") for line in found[2].splitlines() if line.strip()
    ]
    printed = [line.rstrip() for line in run.stdout.splitlines() if line.strip()]
    assert len(printed) >= len(shown)
    at = 0
    for pattern in shown:
        while not re.fullmatch(pattern.rstrip(), printed[at]):
            at += 1
            assert at < len(printed), f"{pattern!r} isn't in\n{run.stdout}"
