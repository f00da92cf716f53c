"""`kschedfw test`: declarative tests of policies, with results for people, programs and CI."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as ET

import click

from kschedfw.api.field_errors import printable
from kschedfw.api.records import frozen
from kschedfw.api.words import counted
from kschedfw.cli.exits import ExitCode, complain, print_json, tell
from kschedfw.cli.options import FILE, json_option
from kschedfw.testing.case_runner import Runner, shown_problems
from kschedfw.testing.cases import SUFFIXES, Case, CaseError, find_suites, read_cases

TEST_HELP = f"""Run declarative tests of policies: cases in YAML, each with a cluster, a configuration, pods, and
what is expected of them.

PATH are suites, or directories with suites: files whose names end in {SUFFIXES[0]}. pytest collects them, too.

\b
Exit codes:
  0    every case is as expected
  1    some case isn't, or there is none
  2    bad usage; or a suite, a manifest or a configuration is refused
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""


@frozen
class CaseResult:
    """The result of a case: its problems, whether these are of its input, and its duration in seconds."""

    case: Case
    problems: Sequence[str]
    is_error: bool
    seconds: float

    @property
    def outcome(self) -> str:
        return "error" if self.is_error else "failed" if self.problems else "passed"

    def to_json(self) -> dict[str, object]:
        return {
            "file": str(self.case.file),
            "line": self.case.line,
            "name": self.case.name,
            "outcome": self.outcome,
            "problems": list(self.problems),
            "seconds": self.seconds,
        }


@click.command("test", help=TEST_HELP)
@click.argument(
    "paths", type=FILE, nargs=-1, required=True, metavar="PATH...", help="Suites, or directories of them."
)
@click.option("--update", is_flag=True, help="Write the files of `placements` instead of comparing them.")
@json_option
@click.option("--junit", type=FILE, metavar="FILE", help="Also write the results as JUnit's XML, for CI.")
def run_suites(
    paths: Sequence[Path],
    update: bool,
    as_json: bool,
    junit: Path | None,
) -> None:
    cases = _cases(paths)
    if not cases:
        where = ", ".join(map(str, paths))
        why = f"no case in {where}: in a directory, the files whose names end in {SUFFIXES[0]} are read"
        raise click.exceptions.Exit(complain(why, ExitCode.NOTHING_TO_DO))
    runner = Runner(update=update or None)
    results = []
    for case in cases:
        results.append(_run(runner, case))
        if not as_json:
            _show(results[-1])
    if junit is not None:
        ET.ElementTree(_junit(results)).write(junit, encoding="utf-8", xml_declaration=True)
    outcomes = [result.outcome for result in results]
    if as_json:
        print_json([result.to_json() for result in results])
    else:
        told = (f"{outcomes.count(each)} {each}" for each in dict.fromkeys(("passed", *outcomes)))
        print(f"{counted(len(results), 'case')}: {', '.join(told)}")
    if "error" in outcomes:
        raise click.exceptions.Exit(ExitCode.BAD_INPUT)
    if "failed" in outcomes:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _cases(paths: Sequence[Path]) -> list[Case]:
    """Return the cases of all suites; report all errors of suites at once."""
    found: list[Case] = []
    wrong: list[str] = []
    for suite in dict.fromkeys(suite for path in paths for suite in find_suites(path)):
        try:
            found += read_cases(suite)
        except CaseError as error:
            wrong += error.errors
    if wrong:
        tell(wrong)
        raise click.exceptions.Exit(complain("a suite is refused, so no case was run", ExitCode.BAD_INPUT))
    return found


def _run(runner: Runner, case: Case) -> CaseResult:
    begin = time.perf_counter()
    try:
        problems, is_error = runner.problems(case), False
    except CaseError as error:
        problems, is_error = list(error.errors), True
    return CaseResult(case, problems, is_error, time.perf_counter() - begin)


def _show(result: CaseResult) -> None:
    if result.problems:
        case = result.case
        print(f"{case.file}:{case.line}: {result.outcome}: {printable(case.name)}")
        print(shown_problems(result.problems))


def _junit(results: Sequence[CaseResult]) -> ET.Element:
    root = ET.Element("testsuites")
    for file, of_file in groupby(results, key=lambda result: str(result.case.file)):
        members = list(of_file)
        outcomes = [result.outcome for result in members]
        suite = ET.SubElement(root, "testsuite", name=file, tests=str(len(members)))
        suite.set("failures", str(outcomes.count("failed")))
        suite.set("errors", str(outcomes.count("error")))
        suite.set("time", f"{sum(result.seconds for result in members):.3f}")
        suite.extend(_junit_cases(members))
    return root


def _junit_cases(results: Sequence[CaseResult]) -> Iterator[ET.Element]:
    for result in results:
        case = result.case
        # XML has no control characters, not even escaped ones.
        element = ET.Element(
            "testcase", classname=str(case.file), name=printable(case.name), file=str(case.file)
        )
        element.set("line", str(case.line))
        element.set("time", f"{result.seconds:.3f}")
        if result.problems:
            kind = "error" if result.is_error else "failure"
            problem = ET.SubElement(element, kind, message=printable(result.problems[0], 4000))
            problem.text = shown_problems(result.problems)
        yield element
