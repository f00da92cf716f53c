"""Exit codes, messages on standard error, and JSON on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from kschedfw.api.field_errors import first_of, printable
from kschedfw.api.words import counted

if TYPE_CHECKING:
    from kschedfw.simulator.failures import Failures

_LONGEST = 4000


class ExitCode(IntEnum):
    """The exit codes of all commands; only `compare` uses CONDITION_HOLDS."""

    # 70 is EX_SOFTWARE in sysexits.h; 130 and 141 are what shells make of a process that SIGINT or SIGPIPE has ended.
    DONE = 0
    NOTHING_TO_DO = 1
    FAILED = 1
    BAD_INPUT = 2
    CONDITION_HOLDS = 3
    BUG = 70
    INTERRUPTED = 130
    READER_GONE = 141


def complain(message: str, code: ExitCode) -> ExitCode:
    """Print the message to stderr, and return the exit code."""
    _write([f"kschedfw: {_line(message)}"])
    return code


def tell(problems: Sequence[str]) -> None:
    """Print the problems to stderr, a line for each; of very many only the first."""
    _write(first_of([_line(problem) for problem in problems], "problems"))


def tell_failures(failures: Failures) -> None:
    """Print each distinct failure of a plugin on stderr, with its traceback and its count."""
    _write(printable(line, _LONGEST) for line in failures.lines())


def failure_summary(failures: Failures) -> str:
    return f"{counted(failures.count, 'failure')} of plugins"


def print_json(content: object) -> None:
    """Print a document of JSON to stdout."""
    print(json.dumps(content, indent=2, ensure_ascii=_ascii_only()))


def print_json_line(content: object) -> None:
    """Print a document of JSON to stdout as one line, which a reader in a pipe gets at once."""
    print(json.dumps(content, ensure_ascii=_ascii_only()), flush=True)


def _ascii_only() -> bool:
    """Tell whether stdout's encoding lacks characters: what `start` has written for them would be no JSON."""
    return not (sys.stdout.encoding or "utf").lower().startswith("utf")


def _write(lines: Iterable[str]) -> None:
    # First: with `2>&1` into a pipe, the verdict would precede its table.
    sys.stdout.flush()
    for line in lines:
        print(line, file=sys.stderr)


def _line(message: str) -> str:
    """Return the message as one line of limited length, without control characters."""
    # Cut before it is split: a message may be a whole document.
    return printable(" ".join(message[: 2 * _LONGEST].split()), _LONGEST)
