"""Commands that a test runs: their output and exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs


@attrs.frozen
class CommandResult:
    """The exit code of a command, and what it wrote to standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, parsed.

        Raises:
            json.JSONDecodeError: it is no JSON document.
        """
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def json_lines(self) -> list[dict[str, Any]]:
        """The lines of standard output, parsed one by one.

        Raises:
            json.JSONDecodeError: a line is no JSON document.
        """
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., CommandResult]
"""Runs a command with the given arguments, each of which is made a text."""
