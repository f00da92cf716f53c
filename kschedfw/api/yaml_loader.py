"""YAML as Kubernetes reads it, built from the parser's events.

PyYAML follows YAML 1.1 where Kubernetes' parser doesn't: it reads `2023-01-01` as a date and `22:22` as a
sexagesimal number, fails on `=`, and reads `1e3` as a string. In both, `yes`, `no`, `on` and `off` are booleans. The
results are those of JSON, as on the way to the API server: objects with strings as keys, lists, scalars.

Only PyYAML's parser is used (libyaml's, if it is installed). Building the values from its events takes half the time
of PyYAML's nodes and none of their memory, and limits are checked at once: on nesting, on the size of aliases, and
for duplicate keys.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from kschedfw.api.limits import how_to_raise
from kschedfw.api.records import frozen

DEEPEST: Final = 100
"""The deepest nesting of objects and lists; code that reads them recurses as deeply."""

TOO_DEEP: Final = f"nested too deeply, more than {DEEPEST} levels"

# In characters; Python writes integers of up to 4300 digits.
_LONGEST_INTEGER: Final = 3500
# Aliases of aliases let a short text stand for billions of values. go-yaml refuses such documents, too.
_FREE_ALIASED: Final = 100_000
_ALIASED_PER_VALUE: Final = 4


class TakenItem:
    """The stand-in, in a list, for an item that was yielded separately."""


TAKEN: Final = TakenItem()


class DocumentError(ValueError):
    """The error of a document that can't be read; `line` counts from 0, and is negative if it isn't known."""

    def __init__(self, why: str, line: int = -1) -> None:
        super().__init__(why)
        self.why, self.line = why, line


def too_large(limit: int) -> str:
    return f"an object of more than {limit} characters: {how_to_raise('object', limit)}"


@frozen
class Built:
    """A value that was read.

    Attributes:
        content: dicts, lists and scalars.
        item: its path in the document, such as `items[3]`; empty for the document.
        duplicates: the line (from 0) and the name of every duplicate key.
        end: the number of characters of the text that are read.
        text: the JSON of an item of a list.
    """

    content: Any
    item: str = ""
    duplicates: tuple[tuple[int, str], ...] = ()
    end: int = 0
    text: str = ""


class _PythonParser(Reader, Scanner, Parser):
    """PyYAML's own parser, for installations without libyaml."""

    def __init__(self, stream: str) -> None:
        Reader.__init__(self, stream)
        Scanner.__init__(self)
        Parser.__init__(self)


_Parser: Final[Callable[[str], Any]] = getattr(getattr(yaml, "cyaml", None), "CParser", _PythonParser)


# --- Scalars -----------------------------------------------------------------------------------------------------

_BOOLEAN: Final = re.compile("yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF")
_INTEGER: Final = re.compile("[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]++(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]++)[0-9:.]+[ \t]*+(?:Z|[-+][0-9:]+)?)?"
)
_MAP_TAG: Final = "tag:yaml.org,2002:map"
_SEQUENCE_TAG: Final = "tag:yaml.org,2002:seq"
_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE: Final = frozenset(("yes", "true", "on"))
_MAY_BE_MORE: Final = frozenset("-+.0123456789yYnNtTfFoO~")
_MERGE: Final = "<<"


@functools.lru_cache(maxsize=1 << 16)
def plain_scalar(text: str) -> object:
    """Return the value of a plain scalar; cached, since manifests repeat the same few texts.

    Raises:
        DocumentError: it is a number that is too long.
    """
    if text in _NULLS:
        return None
    if text[0] not in _MAY_BE_MORE:
        return text
    if _BOOLEAN.fullmatch(text):
        return text.lower() in _TRUE
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise DocumentError(f"an integer of {len(text)} characters; {_LONGEST_INTEGER} are the most")
    text = text.replace("_", "").lower()
    digits = text.lstrip("+-")
    base = {"0b": 2, "0x": 16, "0o": 8}.get(digits[:2], 8 if digits[:1] == "0" else 10)
    try:
        return int(text, base)
    # The text has underscores and no digit.
    except ValueError:
        raise DocumentError(f"{_shown(text)} is no integer") from None


def _tagged(tag: str, text: str) -> object:
    """Return the value of a scalar with an explicit tag.

    Raises:
        DocumentError: the text isn't of the tag's type, or JSON has no such type.
    """
    name = tag.removeprefix("tag:yaml.org,2002:")
    if tag == "!" or name == "str":
        return text
    value: object
    if name == "binary":
        try:
            return base64.b64decode(text, validate=False).decode()
        except ValueError:
            raise DocumentError(f"!!binary: expected a text in base64, found {_shown(text)}") from None
    if name == "timestamp":
        if _TIMESTAMP.fullmatch(text):
            return text
    elif name in ("bool", "int", "float", "null"):
        value = plain_scalar(text)
        if name == "float" and type(value) is int:
            return float(value)
        if type(value) is {"bool": bool, "int": int, "float": float, "null": type(None)}[name]:
            return value
    else:
        raise DocumentError(f"the tag {_shown(_tag_name(tag))} is unknown")
    raise DocumentError(f"{_shown(text)} is no !!{name}")


def _tag_name(tag: str) -> str:
    core = tag.removeprefix("tag:yaml.org,2002:")
    return tag if core == tag else f"!!{core}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def _found(value: object) -> str:
    """Return what an error says was found; only the type of objects and lists, which may be large."""
    return {dict: "an object", list: "a list", type(None): "null"}.get(type(value)) or _shown(str(value))


# --- Documents ---------------------------------------------------------------------------------------------------


def build(text: str, *, largest: int, whole: bool = False) -> Iterator[Built]:
    """Yield the document of a text; before it, one by one, the items of its list that have kind and apiVersion.

    These are objects with kind and apiVersion in the list `items` of the outermost object. In the document,
    `TAKEN` replaces them. So the objects of a long list needn't all be in memory at the same time.

    `largest` is the number of characters that an object may have; if it has lists, each of their items. With
    `whole`, no items are yielded separately.

    Raises:
        DocumentError: the text isn't YAML, has more than one document, or exceeds a limit.
    """
    builder = _ValueBuilder(text, largest, whole)
    try:
        yield from builder.build()
    except yaml.MarkedYAMLError as error:
        why = ", ".join(part for part in (error.context, error.problem) if part)
        raise DocumentError(why, -1 if error.problem_mark is None else error.problem_mark.line) from None
    except yaml.YAMLError as error:
        raise DocumentError(str(error).partition("\n")[0]) from None
    finally:
        builder.dispose()


class _Frame:
    """A container that is being filled."""

    __slots__ = ("anchor", "before", "container", "is_outer_list", "key", "merged")

    def __init__(
        self, container: Any, anchor: str | None, before: int, *, is_outer_list: bool = False
    ) -> None:
        self.container = container
        self.key: object = _NO_KEY
        """The key of the next value, in a mapping."""
        self.merged: list[dict[str, object]] = []
        self.anchor = anchor
        self.before = before
        """The number of the document's values before this one."""
        self.is_outer_list = is_outer_list


_NO_KEY: Final = object()
_MERGE_KEY: Final = object()


class _ValueBuilder:
    """A builder of values from events, with a stack of its own, so that no text can exhaust Python's."""

    def __init__(self, text: str, largest: int, whole: bool) -> None:
        self._parser = _Parser(text)
        self._largest, self._whole = largest, whole
        self._anchors: dict[str, tuple[object, int]] = {}
        """The value of each anchor, and the number of values in it; 0 while it isn't complete."""
        self._values = self._aliased = 0
        """The number of values, and of those that come from aliases."""
        self._start = 0
        """The position at which the present object begins."""
        self._duplicates: list[tuple[int, str]] = []

    def dispose(self) -> None:
        self._parser.dispose()

    def build(self) -> Iterator[Built]:
        """Yield the values, as the function `build`."""
        next_event = self._parser.get_event
        # Skip the event that begins the stream.
        next_event()
        root: list[object] = []
        end = 0
        if not isinstance(next_event(), yaml.StreamEndEvent):
            frame = _Frame(root, None, 0)
            stack: list[_Frame] = []
            while True:
                event = next_event()
                kind = type(event)
                if kind is yaml.ScalarEvent:
                    value = self._scalar(event, frame)
                elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                    stack.append(frame)
                    frame = self._begin(event, frame, len(stack))
                    continue
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    value = self._end(event, frame)
                    frame = stack.pop()
                    if frame.is_outer_list:
                        self._start = event.end_mark.index
                        if not self._whole and stack[-1].key == "items" and says_what_it_is(value):
                            place = f"items[{len(frame.container)}]"
                            yield Built(value, place, self._found_duplicates(), self._start)
                            value = TAKEN
                elif kind is yaml.AliasEvent:
                    value = self._alias(event)
                else:
                    # The only event left is the one that ends the document.
                    break
                if type(frame.container) is list:
                    frame.container.append(value)
                elif frame.key is _NO_KEY:
                    self._take_key(frame, value, event)
                elif frame.key is _MERGE_KEY:
                    frame.merged += _to_merge(value, event)
                    frame.key = _NO_KEY
                else:
                    frame.container[frame.key] = value
                    frame.key = _NO_KEY
            end = event.end_mark.index
            event = next_event()
            if not isinstance(event, yaml.StreamEndEvent):
                raise DocumentError(
                    "there is another document, but nothing in between", event.start_mark.line
                )
        yield Built(root[0] if root else None, duplicates=self._found_duplicates(), end=end)

    def _scalar(self, event: Any, frame: _Frame) -> object:
        self._values += 1
        text: str = event.value
        is_plain, is_text = event.implicit
        try:
            value = plain_scalar(text) if is_plain else text if is_text else _tagged(event.tag, text)
        except DocumentError as error:
            raise DocumentError(error.why, event.start_mark.line) from None
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        if is_plain and text == _MERGE and frame.key is _NO_KEY and type(frame.container) is dict:
            return _MERGE_KEY
        return value

    def _begin(self, event: Any, outer: _Frame, depth: int) -> _Frame:
        if depth > DEEPEST:
            raise DocumentError(TOO_DEEP, event.start_mark.line)
        if event.start_mark.index - self._start > self._largest:
            raise DocumentError(too_large(self._largest), event.start_mark.line)
        is_mapping = type(event) is yaml.MappingStartEvent
        if event.tag not in (None, "!", _MAP_TAG if is_mapping else _SEQUENCE_TAG):
            raise DocumentError(
                f"the tag {_shown(_tag_name(event.tag))} is not one of {'objects' if is_mapping else 'lists'}",
                event.start_mark.line,
            )
        container: Any = {} if is_mapping else []
        if event.anchor is not None:
            self._anchors[event.anchor] = (container, 0)
        is_outer_list = depth == 2 and type(outer.container) is dict and not is_mapping
        return _Frame(container, event.anchor, self._values, is_outer_list=is_outer_list)

    def _end(self, event: Any, frame: _Frame) -> object:
        if event.end_mark.index - self._start > self._largest:
            raise DocumentError(too_large(self._largest), event.end_mark.line)
        self._values += 1
        container = frame.container
        if frame.merged:
            own = dict(container)
            container.clear()
            # Reversed, so that the first of several merged mappings wins.
            for mapping in reversed(frame.merged):
                container.update(mapping)
            container.update(own)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (container, self._values - frame.before)
        return container

    def _alias(self, event: Any) -> object:
        line = event.start_mark.line
        if event.anchor not in self._anchors:
            raise DocumentError(f"found undefined alias {_shown(event.anchor)}", line)
        value, size = self._anchors[event.anchor]
        if not size:
            raise DocumentError(f"the alias {_shown(event.anchor)} is inside of what it stands for", line)
        self._values += size
        self._aliased += size
        written = self._values - self._aliased
        if self._aliased > _FREE_ALIASED + _ALIASED_PER_VALUE * written:
            raise DocumentError("contains excessive aliasing: its aliases stand for too many values", line)
        return value

    def _take_key(self, frame: _Frame, key: object, event: Any) -> None:
        if key is not _MERGE_KEY and type(key) is not str:
            key = _key(key, event.start_mark.line)
        name = _MERGE if key is _MERGE_KEY else key
        if key in frame.container or (key is _MERGE_KEY and frame.merged):
            self._duplicates.append((event.start_mark.line, str(name)))
        frame.key = key

    def _found_duplicates(self) -> tuple[tuple[int, str], ...]:
        found = tuple(self._duplicates)
        self._duplicates.clear()
        return found


def _key(key: object, line: int) -> str:
    """Return a key that isn't a text as the text that JSON would have."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (int, float)):
        return str(key)
    raise DocumentError(f"a key: expected a text, a number, true or false, found {_found(key)}", line)


def _to_merge(value: object, event: Any) -> list[dict[str, object]]:
    mappings: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(mapping, dict) for mapping in mappings):
        found = next(mapping for mapping in mappings if not isinstance(mapping, dict))
        raise DocumentError(
            f"<<: expected an object or a list of objects, found {_found(found)}", event.start_mark.line
        )
    return mappings


def says_what_it_is(value: object) -> bool:
    """Tell whether a value is an object with kind and apiVersion."""
    return isinstance(value, dict) and bool(value.get("kind")) and bool(value.get("apiVersion"))
