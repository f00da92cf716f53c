"""`python -m tests.conformance decide FILE`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kschedfw import KschedfwError, Registry
from tests.conformance.decide import decide
from tests.conformance.groups import decide_groups
from tests.conformance.scenario import GroupScenario, read_scenarios


def print_decisions(file: Path) -> int:
    """Print a JSON line for each scenario: its decisions, or the error."""
    registry = Registry()
    for scenario in read_scenarios(file):
        try:
            line: dict[str, object] = (
                {"name": scenario.name, "rounds": decide_groups(scenario, registry)}
                if isinstance(scenario, GroupScenario)
                else {"name": scenario.name, "decisions": decide(scenario, registry)}
            )
        except KschedfwError as error:
            line = {"name": scenario.name, "error": str(error)}
        print(json.dumps(line, separators=(",", ":")))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description="Decide scenarios in the form of those recorded from kube-scheduler (.jsonl or .jsonl.gz).",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    deciding = commands.add_parser("decide", help="print this library's decisions, a JSON line per scenario")
    deciding.add_argument("file", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        return print_decisions(options.file)
    except KschedfwError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
