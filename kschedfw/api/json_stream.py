"""Reading of JSON, one object after another, from a text that comes in chunks.

A list of objects (`kubectl get -o json`) is returned item by item, as soon as each is read, so that neither the
whole text nor all objects need to be in memory. As in Kubernetes, NaN and duplicate keys are errors.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn, TypeAlias

from kschedfw.api.yaml_loader import (
    DEEPEST,
    TAKEN,
    TOO_DEEP,
    Built,
    DocumentError,
    says_what_it_is,
    too_large,
)

_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BEGINNING: Final = re.compile(r'\{\s*+(?:"(?:apiVersion|kind)"\s*+:\s*+"[^"]*+"\s*+,?\s*+){0,2}"[^"]*+"')
"""The beginning of an object: where they come first, its version and kind, and the next key."""
_LONGEST_TOKEN: Final = 16
"""An error no further than this from the end of an incomplete text, in characters, may come from its incompleteness."""

ReadItem: TypeAlias = Callable[[str], object | None]
"""Reads an item of a list from what may be its text, which may also be a part of it or more. None for a text that it
doesn't know to be one JSON object without duplicate keys."""


class TextWindow:
    """The part of a text that is being read. More is fetched when needed, and text that has been read is dropped.

    Attributes:
        text: the text in the window.
        position: the index in `text` at which reading goes on.
        complete: whether the window contains the end of the whole text.
    """

    def __init__(self, chunks: Iterable[str], line: int = 1) -> None:
        self.text, self.position, self.complete = "", 0, False
        self._chunks = iter(chunks)
        self._line = line
        self._forgotten = 0

    def grow(self) -> None:
        """Fetch at least as much text again, so that starting over after each fetch takes linear time in all."""
        self._line += self.text.count("\n", 0, self.position)
        self._forgotten += self.position
        kept = self.text[self.position :]
        pieces, size = [kept], 0
        while size <= len(kept):
            chunk = next(self._chunks, None)
            if chunk is None:
                self.complete = True
                break
            pieces.append(chunk)
            size += len(chunk)
        self.text, self.position = "".join(pieces), 0

    def skip_space(self) -> str:
        """Go to the next character that isn't white space, and return it; empty at the end."""
        while True:
            match = _SPACE.match(self.text, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.text):
                return self.text[self.position]
            if self.complete:
                return ""
            self.grow()

    def line(self, position: int | None = None) -> int:
        """The line number of a position in `text`; by default of the current position."""
        return self._line + self.text.count("\n", 0, self.position if position is None else position)

    @property
    def end(self) -> int:
        """The number of characters of the whole text that are read."""
        return self._forgotten + self.position

    def go_back(self, end: int) -> bool:
        """Go back to the position at which `end` had this value; return False if it is before the window."""
        position = end - self._forgotten
        if position < 0:
            return False
        self.position = position
        return True

    def rest(self) -> Iterator[str]:
        """The rest of the text; the window can't be used afterwards."""
        yield self.text[self.position :]
        yield from self._chunks


class JsonReader:
    """A reader of JSON values from a window. An object, or an item of a list, may have `largest` characters.

    Items of a list that `read_item` reads come as what it returns; the others are decoded.
    """

    def __init__(self, window: TextWindow, largest: int, read_item: ReadItem | None = None) -> None:
        self._window, self._largest, self._read_item = window, largest, read_item
        self._beginning = ""
        self._start = 0
        self._duplicates: list[str] = []
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_constant=_refuse_constant)

    def read(self) -> Iterator[Built]:
        """Yield the value that begins here; before it, one by one, the items of a long list (see `build`).

        Raises:
            DocumentError: it isn't JSON, or exceeds a limit; lines count from 1 at the beginning of the whole text.
        """
        window = self._window
        while True:
            try:
                content = self._decode()
            except _IncompleteError:
                if window.text[window.position] == "{":
                    yield from self._read_members()
                    return
                self._grow()
            else:
                yield Built(content, duplicates=self._found_duplicates(), end=window.end)
                return

    def _read_members(self) -> Iterator[Built]:
        """Read an object whose end isn't in the window yet."""
        window = self._window
        content: dict[str, object] = {}
        self._expect("{")
        separator = "}" if window.skip_space() == "}" else ","
        if separator == "}":
            self._expect("}")
        while separator == ",":
            if window.skip_space() != '"':
                self._refuse("expected a key in double quotes")
            key = str(self._value())
            self._expect(":")
            if key in content:
                self._duplicates.append(key)
            if window.skip_space() == "[":
                items: list[object] = []
                content[key] = items
                yield from self._read_items(key, items)
            else:
                content[key] = self._value()
            separator = self._expect(",}")
        yield Built(content, duplicates=self._found_duplicates(), end=window.end)

    def _read_items(self, key: str, items: list[object]) -> Iterator[Built]:
        window = self._window
        self._expect("[")
        separator = "]" if window.skip_space() == "]" else ","
        if separator == "]":
            self._expect("]")
        while separator == ",":
            value = self._ahead() if key == "items" else None
            if value is not None:
                yield Built(value, f"items[{len(items)}]", (), window.end)
                value = TAKEN
            else:
                value = self._value()
                if key == "items" and says_what_it_is(value):
                    text = window.text[self._start : window.position]
                    begins = _BEGINNING.match(text)
                    self._beginning = begins[0] if begins else ""
                    yield Built(value, f"items[{len(items)}]", self._found_duplicates(), window.end, text)
                    value = TAKEN
            items.append(value)
            separator = self._expect(",]")

    def _ahead(self) -> object | None:
        """Return what `read_item` makes of the next item, and go behind it; None if the item has to be decoded.

        The item is thought to end where the next one begins as the one before did.
        """
        window, before = self._window, self._window.position
        if self._read_item is None or not self._beginning or self._duplicates:
            return None
        window.skip_space()
        text, start = window.text, window.position
        if not text.startswith(self._beginning, start):
            return None
        end = text.find(f",{text[before:start]}{self._beginning}", start, start + self._largest)
        value = self._read_item(text[start:end]) if end > 0 else None
        if value is not None:
            window.position = end
        return value

    def _value(self) -> object:
        self._window.skip_space()
        while True:
            self._start = self._window.position
            try:
                return self._decode()
            except _IncompleteError:
                self._grow()

    def _grow(self) -> None:
        if len(self._window.text) - self._window.position > self._largest:
            raise DocumentError(too_large(self._largest), self._window.line())
        self._window.grow()

    def _expect(self, characters: str) -> str:
        found = self._window.skip_space()
        if not found or found not in characters:
            self._refuse(f"expected {' or '.join(map(repr, characters))}")
        self._window.position += 1
        return found

    def _refuse(self, why: str) -> NoReturn:
        raise DocumentError(why, self._window.line())

    def _decode(self) -> object:
        """Return the value that begins here.

        Raises:
            _IncompleteError: the value ends beyond the window.
            DocumentError: see `read`.
        """
        window, start = self._window, self._window.position
        text = window.text
        noted = len(self._duplicates)
        try:
            content, end = self._decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            is_open = error.msg.startswith("Unterminated string") or error.pos + _LONGEST_TOKEN > len(text)
            if is_open and not window.complete:
                del self._duplicates[noted:]
                raise _IncompleteError from None
            raise DocumentError(error.msg, window.line(error.pos)) from None
        except RecursionError:
            raise DocumentError(TOO_DEEP, window.line()) from None
        # The number has too many digits for Python.
        except ValueError as error:
            raise DocumentError(str(error).partition(":")[0], window.line()) from None
        if end == len(text) and not window.complete and not isinstance(content, (str, dict, list)):
            # The number may continue after the window.
            raise _IncompleteError
        if end - start > self._largest and not (
            isinstance(content, dict) and any(isinstance(each, list) for each in content.values())
        ):
            raise DocumentError(too_large(self._largest), window.line())
        # Brackets are counted first, which is fast: a value can't be deeper than it has brackets.
        if text.count("{", start, end) + text.count("[", start, end) > DEEPEST and is_too_deep(content):
            raise DocumentError(TOO_DEEP, window.line())
        if _SURROGATE.search(text, start, end):
            content = _without_surrogates(content)
        window.position = end
        return content

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counted = Counter(key for key, _ in pairs)
            self._duplicates += [key for key, count in counted.items() if count > 1]
        return found

    def _found_duplicates(self) -> tuple[tuple[int, str], ...]:
        found = tuple((-1, key) for key in self._duplicates)
        self._duplicates.clear()
        return found


class _IncompleteError(Exception):
    """The error of a text that ends within a value, raised until more of the text is read."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def is_too_deep(content: object) -> bool:
    """Return whether dicts and lists are nested more than `DEEPEST` levels."""
    level = [content]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _without_surrogates(content: Any) -> Any:
    """Return the content with U+FFFD for halves of surrogate pairs, which no UTF-8 text can have, as in Go."""
    match content:
        case str():
            return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_without_surrogates(key): _without_surrogates(value) for key, value in content.items()}
        case list():
            return [_without_surrogates(item) for item in content]
    return content
