"""The `kschedfw` command. Importing this needs no extra; running the command needs `kschedfw[cli]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

NEEDS_EXTRA = "kschedfw: the command needs the cli extra: pip install 'kschedfw[cli]'"


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command with these arguments (default: the process's) and exit with its exit code."""
    try:
        sys.exit(_run(args))
    except KeyboardInterrupt:  # before or after what handles it itself
        sys.exit(130)


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
