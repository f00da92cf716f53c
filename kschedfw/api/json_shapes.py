"""The shapes of JSON objects: all of their text but for the strings that are values.

Objects of the same shape have the same fields, so that one of them tells for the others whether a key is there twice,
and whether Kubernetes knows all fields. In an export, thousands of pods have a few shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final

from kschedfw.api.bounded_dict import BoundedDict

_MOST_KEPT: Final = 1_000
_ESCAPED: Final = "\0"
"""Stands for an escaped quote or backslash; no valid JSON has this character."""

_Keys = Callable[[Sequence[str]], Sequence[str]]


class JsonShapes:
    """The shapes of the objects that were found to be good; at most 1,000, the latest ones."""

    def __init__(self) -> None:
        self._known: Final = BoundedDict[str, tuple[_Keys, set[str]]](_MOST_KEPT)
        """By the text between strings: what takes keys out of a text that was cut at its quotes, and the keys."""

    def has(self, text: str) -> bool:
        """Return whether an object of this shape was learned, if the text is the JSON of an object at all."""
        parts = _cut(text)
        keys, known = self._known.get(_joined(parts[::2]), _UNKNOWN)
        return _joined(keys(parts)) in known

    def learn(self, text: str) -> None:
        """Take the shape of an object whose JSON this is as known. An object whose keys have escapes has none."""
        parts = _cut(text)
        places = [
            number for number in range(1, len(parts) - 1, 2) if parts[number + 1].lstrip().startswith(":")
        ]
        between = _joined(parts[::2])
        # Of a single key, itemgetter would return the text.
        keys = self._known[between][0] if between in self._known else itemgetter(*places, *places[:1])
        if not any("\\" in parts[place] or _ESCAPED in parts[place] for place in places):
            self._known.setdefault(between, (keys, set()))[1].add(_joined(keys(parts)))


def _cut(text: str) -> list[str]:
    """Return the text in parts: those with odd numbers are strings, without their quotes."""
    if "\\" in text:
        text = text.replace("\\\\", _ESCAPED).replace('\\"', _ESCAPED)
    return text.split('"')


_joined: Final = '"'.join
"""Joins parts of a text that was cut at its quotes."""
_UNKNOWN: Final[tuple[_Keys, set[str]]] = (itemgetter(0, 0), set())
