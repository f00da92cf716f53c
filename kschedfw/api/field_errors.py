"""Errors of objects, by field, with Kubernetes' messages.

`FieldError` is one error of one field; `FieldErrors` is an exception with all errors of an object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.records import frozen

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
STRICT = "strict decoding error: "
# No field has a longer name; the limit bounds the time for comparing.
_LONGEST_NAME = 100
# Characters of a quoted value: enough to find it in the manifest.
_SHOWN = 200
_LONGEST_PATH = 500
# Characters of a message; Kubernetes' longest have about 500.
_LONGEST = 2000
_MOST_LINES = 50


@frozen
class FieldError:
    """One error: its path (`spec.containers[0].name`, empty for the object itself) and a message."""

    path: str
    detail: str

    @property
    def message(self) -> str:
        """The message without the path, on one line."""
        return printable(self.detail, _LONGEST)

    def __str__(self) -> str:
        return f"{printable(self.path, _LONGEST_PATH)}: {self.message}" if self.path else self.message

    @classmethod
    def invalid(cls, path: str, value: object, why: str) -> FieldError:
        return cls(path, f"Invalid value: {shown(value)}: {why}")

    @classmethod
    def required(cls, path: str, why: str = "") -> FieldError:
        return cls(path, f"Required value: {why}" if why else "Required value")

    @classmethod
    def unsupported(cls, path: str, value: object, supported: Iterable[str]) -> FieldError:
        choices = ", ".join(f'"{choice}"' for choice in supported)
        return cls(path, f"Unsupported value: {shown(value)}: supported values: {choices}")

    @classmethod
    def duplicate(cls, path: str, value: object) -> FieldError:
        return cls(path, f"Duplicate value: {shown(value)}")

    @classmethod
    def forbidden(cls, path: str, why: str) -> FieldError:
        return cls(path, f"Forbidden: {why}")

    def inside(self, prefix: str) -> FieldError:
        """Return the same error for the object that has this one at `prefix`."""
        return attrs.evolve(self, path=join(prefix, self.path))


@frozen
class UnknownField(FieldError):
    """A field that a configuration or an object can't have."""

    @classmethod
    def among(cls, path: str, known: Iterable[str]) -> UnknownField:
        return cls(path, f"known are: {', '.join(known)}")

    @classmethod
    def near(cls, path: str, name: str, known: Collection[str], of: str) -> UnknownField:
        """Return the error of an unknown `name`; the most similar field known `of` a type is the hint."""
        similar = get_close_matches(name, known, n=1) if len(name) <= _LONGEST_NAME else ()
        return cls(path, f'did you mean "{similar[0]}"?' if similar else f"{of} has nothing like it")

    @property
    def message(self) -> str:
        return f"{STRICT}unknown field; {printable(self.detail, _LONGEST)}"

    def __str__(self) -> str:
        return f'{STRICT}unknown field "{printable(self.path, _LONGEST_PATH)}"; {printable(self.detail, _LONGEST)}'


class FieldErrors(KschedfwError, ValueError):
    """All errors of one object; each line of its text names a field."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(first_of([str(error) for error in self.errors], "problems"))


def join(prefix: str, path: str) -> str:
    """Return `path` below `prefix`: a name after a dot, an index or key in brackets as it is."""
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"


def at(prefix: str, key: str | int) -> str:
    """Return the path of an item of the list or map at `prefix`: `[0]`, `.cpu`, `[nvidia.com/gpu]`."""
    if isinstance(key, int):
        return f"{prefix}[{key}]"
    return join(prefix, key if _PLAIN_KEY.fullmatch(key) else f"[{key}]")


def shown(value: object) -> str:
    """Return a value as Kubernetes' errors show it (Go's %q of a text, else compact JSON), cut if it is long."""
    if isinstance(value, str):
        text = quoted(value[:_SHOWN])
    else:
        plain = dict(value) if isinstance(value, Mapping) else value
        try:
            text = json.dumps(plain, ensure_ascii=False, default=str, skipkeys=True, separators=(",", ":"))
        # The value contains itself, or is nested too deeply.
        except (ValueError, RecursionError):
            text = f"({type(value).__name__})"
        text = printable(text, len(text))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def printable(text: str, longest: int = _SHOWN) -> str:
    """The text on one line, cut where it is long, without control and direction characters.

    Control characters and the like are written as Go writes them: `\\x1b`, `\\u202e`.
    """
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


LONGEST_TEXT = 4000
"""The most characters of a line that a report shows. Messages of large clusters have some hundred."""


def harmless(text: str) -> str:
    """Return a text from outside for a terminal or a page: each line printable, and cut where it is long.

    Reasons of plugins and values of objects could otherwise move the cursor, turn the direction of what follows, or
    fill a report with one line.
    """
    if len(text) <= LONGEST_TEXT and text.isprintable():
        return text
    return "\n".join(printable(line, LONGEST_TEXT) for line in text.split("\n"))


def first_of(lines: Sequence[str], what: str) -> list[str]:
    """Return the lines, shortened to the first ones and a line with the number of the others if there are too many."""
    if len(lines) <= _MOST_LINES:
        return list(lines)
    return [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES:,} more {what}"]


def quoted(text: str) -> str:
    """Return a text as Go quotes it: invisible and control characters are escaped."""
    characters = (
        f"\\{character}"
        if character in '"\\'
        else character
        if character.isprintable()
        else _escaped(character)
        for character in text
    )
    return f'"{"".join(characters)}"'


_SHORT = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x80:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
