"""The `kschedfw` command. Importing this needs no extra; running the command needs `kschedfw[cli]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

NEEDS_EXTRA = "kschedfw: the command needs the cli extra: pip install 'kschedfw[cli]'"


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command with these arguments (default: the process's) and exit with its exit code."""
    try:
        code = _run(args)
        sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:  # before or after what handles it itself
        sys.exit(130)
    except BrokenPipeError:
        # The reader has left, `head` for example. What is still buffered must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run(args: Sequence[str] | None) -> int:
    try:
        import rich
        import typer
    except ModuleNotFoundError:
        print(NEEDS_EXTRA, file=sys.stderr)
        return 1
    del rich, typer  # only to see whether they are there

    from kschedfw.cli.app import run

    return run(args)


__all__ = ["main"]
