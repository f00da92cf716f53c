"""Start of the `kschedfw` command. Importing this needs no extra; running the command needs `kschedfw[cli]`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn, TextIO

# Copies of ExitCode's: its module isn't imported yet.
INTERRUPTED = 130
READER_GONE = 141

_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000
"""With Python's own 700, garbage collection takes a tenth of a simulation's time: most objects live to its end.

With 20,000 it takes 3 % of `kschedfw explain` on five nodes; a start makes fewer than this many lasting objects.
"""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command with these arguments (default: the process's) and exit with its exit code.

    If that is INTERRUPTED, a message on standard error says so.
    """
    sys.stdout, sys.stderr = _usable(sys.stdout), _usable(sys.stderr)
    # First: importing the command makes many lasting objects, too.
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    try:
        code = _run(args)
        # Within the `try`: at exit Python would complain of a reader that has gone.
        sys.stdout.flush()
    except KeyboardInterrupt:
        # Ctrl-C came before or after the code that handles it.
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, `head` for example. Buffered output must not be written again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_GONE)
    if code == INTERRUPTED:
        print("kschedfw: interrupted", file=sys.stderr)
    # The last collection would scan everything for nothing: the process's memory is free in a moment.
    gc.freeze()
    sys.exit(code)


def _usable(stream: TextIO | None) -> TextIO:
    """Return a stream to which any text can be written: characters that its encoding lacks become escapes."""
    if stream is None:
        # Closed by `>&-`. The descriptor is taken, so that no file gets what is meant for this stream.
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # no file, and open to the end
    if isinstance(stream, TextIOWrapper):
        # A stream whose descriptor was replaced with one that can't seek is changed, too, before it says so.
        with suppress(OSError):
            stream.reconfigure(errors="backslashreplace")
    return stream


def _run(args: Sequence[str] | None) -> int:
    try:
        import click
        import rich
    except ModuleNotFoundError:
        from kschedfw.api.extensions import how_to_install

        print(
            f"kschedfw: the command needs the cli extra: {how_to_install('kschedfw', 'cli')}", file=sys.stderr
        )
        return 1
    # They were imported only to see whether they are installed.
    del click, rich

    from kschedfw.cli.app import run

    return run(args)
