"""Processes that tests start, interrupt and end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

WITHOUT_HYPOTHESIS = ("-p", "no:hypothesispytest")
"""Options of pytest in a process of its own: hypothesis' plugin takes more than half of the time of starting pytest."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGINT arrive in this process, and in those that are started meanwhile.

    `nohup` and shells that start a job in the background have it ignored, which every child inherits.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def running(
    command: Sequence[str | Path],
    *,
    stdin: int | None = None,
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Start a process that SIGINT interrupts; kill it at the end, with all that it started and left behind."""
    with interruptible():
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
            env=env,
            start_new_session=True,
        )
    with process:  # which closes its pipes and waits for it
        try:
            yield process
        finally:
            with suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS says so of zombies
                os.killpg(process.pid, signal.SIGKILL)
