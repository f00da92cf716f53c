"""`kschedfw serve-extender` as a process of its own."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kschedfw.testing.processes import running
from kschedfw.testing.waiting import PATIENCE

COMMAND = [sys.executable, "-m", "kschedfw", "serve-extender"]


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """The URL of a server that is ended with Ctrl-C, and has to end well."""
    said = ""
    with running([*COMMAND, "--port", "0", *map(str, arguments)]) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said += line
            if found := re.search(r"extender at (\S+);", line):
                yield found[1]
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", ""), said
