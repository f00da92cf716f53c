"""Runs what takes long, part by part, and writes one report: `make verify`.

.ci/verify.toml lists the parts. Each ends with a verdict: passed, passed with a smaller amount than the table's,
failed, or not run, with what this machine lacks. Outcomes are kept by commit in build/verify, a file for each part. So
a run that was interrupted goes on where it was, and two runs can share the parts: parts that passed aren't run again.
After each part docs/verification.md shows all outcomes that are kept.

A report is about one commit, so uncommitted changes are refused, but for those of the report itself.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn

import attrs

from kschedfw import SystemClock

REPOSITORY: Final = Path(__file__).resolve().parents[1]
TABLE: Final = REPOSITORY / ".ci" / "verify.toml"
PAGE: Final = REPOSITORY / "docs" / "verification.md"
KEPT: Final = REPOSITORY / "build" / "verify"
REPORT: Final = re.compile(r"(<!-- verified -->\n).*?(<!-- end of verified -->)", re.DOTALL)
NEED: Final = re.compile(r"(program|asset|variable):[^:]+")
ASSETS: Final = "KUBEBUILDER_ASSETS"
"""The variable that names the folder of a cluster's programs, as for kubebuilder."""


class Verdict(StrEnum):
    """The end of a part. Only the first member says that the part shows what the table says."""

    PASSED = "passed"
    LESS = "passed, with less"
    FAILED = "FAILED"
    NOT_RUN = "not run"


@attrs.frozen
class Part:
    """A row of the table; .ci/verify.toml describes the fields."""

    name: str
    what: str
    command: str
    figure: str
    minutes: float
    amount: int | None = None
    unit: str = ""
    needs: tuple[str, ...] = ()

    def missing(self) -> str:
        """Return the needs that this machine lacks, as the end of a sentence; empty if none."""
        needs = [need.split(":") for need in self.needs]
        return " and ".join(
            dict.fromkeys(_lacking(kind, name) for kind, name in needs if not _has(kind, name))
        )


@attrs.frozen
class Outcome:
    """The result of a part. `amount` is what was run of the part's amount."""

    verdict: Verdict = attrs.field(converter=Verdict)
    figure: str = ""
    seconds: float = 0.0
    amount: int | None = None
    reason: str = ""


def read(path: Path) -> list[Part]:
    """Read the table. Ends the program with one line if a part isn't described as it must be."""
    known = {each.name: each for each in attrs.fields(Part)}
    parts = []
    for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if unknown := row.keys() - known.keys():
            _give_up(f"{path.name}: {name}: there is no field {', '.join(sorted(unknown))}")
        required = {each for each, field in known.items() if field.default is attrs.NOTHING} - {"name"}
        if absent := required - row.keys():
            _give_up(f"{path.name}: {name}: it has no {', '.join(sorted(absent))}")
        if ("{amount}" in row["command"]) != ("amount" in row):
            _give_up(f"{path.name}: {name}: an amount and {{amount}} in the command belong together")
        part = Part(name=name, **row)
        if not all(NEED.fullmatch(need) for need in part.needs):
            _give_up(
                f"{path.name}: {name}: needs are program:, asset: or variable:NAME, not {list(part.needs)}"
            )
        if re.compile(part.figure).groups != 1:
            _give_up(f"{path.name}: {name}: figure must have one group, which is shown")
        parts.append(part)
    return parts


def run(part: Part, amount: int | None, log: Path) -> Outcome:
    """Run a part, with its output in the file `log`. An interrupt ends what it started, and is raised again."""
    if missing := part.missing():
        return Outcome(Verdict.NOT_RUN, reason=missing)
    clock = SystemClock()
    began = clock.monotonic()
    command = part.command.replace("{amount}", str(amount))
    interrupts: list[int] = []
    with log.open("wb") as output:
        # An interrupt while the process starts would be raised where nobody knows the process, and leave it running.
        handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=REPOSITORY,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A group of its own, so that all that the part started can be ended.
            start_new_session=True,
        )
        try:
            signal.signal(signal.SIGINT, handler)
            if interrupts:
                raise KeyboardInterrupt
            code = process.wait(part.minutes * 60)
            reason = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            reason = f"not at its end after {part.minutes:g} minutes"
        finally:
            _end(process)
    seconds = clock.monotonic() - began
    found = re.findall(part.figure, log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    figure = found[-1].strip() if found else ""
    if not reason and not figure:
        reason = "it ended well and shows no figure"
    if reason:
        return Outcome(Verdict.FAILED, figure, seconds, amount, reason)
    return Outcome(Verdict.PASSED if amount == part.amount else Verdict.LESS, figure, seconds, amount)


def written(page: str, parts: Sequence[Part], outcomes: Mapping[str, Outcome], about: str) -> str:
    """The page with a report: a row for each part of the table, also for those that weren't begun."""
    rows = ["| part | what | amount | figure | time | verdict |", "| --- | --- | ---: | --- | ---: | --- |"]
    for part in parts:
        outcome = outcomes.get(part.name, Outcome(Verdict.NOT_RUN, reason="not begun"))
        verdict = f"{outcome.verdict}: {outcome.reason}" if outcome.reason else str(outcome.verdict)
        duration = _duration(outcome.seconds) if outcome.seconds else ""
        cells = (part.name, part.what, _amount(part, outcome), outcome.figure, duration, verdict)
        rows.append("| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |")
    report = "\n".join(["", *rows, "", f"{about}.", "", ""])
    return REPORT.sub(lambda found: f"{found[1]}{report}{found[2]}", page)


def report(parts: Sequence[Part], kept: Path, about: str) -> dict[str, Outcome]:
    """Write the report of all outcomes in the folder `kept` into its page, and return them by part."""
    # Other runs may have kept outcomes since this one began.
    read = {part.name: _kept(kept, part) for part in parts}
    outcomes = {name: outcome for name, outcome in read.items() if outcome is not None}
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(written(page, parts, outcomes, about), encoding="utf-8")
    return outcomes


def main() -> None:
    options = _options()
    parts = read(TABLE)
    if options.list:
        print(*(f"{part.name:20} {part.what}" for part in parts), sep="\n")
        return
    names = [part.name for part in parts]
    if unknown := [each for each in (*options.names, *options.at_most) if each not in names]:
        _give_up(f"there is no part {', '.join(unknown)}; there are {', '.join(names)}")
    commit = _commit()
    kept = KEPT / commit
    kept.mkdir(parents=True, exist_ok=True)
    about = _about(commit)
    chosen = [] if options.report_only else [each for each in parts if each.name in (options.names or names)]
    for part in chosen:
        amount = part.amount
        if amount is not None:
            amount = min(amount, options.at_most.get(part.name, amount))
        outcome = _kept(kept, part)
        if outcome is None or not _suffices(outcome, amount):
            print(f"== {part.name}", flush=True)
            outcome = run(part, amount, kept / f"{part.name}.log")
            with _alone(kept):
                (kept / f"{part.name}.json").write_text(json.dumps(attrs.asdict(outcome)))
                report(parts, kept, about)
        print(f"{part.name}: {outcome.verdict} {outcome.reason or outcome.figure}", flush=True)
    with _alone(kept):
        outcomes = report(parts, kept, about)
    failed = [name for name, outcome in outcomes.items() if outcome.verdict is Verdict.FAILED]
    if failed:
        _give_up(f"failed: {', '.join(failed)}; the outputs are in {kept.relative_to(REPOSITORY)}")


def _suffices(earlier: Outcome, amount: int | None) -> bool:
    """Return whether an earlier outcome stands, so that the part needn't be run again."""
    if earlier.verdict not in (Verdict.PASSED, Verdict.LESS):
        return False
    return amount is None or (earlier.amount or 0) >= amount


def _kept(kept: Path, part: Part) -> Outcome | None:
    path = kept / f"{part.name}.json"
    return Outcome(**json.loads(path.read_text())) if path.exists() else None


@contextlib.contextmanager
def _alone(kept: Path) -> Iterator[None]:
    """Wait until no other run of this commit writes an outcome or the report, and keep others from it."""
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _has(kind: str, name: str) -> bool:
    if kind == "variable":
        return bool(os.environ.get(name))
    program = shutil.which(name, path=os.environ.get(ASSETS, "") if kind == "asset" else None)
    if program is None:
        return False
    # A version manager's shim of a version that isn't selected is found, and fails. helm has `version` only.
    return any(
        not subprocess.run(
            [program, asked], check=False, capture_output=True, stdin=subprocess.DEVNULL
        ).returncode
        for asked in ("--version", "version")
    )


def _lacking(kind: str, name: str) -> str:
    match kind:
        case "variable":
            return f"{name} isn't set"
        case "asset":
            return f"{ASSETS} has no {name} that runs" if os.environ.get(ASSETS) else f"{ASSETS} isn't set"
        case _:
            return f"there is no {name}"


def _environment() -> dict[str, str]:
    """Return the process's variables with the environment's programs first, and nothing of the make that runs it."""
    # make hands its arguments ONLY and AT_MOST on, and targets that parts make have an ONLY of their own.
    of_make = ("MAKE", "MFLAGS", "ONLY", "AT_MOST")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(of_make)}
    return inherited | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the process's group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _commit() -> str:
    changed = _git(
        "status", "--porcelain", "--untracked-files=no", "--", ".", f":!{PAGE.relative_to(REPOSITORY)}"
    )
    if changed:
        _give_up(f"a report is about a commit: commit first\n{changed}")
    return _git("rev-parse", "--short", "HEAD")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _about(commit: str) -> str:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"kschedfw at {commit}, {datetime.now(UTC):%Y-%m-%d}, {python}, {system}"  # noqa: TID251 - the day of the run


def _amount(part: Part, outcome: Outcome) -> str:
    if part.amount is None:
        return ""
    if outcome.amount is not None and outcome.amount < part.amount:
        return f"{outcome.amount:,} of {part.amount:,} {part.unit}"
    return f"{part.amount:,} {part.unit}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _options() -> argparse.Namespace:
    def at_most(text: str) -> tuple[str, int]:
        name, _, number = text.partition("=")
        if not number.isdecimal() or not int(number):
            raise argparse.ArgumentTypeError(f"{text!r} is not NAME=N with a positive whole number")
        return name, int(number)

    class Collect(argparse.Action):
        def __call__(
            self, _parser: object, namespace: argparse.Namespace, value: Any, _option: object = None
        ) -> None:
            namespace.at_most[value[0]] = value[1]

    parser = argparse.ArgumentParser(
        prog="verify", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="PART", help="parts to run; without any, all")
    parser.add_argument("--list", action="store_true", help="print the parts, and end")
    parser.add_argument(
        "--report-only", action="store_true", help="write the report of what was run, and end"
    )
    parser.add_argument(
        "--at-most",
        action=Collect,
        type=at_most,
        default={},
        metavar="PART=N",
        help="run a part with this amount if the table's is greater. Repeatable.",
    )
    return parser.parse_args()


def _give_up(message: str) -> NoReturn:
    sys.exit(f"verify: {message}")


if __name__ == "__main__":
    main()
