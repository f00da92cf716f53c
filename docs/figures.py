"""Measures the figures of docs/performance.md anew: `make figures`, or `python docs/figures.py NAME...` for some.

Each command of `COMMANDS` gives a report of `kschedfw bench`, which fills its tables together with machine, commit and
date. The site marks a table whose code has changed since its commit: docs/conf.py hands `marked` every page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from performance_tables import PAGE, filled

REPOSITORY: Final = Path(__file__).resolve().parents[1]
COMMANDS: Final = {
    "workloads": "bench --workload all --time-limit 4",
    "distinct": "bench --workload all-distinct --time-limit 4",
    "nodes": "bench --growth nodes",
    "pods": "bench --growth pods --pods 100 --percentage 100",
    "device-nodes": "bench --workload claim-template --growth nodes --sizes 100,1000,5000,15000 --init-pods 200",
    "devices": "bench --workload claim-template --growth devices --sizes 1,8,32 --pods 100",
    "members": "bench --workload gang --growth members",
    "racks": "bench --workload gang --growth racks",
}
"""The functions that fill the tables, by the name that `make figures ONLY=NAME` takes."""
MEASURED: Final = (
    *(f"kschedfw/{each}" for each in ("api", "cluster", "config", "framework", "plugins", "scheduler")),
    "plugins/kschedfw-devices/src/kschedfw_devices",
    "plugins/kschedfw-lab/src/kschedfw_lab/bench",
)
"""The code whose speed the figures are. Commands, pages and explanations aren't run by `kschedfw bench`'s pods."""
TABLE: Final = re.compile(r"(<!-- figures: \S+ -->\n.*?)(<!-- end of figures -->)", re.DOTALL)
COMMIT: Final = re.compile(r"^kschedfw \S+ at (\w+), \d{4}-", re.MULTILINE)


def marked(page: str, repository: Path = REPOSITORY) -> str:
    """The page with a note in each table of figures that is older than the code that it measures."""

    def with_note(table: re.Match[str]) -> str:
        older = _age(table[1], repository)
        return table[0] if older is None else f"{table[1]}```{{note}}\n{older}\n```\n\n{table[2]}"

    return TABLE.sub(with_note, page)


def _age(table: str, repository: Path) -> str | None:
    """A sentence that says how the table is older than the code; None if it isn't."""
    found = COMMIT.search(table)
    if found is None:
        return "Older than the code: measured before tables named their commit."
    commit = found[1]
    try:
        since = _git(repository, "rev-list", "--count", f"{commit}..HEAD", "--", *MEASURED)
    except (OSError, subprocess.CalledProcessError):
        # An archive has no history, a shallow clone a part of it.
        return f"{commit} isn't in this history, so whether the code has changed since then is unknown."
    return None if since == "0" else f"Older than the code: commits since {commit} that changed it: {since}."


def measure(names: list[str]) -> None:
    """Run the commands of these names, and write each report's tables as soon as it is there."""
    unknown = [each for each in names if each not in COMMANDS]
    if unknown:
        sys.exit(f"figures: there is no {', '.join(unknown)}; there are {', '.join(COMMANDS)}")
    changed = _git(REPOSITORY, "status", "--porcelain", "--", *MEASURED)
    if changed:
        # Their commit would name other code than what was measured.
        sys.exit(f"figures: commit the code that is measured first; uncommitted are\n{changed}")
    origin = {
        "commit": _git(REPOSITORY, "rev-parse", "--short", "HEAD"),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",  # noqa: TID251 - the day of the measurement
    }
    for name in names or COMMANDS:
        command = [sys.executable, "-m", "kschedfw", *COMMANDS[name].split(), "--json"]
        print(f"== kschedfw {COMMANDS[name]}", flush=True)  # noqa: T201
        done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"figures: {name} failed with exit code {done.returncode}; its tables are as they were")
        page = filled(PAGE.read_text(encoding="utf-8"), json.loads(done.stdout) | origin)
        PAGE.write_text(page, encoding="utf-8")


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    measure(sys.argv[1:])
