"""`kschedfw serve-extender` as a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = [sys.executable, "-m", "kschedfw", "serve-extender"]


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """The URL of a server that is ended with Ctrl-C, and has to end well."""
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    said = ""
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said += line
            if found := re.search(r"extender at (\S+);", line):
                yield found[1]
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (0, "", ""), said
