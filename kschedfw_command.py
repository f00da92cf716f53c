"""The start of the script `kschedfw`, outside of the package since importing that takes a while.

Who presses Ctrl-C meanwhile gets the same line and exit code as later.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Run the command with the process's arguments, and exit with its exit code."""
    handler = signal.getsignal(signal.SIGINT)
    if (
        handler is signal.default_int_handler
    ):  # else somebody wants something else: nohup, a shell's background
        signal.signal(signal.SIGINT, _end)
    from kschedfw.cli.start import main as command

    signal.signal(signal.SIGINT, handler)
    command()


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    # An exception might be caught by what is being imported, and there is nothing to clean up yet.
    if sys.stderr is not None:  # else it is closed
        os.write(sys.stderr.fileno(), b"kschedfw: interrupted\n")
    os._exit(130)
