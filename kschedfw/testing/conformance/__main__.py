"""`python -m kschedfw.testing.conformance check FILE...` and `decide FILE`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kschedfw.api.errors import KschedfwError
from kschedfw.framework.runtime.registry import Registry
from kschedfw.testing.conformance.compare import (
    Difference,
    differences,
    group_differences,
    number_of_decisions,
    refused_otherwise,
)
from kschedfw.testing.conformance.decide import decide, refusal
from kschedfw.testing.conformance.groups import decide_groups
from kschedfw.testing.conformance.scenario import (
    GroupScenario,
    Mode,
    Scenario,
    read_all_scenarios,
)


class _Check:
    """The counts over all files, and the differences that were found."""

    def __init__(self, registry: Registry, mode: Mode) -> None:
        self.registry = registry
        self.mode = mode
        self.differences: list[Difference] = []
        self.decisions = 0
        self.refusals = 0
        self.without_post_filter = 0

    def scenario(self, scenario: Scenario | GroupScenario) -> None:
        if isinstance(scenario, GroupScenario):
            self.decisions += number_of_decisions(scenario)
            decided = decide_groups(scenario, self.registry, self.mode)
            self.differences.extend(group_differences(scenario, decided))
            return
        if scenario.error is not None:
            self.refusals += 1
            self.differences.extend(refused_otherwise(scenario, refusal(scenario, self.registry)))
            return
        try:
            decisions = decide(scenario, self.registry, self.mode)
        except KschedfwError as error:
            self.differences.append(
                Difference(scenario.name, "decisions", f"{type(error).__name__}: {error}")
            )
            return
        self.decisions += len(decisions)
        self.without_post_filter += sum("postFilter" not in decision for decision in decisions)
        self.differences.extend(differences(scenario, decisions))


def check(files: Sequence[Path], show: int, modes: Sequence[Mode]) -> int:
    """Compare all scenarios of the files in each mode; return 0 if nothing differs, else 1."""
    registry = Registry()
    worst = 0
    for mode in modes:
        if len(modes) > 1:
            print(f"mode {mode.value}")
        worst = max(worst, _check_in(_Check(registry, mode), files, show))
    return worst


def _check_in(run: _Check, files: Sequence[Path], show: int) -> int:
    for file in files:
        decisions, found = run.decisions, len(run.differences)
        for scenario in read_all_scenarios(file):
            run.scenario(scenario)
        print(
            f"{file.name}: {run.decisions - decisions} decisions, {len(run.differences) - found} differences"
        )
    for difference in run.differences[:show]:
        print(f"  {difference}")
    if len(run.differences) > show:
        print(f"  … and {len(run.differences) - show} more")
    plural = "" if run.refusals == 1 else "s"
    refused = f" and {run.refusals} refused configuration{plural}" if run.refusals else ""
    print(f"{run.decisions} decisions{refused} checked, {len(run.differences)} differences")
    if run.without_post_filter:
        print(f"not compared: decisions' postFilter ({run.without_post_filter} times)")
    return 1 if run.differences else 0


def print_decisions(file: Path) -> int:
    """Print a JSON line for each scenario: its decisions, or the error."""
    registry = Registry()
    for scenario in read_all_scenarios(file):
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
    checking.add_argument(
        "--mode",
        choices=[*(mode.value for mode in Mode), "all"],
        default=Mode.MEMO.value,
        help="how plugins are asked: node by node, in batches, with answers kept (default), and with the"
        " cluster changing back and forth besides",
    )
    deciding = commands.add_parser("decide", help="print this library's decisions, a JSON line per scenario")
    deciding.add_argument("file", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        return (
            check(
                options.files,
                options.show,
                list(Mode) if options.mode == "all" else [Mode(options.mode)],
            )
            if options.command == "check"
            else print_decisions(options.file)
        )
    except KschedfwError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
