"""`python -m tests.conformance.check FILE...`: compare decisions with those recorded from kube-scheduler."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kschedfw.api.errors import KschedfwError
from kschedfw.config import ConfigurationError
from kschedfw.framework.runtime.registry import Registry
from tests.conformance.compare import (
    Difference,
    differences,
    group_differences,
    number_of_decisions,
    refused_otherwise,
)
from tests.conformance.decide import profile_of
from tests.conformance.modes import Mode, decide_groups_in, decide_in
from tests.conformance.scenario import GroupScenario, Scenario, read_scenarios


def refusal(scenario: Scenario, registry: Registry) -> ConfigurationError | None:
    """Return the error of the scenario's configuration; None if it is accepted."""
    try:
        profile_of(scenario, registry)
    except ConfigurationError as error:
        return error
    return None


class _Check:
    """The counts over all files, and the differences that were found."""

    def __init__(self, registry: Registry, mode: Mode, *, recorded: bool) -> None:
        self.registry = registry
        self.mode = mode
        self.recorded = recorded
        self.differences: list[Difference] = []
        self.decisions = 0
        self.refusals = self.planned = 0
        self.without_post_filter = 0

    def scenario(self, scenario: Scenario | GroupScenario) -> None:
        if isinstance(scenario, GroupScenario):
            self.decisions += number_of_decisions(scenario)
            decided = decide_groups_in(self.mode, scenario, self.registry, recorded=self.recorded)
            self.differences.extend(group_differences(scenario, decided))
            return
        if scenario.error is not None:
            self.refusals += 1
            self.differences.extend(refused_otherwise(scenario, refusal(scenario, self.registry)))
            return
        try:
            decided_pods = decide_in(self.mode, scenario, self.registry, recorded=self.recorded)
        except KschedfwError as error:
            self.differences.append(
                Difference(scenario.name, "decisions", f"{type(error).__name__}: {error}")
            )
            return
        decisions = decided_pods.decisions
        self.planned += decided_pods.planned
        self.decisions += len(decisions)
        self.without_post_filter += sum("postFilter" not in decision for decision in decisions)
        self.differences.extend(differences(scenario, decisions))


def check(files: Sequence[Path], show: int, modes: Sequence[Mode], *, recorded: bool = False) -> int:
    """Compare all scenarios of the files in each mode; return 0 if nothing differs, else 1."""
    registry = Registry()
    worst = 0
    for mode in modes:
        if len(modes) > 1:
            print(f"mode {mode.value}")
        worst = max(worst, _check_in(_Check(registry, mode, recorded=recorded), files, show))
    return worst


def _check_in(run: _Check, files: Sequence[Path], show: int) -> int:
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
    plural = "" if run.refusals == 1 else "s"
    refused = f" and {run.refusals} refused configuration{plural}" if run.refusals else ""
    print(f"{run.decisions} decisions{refused} checked, {len(run.differences)} differences")
    if run.mode is Mode.PLAN:
        print(f"{run.planned} of them by a plan")
    if run.without_post_filter:
        print(f"not compared: decisions' postFilter ({run.without_post_filter} times)")
    return 1 if run.differences else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.check",
        description="Compare with the decisions recorded from kube-scheduler; exit 1 on any difference.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument(
        "--show", type=int, default=20, metavar="N", help="print the first N differences (20)"
    )
    parser.add_argument(
        "--mode",
        choices=[*(mode.value for mode in Mode), "all"],
        default=Mode.MEMO.value,
        help="how plugins are asked: node by node, with answers kept (default), and with the"
        " cluster changing back and forth besides; or by plans",
    )
    parser.add_argument("--recorder", action="store_true", help="decide with a recorder of metrics")
    options = parser.parse_args(arguments)
    modes = list(Mode) if options.mode == "all" else [Mode(options.mode)]
    try:
        return check(options.files, options.show, modes, recorded=options.recorder)
    except KschedfwError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
