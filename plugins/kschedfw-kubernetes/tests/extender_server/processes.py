"""`kschedfw serve-extender` as a process of its own."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from kschedfw_apiserver.forked import running_forked

from kschedfw.testing.waiting import PATIENCE

COMMAND = ("-m", "kschedfw", "serve-extender")


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """The URL of a server that is ended with Ctrl-C, and has to end well."""
    said = ""
    with running_forked(*COMMAND, "--port", "0", *arguments) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said += line
            if found := re.search(r"extender at (\S+);", line):
                yield found[1]
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", ""), said
