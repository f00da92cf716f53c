"""Notes of what a hook reads that belongs to the process or the machine: the environment, files, the network."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from unittest import mock

_EVENTS: Final = {
    "open": "a file",
    "os.listdir": "a directory",
    "os.scandir": "a directory",
    "socket.connect": "the network",
    "socket.getaddrinfo": "the network",
    "subprocess.Popen": "another process",
    "os.system": "another process",
}
"""Audit events of CPython, and what they tell."""


class _NotedEvents(threading.local):
    """The list to which events on this thread are added, while there is one."""

    current: MutableSequence[str] | None = None


_notes = _NotedEvents()


@contextmanager
def outside_noted() -> Iterator[MutableSequence[str]]:
    """Note what is read from outside on this thread meanwhile. What an import reads isn't noted."""
    _listen()
    noted: MutableSequence[str] = []
    encode = os.environ.encodekey  # each lookup of a variable begins with it

    def noting(name: str) -> Any:
        noted.append(f"the environment ({name})")
        return encode(name)

    with mock.patch.object(os.environ, "encodekey", noting):
        _notes.current = noted
        try:
            yield noted
        finally:
            _notes.current = None


@cache
def _listen() -> None:
    # An audit hook can't be removed, so there is one for the life of the process.
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    noted = _notes.current
    if noted is None:
        return
    if event == "import":
        # A lazy import reads modules, directories and bytecode; its hook's answers don't depend on them.
        _notes.current = None
    elif event in _EVENTS:
        noted.append(f"{_EVENTS[event]} ({arguments[0]})")
