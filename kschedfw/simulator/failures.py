"""The failures of plugins: each distinct failure once, with its count."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Self

_LOGGER = "kschedfw"
_MOST_KEPT = 100


class _RecordTaker(logging.Handler):
    """A handler that passes records to a function."""

    def __init__(self, take: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        self._take(record)


class Failures:
    """A context manager that collects the errors that kschedfw logs; lower levels are handled as usual.

    Two failures are the same if they were raised at the same place through the same calls, whatever pod and
    node they were about; without an exception, if their messages are the same. The first hundred are kept, and
    further ones counted. Inside the block the logger `kschedfw` has no other handlers, so blocks can be nested:
    the innermost one gets everything. Blocks of several threads must not overlap.
    """

    def __init__(self) -> None:
        self._first: dict[Hashable, logging.LogRecord] = {}
        self._counts: Counter[Hashable] = Counter()
        self._usual: list[logging.Handler] = []
        self._propagated = True
        self.count = 0
        """The number of failures, including repeated ones."""

    @staticmethod
    def are_collected() -> bool:
        """Tell whether a `with Failures()` block is active."""
        return any(isinstance(each, _RecordTaker) for each in logging.getLogger(_LOGGER).handlers)

    def __enter__(self) -> Self:
        logger = logging.getLogger(_LOGGER)
        self._propagated, logger.propagate = logger.propagate, False
        self._usual, logger.handlers = logger.handlers, [_RecordTaker(self._take)]
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger(_LOGGER)
        logger.handlers, logger.propagate = self._usual, self._propagated

    def _take(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR:
            self._pass_on(record)
            return
        self.count += 1
        key = _key(record)
        if key not in self._first and len(self._first) >= _MOST_KEPT:
            return
        self._counts[key] += 1
        self._first.setdefault(key, record)

    def _pass_on(self, record: logging.LogRecord) -> None:
        for handler in self._usual:
            if record.levelno >= handler.level:
                handler.handle(record)
        root = logging.getLogger()
        # Python's handler of last resort, of a root without handlers, would print the record, too.
        if self._propagated and (root.handlers or not self._usual):
            root.callHandlers(record)

    def log(self) -> None:
        """Log each failure as an error, the most frequent first, with its count.

        The text and traceback are those of its first occurrence.
        """
        for record, text in self._texts():
            logging.getLogger(record.name).error("%s", text, exc_info=_root(record))
        if others := self._others():
            logging.getLogger(_LOGGER).error("%s", others)

    def lines(self) -> Iterator[str]:
        """Yield what `log` logs, as lines of text."""
        for record, text in self._texts():
            yield text
            error = _root(record)
            if error is not None:
                yield from "".join(traceback.format_exception(error)).rstrip().splitlines()
            yield ""
        if others := self._others():
            yield others

    def _texts(self) -> Iterator[tuple[logging.LogRecord, str]]:
        for key, count in self._counts.most_common():
            record = self._first[key]
            times = "once" if count == 1 else f"{count:,} times, first"
            yield record, f"failed {times}: {record.getMessage()}"

    def _others(self) -> str:
        others = self.count - sum(self._counts.values())
        return f"and {others:,} other failures" if others else ""


def _key(record: logging.LogRecord) -> Hashable:
    error = _root(record)
    if error is None:
        # The first argument is the pod.
        arguments = record.args[1:] if isinstance(record.args, tuple) else record.args
        return record.name, record.msg, str(arguments)
    frames = traceback.walk_tb(error.__traceback__)
    return type(error), tuple((frame.f_code, line) for frame, line in frames)


def _root(record: logging.LogRecord) -> BaseException | None:
    """Return the original exception.

    Exceptions that the framework raised from it only add the place, which is in the record's text.
    """
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    return error
