"""What goes wrong in plugins while a command runs: each distinct failure once, with how often it happened."""

from __future__ import annotations

import logging
import sys
import traceback
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Self

from kschedfw.cli.tables import counted

_LOGGER = "kschedfw"
_MOST_KEPT = 100


class Failures(logging.Handler):
    """Collects what is logged as an error between enter and exit, and lets everything else through.

    Two failures are the same if they were raised at the same place, by way of the same calls, whatever pod and node
    they were about; where nothing was raised, if they say the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[Hashable, logging.LogRecord] = {}
        self._counts: Counter[Hashable] = Counter()
        self.count = 0
        """How many failures there were, of whatever kind."""

    def __enter__(self) -> Self:
        logger = logging.getLogger(_LOGGER)
        self._propagated = logger.propagate
        logger.propagate = False
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger(_LOGGER)
        logger.removeHandler(self)
        logger.propagate = self._propagated

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR:
            logging.getLogger().callHandlers(record)
            return
        self.count += 1
        key = _key(record)
        if key not in self._first and len(self._first) >= _MOST_KEPT:
            return
        self._counts[key] += 1
        self._first.setdefault(key, record)

    @property
    def summary(self) -> str:
        return f"{counted(self.count, 'failure')} of plugins"

    def tell(self) -> None:
        """Print `lines` on stderr."""
        for line in self.lines():
            print(line, file=sys.stderr)

    def lines(self) -> Iterator[str]:
        """Each of them, the most frequent first: how often, the first one's text, and its traceback if it has one."""
        for key, count in self._counts.most_common():
            record = self._first[key]
            times = "once" if count == 1 else f"{count:,} times, first"
            yield f"failed {times}: {record.getMessage()}"
            error = _root(record)
            if error is not None:
                yield from "".join(traceback.format_exception(error)).rstrip().splitlines()
            yield ""
        if others := self.count - sum(self._counts.values()):
            yield f"and {others:,} other failures"


def _key(record: logging.LogRecord) -> Hashable:
    error = _root(record)
    if error is None:
        # The first argument is what it is about, a pod.
        arguments = record.args[1:] if isinstance(record.args, tuple) else record.args
        return record.name, record.msg, str(arguments)
    frames = traceback.walk_tb(error.__traceback__)
    return type(error), tuple((frame.f_code, line) for frame, line in frames)


def _root(record: logging.LogRecord) -> BaseException | None:
    """What was raised first; what the framework made of it only says where, and that is in the record's text."""
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    return error
