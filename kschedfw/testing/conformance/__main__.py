"""`python -m kschedfw.testing.conformance check FILE...` and `decide FILE`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kschedfw.api.errors import KschedfwError
from kschedfw.framework.registry import Registry
from kschedfw.testing.conformance.compare import VOLUME_PLUGINS, Difference, differences, not_compared
from kschedfw.testing.conformance.decide import decide
from kschedfw.testing.conformance.scenario import Scenario, read_scenarios


class _Check:
    """Counts over files, and the differences found."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.differences: list[Difference] = []
        self.decisions = 0
        self.left_out: Counter[str] = Counter()

    def scenario(self, scenario: Scenario) -> None:
        if (reason := not_compared(scenario)) is not None:
            self.left_out[reason] += 1
            return
        try:
            decisions = decide(scenario, self.registry)
        except KschedfwError as error:
            self.differences.append(
                Difference(scenario.name, "decisions", f"{type(error).__name__}: {error}")
            )
            return
        self.decisions += len(decisions)
        self.left_out["decisions' postFilter"] += sum("postFilter" not in decision for decision in decisions)
        self.differences.extend(differences(scenario, decisions))


def check(files: Sequence[Path], show: int) -> int:
    """Compare all scenarios of the files; 0 if nothing differs, else 1."""
    run = _Check(Registry())
    for file in files:
        decisions, found = run.decisions, len(run.differences)
        for scenario in read_scenarios(file):
            run.scenario(scenario)
        print(
            f"{file.name}: {run.decisions - decisions} decisions, {len(run.differences) - found} differences"
        )
    for difference in run.differences[:show]:
        print(f"  {difference}")
    if len(run.differences) > show:
        print(f"  … and {len(run.differences) - show} more")
    print(f"{run.decisions} decisions checked, {len(run.differences)} differences")
    print(f"not compared: PreFilter and PreScore skips of {', '.join(sorted(VOLUME_PLUGINS))}")
    for reason, count in sorted(run.left_out.items()):
        if count:
            what = "times" if reason.startswith("decisions") else "scenarios with"
            print(
                f"not compared: {reason} ({count} times)"
                if what == "times"
                else f"not compared: {count} {what} {reason}"
            )
    return 1 if run.differences else 0


def print_decisions(file: Path) -> int:
    """One JSON line per scenario: its decisions, or why there are none."""
    registry = Registry()
    for scenario in read_scenarios(file):
        try:
            line: dict[str, object] = {"name": scenario.name, "decisions": decide(scenario, registry)}
        except KschedfwError as error:
            line = {"name": scenario.name, "error": str(error)}
        print(json.dumps(line, separators=(",", ":")))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kschedfw.testing.conformance",
        description="Replay scenarios recorded from kube-scheduler (.jsonl or .jsonl.gz).",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser(
        "check", help="compare with the recorded decisions; exit 1 on any difference"
    )
    checking.add_argument("files", nargs="+", type=Path, metavar="FILE")
    checking.add_argument(
        "--show", type=int, default=20, metavar="N", help="print the first N differences (20)"
    )
    deciding = commands.add_parser("decide", help="print this library's decisions, a JSON line per scenario")
    deciding.add_argument("file", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        return (
            check(options.files, options.show)
            if options.command == "check"
            else print_decisions(options.file)
        )
    except KschedfwError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
