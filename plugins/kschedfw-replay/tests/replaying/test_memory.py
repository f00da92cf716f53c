"""How much memory a replay takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "replay_cost.py"
AT_MOST = re.compile(r"([\d,]+) MiB at most")


def most(pods: int) -> int:
    """The largest resident set of a process that replays so many pods, in MiB."""
    command = [sys.executable, str(SCRIPT), "--distinct", str(pods), "10"]
    result = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", timeout=1200)
    found = AT_MOST.search(result.stdout)
    assert found is not None, result.stdout
    return int(found[1].replace(",", ""))


@pytest.mark.nightly
@pytest.mark.timeout(2400)
def test_three_times_as_many_pods_take_30_bytes_more_for_each() -> None:
    """That is 1 MiB for 40,000 pods; what has a limit is full by 20,000."""
    assert most(60_000) - most(20_000) <= 4
