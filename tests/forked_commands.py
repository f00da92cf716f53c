"""Runs `kschedfw` commands, each in a process that is forked from one which has imported kschedfw already.

Importing takes most of a short command's time, and the documentation has some 200 commands. A test of starting,
interrupting or ending a process uses kschedfw.testing.processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, NoReturn


class Ended(NamedTuple):
    """The exit code of a command, and what it wrote to standard output and standard error."""

    code: int
    output: str


class ForkedCommands:
    """The process that commands are forked from; it starts with the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
        """Run `kschedfw` with these arguments, in this directory and environment."""
        if self._process is None:
            command = [sys.executable, "-m", __name__]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps([str(cwd), *arguments])}\n{json.dumps(dict(env))}\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process; its commands have ended already."""
        if self._process is not None:
            self._process.communicate()


def _serve() -> None:
    for command in entry_points(group="kschedfw.commands"):
        command.load().load()
    while line := sys.stdin.readline():
        (cwd, *arguments), env = json.loads(line), json.loads(sys.stdin.readline())
        with tempfile.TemporaryFile() as output:
            if not (child := os.fork()):
                _become(output.fileno(), cwd, arguments, env)
            _, status = os.waitpid(child, 0)
            output.seek(0)
            ended = Ended(os.waitstatus_to_exitcode(status), output.read().decode())
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()


def _become(output: int, cwd: str, arguments: list[str], env: dict[str, Any]) -> NoReturn:
    from kschedfw.cli.start import main

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    code: object = 70
    try:
        main(arguments)
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    _serve()
