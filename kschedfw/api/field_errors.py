"""What is wrong with an object, field by field, in the words that Kubernetes uses for it.

`FieldError` says one thing about one field; `FieldErrors` is the exception that carries everything that is wrong
with an object, because whoever repairs a manifest wants the whole list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

import attrs

from kschedfw.api.errors import KschedfwError

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
STRICT = "strict decoding error: "
_LONGEST_NAME = 100  # no field has a longer one, and comparing takes time
_SHOWN = 200  # a value is quoted so that it can be found, not to repeat the manifest


@attrs.frozen
class FieldError:
    """One problem: where (`spec.containers[0].name`, empty for the object itself) and what."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}" if self.path else self.detail

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
        """The same problem as seen from the object that has this one at `prefix`."""
        return attrs.evolve(self, path=join(prefix, self.path))


@attrs.frozen
class UnknownField(FieldError):
    """A field that a configuration or an object can't have."""

    @classmethod
    def among(cls, path: str, known: Iterable[str]) -> UnknownField:
        return cls(path, f"known are: {', '.join(known)}")

    @classmethod
    def near(cls, path: str, name: str, known: Collection[str], of: str) -> UnknownField:
        """`name` may stand for one of the fields known `of` a type: the one that is spelt most like it."""
        similar = get_close_matches(name, known, n=1) if len(name) <= _LONGEST_NAME else ()
        return cls(path, f'did you mean "{similar[0]}"?' if similar else f"{of} has nothing like it")

    def __str__(self) -> str:
        return f'{STRICT}unknown field "{self.path}"; {self.detail}'


class FieldErrors(KschedfwError, ValueError):
    """All that is wrong with one object; each line of its text names a field."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


def join(prefix: str, path: str) -> str:
    """`path` below `prefix`: a name after a dot, an index or key in brackets as it is."""
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"


def at(prefix: str, key: str | int) -> str:
    """The path of an item of the list or map at `prefix`: `[0]`, `.cpu`, `[nvidia.com/gpu]`."""
    if isinstance(key, int):
        return f"{prefix}[{key}]"
    return join(prefix, key if _PLAIN_KEY.fullmatch(key) else f"[{key}]")


def shown(value: object) -> str:
    """A value as Kubernetes' errors show it (Go's %q of a text, else compact JSON), cut where it is long."""
    if isinstance(value, str):
        text = _quoted(value[:_SHOWN])
    else:
        plain = dict(value) if isinstance(value, Mapping) else value
        try:
            text = json.dumps(plain, ensure_ascii=False, default=str, skipkeys=True, separators=(",", ":"))
        except (ValueError, RecursionError):  # endless or bottomless
            text = f"({type(value).__name__})"
        text = "".join(character if character.isprintable() else _escaped(character) for character in text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _quoted(text: str) -> str:
    """As Go quotes a text: what can't be seen, or would move a terminal's cursor, is spelled out."""
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
