"""The example in README.md runs as it stands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kschedfw.testing.waiting import PATIENCE

README = Path(__file__).parents[1] / "README.md"
INSTALLED = any(each.name == "Coscheduling" for each in entry_points(group="kschedfw"))


@pytest.mark.skipif(not INSTALLED, reason="NOT TESTED: this distribution isn't installed")
def test_the_example_places_one_gang_wholly_and_the_other_not_at_all(tmp_path: Path) -> None:
    blocks = re.findall(r"in `([a-z]+\.yaml)`:\n\n```yaml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    for name, content in blocks:
        (tmp_path / name).write_text(content, "utf-8")
    assert sorted(name for name, _ in blocks) == ["cluster.yaml", "profile.yaml"]
    command = ["simulate", "cluster.yaml", "--config", "profile.yaml", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "kschedfw", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode in (0, 1), done.stderr
    placed = [each["pod"] for each in json.loads(done.stdout)["decisions"] if each.get("node")]
    assert len(placed) == 3
    assert all("/left-" in pod for pod in placed)
