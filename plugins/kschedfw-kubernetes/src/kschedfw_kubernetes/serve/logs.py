"""The log of a running scheduler: klog's text or JSON, verbosity by module, and credentials replaced.

Text has klog's header: `I1122 09:22:59.123456       1 binding_cycle.py:134] "Successfully bound pod to node" …`. JSON
has the keys of Kubernetes' JSON format: `ts` (ms since the epoch), `caller`, `msg`, and `v` or, for errors, `err`. The
message's own values follow.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Final, TextIO

import attrs

import kschedfw
import kschedfw_kubernetes
from kschedfw.api.reading import printable
from kschedfw.scheduler import Structured

_LONGEST: Final = 64 << 10
_PACKAGES: Final = (kschedfw, kschedfw_kubernetes)
"""The packages whose loggers `--v` and `--vmodule` set: the scheduler, and its connection to a cluster."""
_VERBOSITY: Final = {logging.INFO: 2, logging.DEBUG: 4}
"""The verbosity at which messages of a level are shown. More severe messages are always shown."""
_ALWAYS_TOLD: Final = (
    "kschedfw_kubernetes.serve.process",
    "kschedfw_kubernetes.serve.server",
    "kschedfw_kubernetes.serve.slow_attempts",
    "kschedfw_kubernetes.cluster.leader_election",
)
"""Loggers whose INFO messages are shown at verbosity 0, since they are rare and always of interest."""

_SECRETS: Final = (
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[^\s\"',;]+"),
    re.compile(
        r"(?i)([\"']?\b(?:token|password|passwd|secret|client-key-data|keyData)\b[\"']?\s*[:=]\s*[\"']?)"
        r"[^\s\"',;}]+"
    ),
    re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)"),
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|$)", re.DOTALL),
)
"""Patterns of credentials: in headers, documents and URLs, JSON web tokens, and keys."""
_TRACES: Final = ("bearer", "basic", "token", "passw", "secret", "key", "://", "eyj")
"""Texts of which each credential has one nearby, in lower case. Searching for them first is fast."""

_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode


class LoggingFormat(StrEnum):
    """The format of the log's lines."""

    TEXT = "text"
    JSON = "json"


@attrs.frozen
class ModuleVerbosity:
    """A verbosity for the modules whose file matches `pattern` (klog's `--vmodule`).

    A pattern is matched with a file's name without `.py`, such as `leader_*`. A pattern with a slash is matched with
    the path in the package.
    """

    pattern: str
    verbosity: int

    @classmethod
    def parse(cls, text: str) -> tuple[ModuleVerbosity, ...]:
        """Parse `pattern=N,pattern=N`.

        Raises:
            ValueError: a part isn't a pattern with a number. The message says which one.
        """
        parsed = []
        for part in filter(None, text.split(",")):
            pattern, separator, number = part.partition("=")
            if not (pattern and separator and number.isdecimal()):
                raise ValueError(f"--vmodule {part}: must be a pattern and a number, such as reflector=4")
            parsed.append(cls(pattern, int(number)))
        return tuple(parsed)

    def matches(self, module: PurePath) -> bool:
        """Return whether the pattern matches this file, whose path begins with the package."""
        path = module.with_suffix("")
        return fnmatchcase(str(path) if "/" in self.pattern else path.name, self.pattern)


def set_up_logging(
    verbosity: int = 0,
    format: LoggingFormat = LoggingFormat.TEXT,
    stream: TextIO | None = None,
    modules: Sequence[ModuleVerbosity] = (),
) -> None:
    """Send this process's log to standard error.

    Warnings and errors are always logged, decisions from verbosity 2 on (INFO), details from 4 on (DEBUG). `modules`
    have a verbosity of their own; the first one that matches counts.
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter() if format is LoggingFormat.JSON else KlogFormatter())
    root = logging.getLogger()
    # In place of earlier handlers: a second call must not log every line twice.
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for package in _PACKAGES:
        logging.getLogger(package.__name__).setLevel(_level("", verbosity))
    for name in _ALWAYS_TOLD:
        logging.getLogger(name).setLevel(_level(name, verbosity))
    if modules:
        # Set the loggers' levels once, so that messages that aren't shown cost nothing.
        for module in _modules():
            matching = next((each for each in modules if each.matches(module)), None)
            if matching is not None:
                name = ".".join(module.with_suffix("").parts)
                logging.getLogger(name).setLevel(_level(name, matching.verbosity))


def _modules() -> Iterator[PurePath]:
    """Yield the files of the packages, as paths that begin with the package."""
    for package in _PACKAGES:
        for root in map(Path, package.__path__):
            # Leave out __init__.py: its logger would pass its level on to the whole package.
            yield from (PurePath(file).relative_to(root.parent) for file in root.rglob("[!_]*.py"))


def _level(logger: str, verbosity: int) -> int:
    """Return the level of a logger at a verbosity."""
    silent = logging.INFO if logger in _ALWAYS_TOLD else logging.WARNING
    return min((level for level, needed in _VERBOSITY.items() if verbosity >= needed), default=silent)


def without_secrets(text: str) -> str:
    """Return the text with `…` in place of everything that looks like a credential."""
    lowered = text.lower()
    if any(trace in lowered for trace in _TRACES):
        for pattern in _SECRETS:
            text = pattern.sub(r"\1…", text)
    return text


class KlogFormatter(logging.Formatter):
    """A formatter with one line per message, except for tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created)  # noqa: DTZ006  # klog's is local time
        severity = record.levelname[0] if record.levelno < logging.CRITICAL else "F"
        header = (
            f"{severity}{moment:%m%d %H:%M:%S.%f} {record.process or 0:7d} {record.filename}:{record.lineno}]"
        )
        return without_secrets(f"{header} {_text_of(record)}{_traceback_of(self, record)}")


class JsonFormatter(logging.Formatter):
    """A formatter with one JSON object per message."""

    def format(self, record: logging.LogRecord) -> str:
        path = PurePath(record.pathname)
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{path.parent.name}/{path.name}:{record.lineno}",
        }
        message = record.msg
        if isinstance(message, Structured):
            line["msg"] = without_secrets(message.message)
            line.update({name: _cleaned(value) for name, value in message.values.items()})
        else:
            line["msg"] = without_secrets(_text_of(record))
        if record.levelno >= logging.ERROR:
            failure = record.exc_info[1] if record.exc_info else None
            line.setdefault("err", None if failure is None else without_secrets(str(failure)))
        elif record.levelno == logging.WARNING:
            line["severity"] = "warning"
        else:
            told = record.name in _ALWAYS_TOLD and record.levelno == logging.INFO
            line["v"] = 0 if told else _VERBOSITY.get(record.levelno, 0)
        if traceback := _traceback_of(self, record):
            line["stacktrace"] = without_secrets(traceback.lstrip("\n"))
        return _encoded(line)


def _text_of(record: logging.LogRecord) -> str:
    return printable(record.getMessage(), _LONGEST)


def _traceback_of(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return f"\n{formatter.formatException(record.exc_info)}" if record.exc_info else ""


def _cleaned(value: object) -> object:
    if isinstance(value, int | float) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(name): _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return without_secrets(str(value))
