"""The page on running a scheduler has every flag with its default, every endpoint, check and exit code."""

from __future__ import annotations

import re
from pathlib import Path

from kschedfw_kubernetes.cli.run import RUN_HELP, run

from kschedfw.cli.exits import ExitCode
from kschedfw.config import parse_configuration

PAGE = (Path(__file__).parents[2] / "docs" / "run.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| ([`\d].*) \|$", section, re.MULTILINE)  # neither headers nor rules
    return [re.split(r"(?<!\\) \| ", line) for line in lines]


def test_the_configuration_that_is_shown_stands_beside_kube_scheduler() -> None:
    text = PAGE.split("```yaml\n")[1].split("```")[0]
    configuration = parse_configuration(text, source="scheduler.yaml")
    assert configuration.warnings == ()
    (profile,) = configuration.profiles
    assert profile.scheduler_name != "default-scheduler"
    assert configuration.leader_election.resource_name != "kube-scheduler"


def test_every_flag_is_there() -> None:
    documented = re.findall(r"--[a-z-]+", " ".join(row[0] for row in rows("Flags")))
    flags = [next(each for each in parameter.opts if each.startswith("--")) for parameter in run.params]
    assert sorted(documented) == sorted(set(flags) - {"--help"})


def test_defaults_are_those_of_the_command() -> None:
    defaults = {parameter.opts[0]: str(parameter.default) for parameter in run.params}
    shown = {row[0].split("`")[1].split()[0]: row[1] for row in rows("Flags")}
    for flag in ("--bind-address", "--secure-port", "--authorization-always-allow-paths", "--v"):
        assert shown[flag] == defaults[flag]


def test_exit_codes_are_those_of_the_help() -> None:
    told = {int(code) for code in re.findall(r"^  (\d+) ", RUN_HELP, re.MULTILINE)}
    documented = {
        int(code)
        for row in rows("Signals and exit codes")
        for code in re.findall(r"^[\d, ]+$", row[0])
        for code in code.split(", ")
    }
    assert documented == told
    assert {ExitCode.DONE, ExitCode.FAILED, ExitCode.BAD_INPUT, ExitCode.BUG} < told
