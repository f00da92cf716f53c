"""Processes that are forked from one that has imported kschedfw and its commands already.

A process that starts anew imports for two seconds before it does what a test is about. A forked one has a process id, a
session, standard streams and an end of its own like any other. Tests of starting itself use
`kschedfw_apiserver.processes.running`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import attrs

__all__ = ["EndedProcess", "ForkedProcess", "run_forked", "running_forked"]

_HEADER: Final = 8
"""Bytes that say how long a request is. The streams of the new process come with them."""
_ENVIRONMENT: Final = dict(os.environ)
"""The environment before a test changes it."""
_OF_PYTHON: Final = "PYTHON"
"""Begins the names of the variables that an interpreter reads only when it starts."""


class EndedProcess(NamedTuple):
    """The exit code of a process, and what it wrote to standard output and standard error."""

    code: int
    output: str


@attrs.define(eq=False)
class ForkedProcess:
    """A process as `subprocess.Popen` shows it: the same names mean the same."""

    pid: int
    _ended: IO[bytes]
    stdout: IO[str] | None = None
    stderr: IO[str] | None = None
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None as long as the process runs."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, as soon as there is one.

        Raises:
            subprocess.TimeoutExpired: there is none after so many seconds.
        """
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read the streams to their ends and wait. Return standard output and standard error."""
        with ThreadPoolExecutor(2) as pool:
            out, err = pool.map(lambda stream: stream.read() if stream else "", (self.stdout, self.stderr))
        self.wait(timeout)
        return out, err

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _wait(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], seconds)[0]:
            self.returncode = int(self._ended.readline())
        return self.returncode


@contextmanager
def running_forked(
    *arguments: object,
    stdout: IO[Any] | None = None,
    stderr: IO[Any] | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[ForkedProcess]:
    """Run Python with these arguments; kill it at the end, with all that it started and left behind.

    They are `-m`, a module and its arguments, or `-c`, a program and its arguments. The process has a session of its
    own and empty standard input. It writes to the given files, or else to pipes that the yielded process has.

    Raises:
        ValueError: the environment differs in a variable that Python reads only when it starts.
    """
    with ExitStack() as until_the_end, ExitStack() as until_started:
        streams = [until_started.enter_context(Path(os.devnull).open("rb")).fileno()]
        pipes: list[IO[str] | None] = []
        for file in (stdout, stderr):
            if file is None:
                ours, theirs = os.pipe()
                pipes.append(until_the_end.enter_context(os.fdopen(ours, encoding="utf-8")))
                streams.append(until_started.enter_context(os.fdopen(theirs, "wb")).fileno())
            else:
                pipes.append(None)
                streams.append(file.fileno())
        ours, theirs = os.pipe()
        ended = until_the_end.enter_context(os.fdopen(ours, "rb", buffering=0))
        streams.append(until_started.enter_context(os.fdopen(theirs, "wb")).fileno())
        _fork_server().start([*map(str, arguments)], cwd or Path.cwd(), env or os.environ, streams)
        until_started.close()
        process = ForkedProcess(int(ended.readline()), ended, stdout=pipes[0], stderr=pipes[1])
        try:
            yield process
        finally:
            with suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS says so of zombies
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_forked(*arguments: object, cwd: Path, env: Mapping[str, str]) -> EndedProcess:
    """Run Python with these arguments, as in `running_forked`, in a directory and an environment, until it ends."""
    with tempfile.TemporaryFile() as output:
        with running_forked(*arguments, stdout=output, stderr=output, cwd=cwd, env=env) as process:
            code = process.wait()
        output.seek(0)
        return EndedProcess(code, output.read().decode())


class _ForkServer:
    """The process that others are forked from."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        # Requests of two threads must not be mixed.
        self._one_at_a_time = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=_ENVIRONMENT,
            )
        atexit.register(self._close)

    def start(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]
    ) -> None:
        given, usual = _of_python(env), _of_python(_ENVIRONMENT)
        if given != usual:
            raise ValueError(f"a forked process can't have {given}: its interpreter runs with {usual}")
        request = json.dumps({"command": command, "cwd": str(cwd), "env": dict(env)}).encode()
        with self._one_at_a_time:
            socket.send_fds(self._requests, [len(request).to_bytes(_HEADER, "big")], streams)
            self._requests.sendall(request)

    def _close(self) -> None:
        self._requests.close()
        self._process.wait()


@cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_OF_PYTHON)}


def _serve(requests: socket.socket) -> Sequence[str] | None:
    """Fork a process for every request. Return the command in that process, and None in this one at the end."""
    for command in entry_points(group="kschedfw.commands"):
        command.load().load()
    # Objects that a collection doesn't touch stay shared with the forked processes.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        header, streams, *_ = socket.recv_fds(requests, _HEADER, 4)
        if not header:
            return None
        request = json.loads(b"".join(_chunks(requests, int.from_bytes(header, "big"))))
        if not os.fork():
            requests.close()
            return _become(request, *streams)
        for stream in streams:
            os.close(stream)


def _chunks(requests: socket.socket, size: int) -> Iterator[bytes]:
    while size and (chunk := requests.recv(size)):
        yield chunk
        size -= len(chunk)


def _become(request: Mapping[str, Any], stdin: int, stdout: int, stderr: int, ended: int) -> Sequence[str]:
    """Return the command in a child; this process waits for that, tells its id and its exit code, and ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if child := os.fork():
        for stream in (stdin, stdout, stderr):
            os.close(stream)
        os.write(ended, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(ended, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.close(ended)
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate((stdin, stdout, stderr)):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    command: Sequence[str] = request["command"]
    return command


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        chosen = _serve(given)
    if chosen is not None:
        option, program, *rest = chosen
        sys.argv = [option, *rest]
        # The interpreter ends as after any other program: threads are waited for, and streams are flushed.
        if option == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            exec(program, {"__name__": "__main__"})
