"""JSON as Go's encoding/json reads it, which kube-scheduler and most extenders use.

Keys match in any case, unknown keys are ignored, null means missing, and a value of the wrong type is an error. As
Go's Decoder, this reads only the first value of a text.

Bodies have thousands of nodes, most of which needn't be decoded. So `members` and `elements` split a text into
`Json` parts without decoding them; `decode` decodes a part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NoReturn, TypeVar

import msgspec

from kschedfw import KschedfwError
from kschedfw.api import EMPTY

Manifest = Mapping[str, object]
Json = msgspec.Raw
"""The undecoded text of a JSON value. It refers to the whole body, which it keeps in memory."""
ValueT = TypeVar("ValueT")

_INT64: Final = range(-(1 << 63), 1 << 63)
_SPACE: Final = " \t\r\n"
_SHOWN: Final = 60
_BYTES_PER_VALUE: Final = 13


class WireError(KschedfwError, ValueError):
    """A body breaks the protocol. The message names the field."""


def _no_constant(name: str) -> NoReturn:
    raise WireError(f"no JSON: {name} is no number")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Json] | None)
_ELEMENTS: Final = msgspec.json.Decoder(list[Json] | None)


def decode(body: bytes | Json) -> object:
    """Return the first JSON value of the body.

    Raises:
        WireError: the body has no JSON value.
    """
    text = bytes(body).decode("utf-8", errors="replace").lstrip(_SPACE)
    if not text:
        raise WireError("no JSON: it is empty")
    try:
        value: object = _DECODER.raw_decode(text)[0]
    except json.JSONDecodeError as error:
        raise WireError(f"no JSON: {error.msg} at character {error.pos}: {_excerpt(text)}") from None
    except RecursionError:
        raise WireError("no JSON: it is nested too deeply") from None
    except ValueError as error:  # An integer with thousands of digits can't be converted.
        if isinstance(error, WireError):
            raise
        raise WireError(f"no JSON: {error}") from None
    return value


def has_too_many_values(body: bytes, max_bytes: int) -> bool:
    """Return whether a body has more values than allowed, which is one for every 13 of `max_bytes`.

    API objects have about one value per 20 bytes. A decoded value takes many times the memory of its text, so that
    `[[],[],…` could exhaust the memory. Text in strings that looks like a value counts, too.
    """
    return sum(body.count(mark) for mark in (b",", b"[", b"{")) > max_bytes // _BYTES_PER_VALUE


def encode(value: object) -> bytes:
    """Return compact JSON. `Json` in the value is kept as it is."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # The text contains half a surrogate pair, which only an escape can express.
        return json.dumps(value, separators=(",", ":"), default=decode).encode("ascii")


def members(text: bytes | Json, path: str) -> Mapping[str, Json]:
    """Return the members of an object by lower-case name, not decoded; none for null.

    Raises:
        WireError: the text is no JSON, or no object.
    """
    found = _taken_apart(text, _MEMBERS, path, "an object")
    return EMPTY if found is None else {key.lower(): content for key, content in found.items()}


def elements(text: Json | None, path: str) -> Sequence[Json]:
    """Return the elements of a list, not decoded; none for null.

    Raises:
        WireError: the text is no JSON, or no list.
    """
    found = None if text is None else _taken_apart(text, _ELEMENTS, path, "a list")
    return () if found is None else found


def is_null(text: Json | None) -> bool:
    """Return whether a member is missing, or null."""
    # A `Json` begins with its value, without spaces.
    return text is None or bytes(memoryview(text)[:4]) == b"null"


def _taken_apart(
    text: bytes | Json, decoder: msgspec.json.Decoder[ValueT], path: str, expected: str
) -> ValueT:
    try:
        try:
            return decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # The text is valid JSON of another type: mending wouldn't change that.
            if isinstance(error, msgspec.ValidationError):
                raise
            return decoder.decode(_mended(text))
    except msgspec.ValidationError:
        raise _wrong(decode(text), path, expected) from None


def _mended(text: bytes | Json) -> str:
    """Return the text as valid JSON.

    Go also accepts text after the value, and halves of surrogate pairs; both are removed.
    """
    written = json.dumps(decode(text), ensure_ascii=False)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fields(value: object, path: str) -> Mapping[str, object]:
    """Return the fields of an object by lower-case name; none for null. Raises WireError."""
    if value is None:
        return EMPTY
    return {key.lower(): content for key, content in _mapping(value, path).items()}


def string(value: object, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(value, path, "a string")
    return value


def integer(value: object, path: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(value, path, "an integer")
    if value not in _INT64:
        raise WireError(f"{path}: must be an integer of 64 bits")
    return value


def items(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the items of a list, each with its path; none for null. Raises WireError."""
    if value is None:
        return
    if not isinstance(value, list):
        raise _wrong(value, path, "a list")
    for index, content in enumerate(value):
        yield f"{path}[{index}]", content


def entries(value: object, path: str) -> Iterator[tuple[str, str, object]]:
    """Yield the entries of a map: key, path, content; none for null. Raises WireError."""
    if value is None:
        return
    for key, content in _mapping(value, path).items():
        yield key, f"{path}[{key}]", content


def manifest(value: object, path: str) -> Manifest:
    """Return an API object unchanged. Raises WireError if the value is no object."""
    return EMPTY if value is None else _mapping(value, path)


def strings(value: object, path: str) -> tuple[str, ...] | None:
    """Return a list of strings; None for null, which differs from an empty list. Raises WireError."""
    if isinstance(value, list) and set(map(type, value)) == {str}:
        # Fast path, for example for the names of all nodes: it takes a twentieth of the time.
        return tuple(value)
    return None if value is None else tuple(string(content, place) for place, content in items(value, path))


def string_map(value: object, path: str) -> dict[str, str]:
    return {key: string(content, place) for key, place, content in entries(value, path)}


def _mapping(value: object, path: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong(value, path, "an object")
    return value


def _wrong(value: object, path: str, expected: str) -> WireError:
    return WireError(f"{path}: must be {expected}, not {_excerpt(json.dumps(value))}")


def _excerpt(text: str) -> str:
    shown = " ".join(text[: _SHOWN + 1].split())
    return repr(shown if len(text) <= _SHOWN else f"{shown[:_SHOWN]}…")
