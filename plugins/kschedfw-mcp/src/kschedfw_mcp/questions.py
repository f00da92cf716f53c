"""Questions as commands of kschedfw: each runs in a process of its own, with limits of time and size."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from kschedfw import KschedfwError

MOST_OUTPUT: Final = 64 << 20
"""The most bytes of a command's answer that are read; a larger one isn't shortened but refused."""
MOST_MESSAGES: Final = 4000
"""The most characters of a command's messages that are told."""
AT_ONCE: Final = 2
"""The most commands that run at the same time: each keeps a processor busy."""
MOST_WAITING: Final = 8
"""The most questions that may wait for their turn; further ones are refused."""


class QuestionError(KschedfwError):
    """A question can't be answered; says why."""


@attrs.frozen
class Limits:
    """The seconds that an answer may take, and its size in bytes."""

    seconds: float = 60.0
    most_bytes: int = 30_000


@attrs.frozen
class Source:
    """The cluster that questions are about: files or a live cluster, and the options for reading it."""

    files: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()

    def line(
        self, command: str, *names: str, options: Sequence[str] = (), has_config: bool = True
    ) -> list[str]:
        """Return the command line. `names` are its subjects after the cluster: a pod, or nodes."""
        # `drain` takes a single file before its nodes; --pods has more for any command.
        first, others = self.files[:1], self.files[1:]
        more = [part for file in others for part in ("--pods", file)]
        config = self.config if has_config else ()
        return [command, *first, *names, *more, *self.live, *config, *self.reading, *options, "--json"]


@attrs.frozen
class Result:
    """The end of a command: its exit code, what it printed as JSON, and its messages."""

    command: str
    exit_code: int
    content: Any
    messages: str


class Runner:
    """Runs commands, a few at a time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def ask(self, line: Sequence[str], files: Mapping[str, str] | None = None) -> Result:
        """Run a command. `files` are texts by file name, which the line names; they exist while it runs.

        Raises:
            QuestionError: it takes too long, says too much, or refuses its input; or too many questions wait.
        """
        if self._waiting >= MOST_WAITING:
            raise QuestionError("too many questions at once; ask again when others are answered")
        self._waiting += 1
        try:
            async with self._turns:
                with TemporaryDirectory(prefix="kschedfw-mcp-") as directory:
                    return await self._run(line, files or {}, Path(directory))
        finally:
            self._waiting -= 1

    async def _run(self, line: Sequence[str], files: Mapping[str, str], directory: Path) -> Result:
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
        told = shlex.join(["kschedfw", *line])
        given = [str(directory / part) if part in files else part for part in line]
        progress = () if line[0] == "explain" else ("--no-progress",)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kschedfw", *given, *progress),
            stdin=asyncio.subprocess.DEVNULL,  # the agent's
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONUTF8": "1"},
        )
        try:
            async with asyncio.timeout(self.limits.seconds):
                out, err = await asyncio.gather(_read(process.stdout), _read(process.stderr))
                code = await process.wait()
        except TimeoutError:
            raise QuestionError(
                f"it took longer than {self.limits.seconds:g} s (--seconds allows more): {told}"
            ) from None
        finally:
            # Also where the client cancels the question.
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        messages = err.decode(errors="replace").replace(f"{directory}{os.sep}", "").strip()[:MOST_MESSAGES]
        if code not in (0, 1, 3) or not out:
            raise QuestionError(messages or f"it ended with code {code}: {told}")
        return Result(told, code, json.loads(out), messages)


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    pieces: list[bytes] = []
    size = 0
    while piece := await stream.read(1 << 16):
        size += len(piece)
        if size > MOST_OUTPUT:
            raise QuestionError(f"the answer is larger than {MOST_OUTPUT:,} bytes; ask about less")
        pieces.append(piece)
    return b"".join(pieces)
