"""What the command tells the shell."""

from __future__ import annotations

import sys
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes that commands share; CONDITION_HOLDS is `compare`'s alone."""

    DONE = 0
    NOTHING_TO_DO = 1
    BAD_INPUT = 2
    CONDITION_HOLDS = 3
    BUG = 70
    INTERRUPTED = 130


def complain(message: str, code: ExitCode) -> ExitCode:
    """Say on stderr what the code means."""
    print(f"kschedfw: {' '.join(message.split())}", file=sys.stderr)
    return code
