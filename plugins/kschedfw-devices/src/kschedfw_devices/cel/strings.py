"""Strings: the extended functions (version 2), `format`, and regular expressions.

Regular expressions are RE2's: matching takes linear time whatever the pattern. Python's `re` would backtrack, so these
need the library google-re2, which is asked for when an expression has a pattern.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from kschedfw_devices.cel.functions import overload, overloads
from kschedfw_devices.cel.standard import string_of
from kschedfw_devices.cel.values import (
    MAX_TEXT,
    Duration,
    EvaluationError,
    Map,
    SelectorError,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    type_name,
)


class Pattern(Protocol):
    """The methods of a compiled pattern that are used here."""

    @property
    def programsize(self) -> int:
        """The number of instructions."""
        ...

    def search(self, text: str, /) -> re.Match[str] | None: ...

    def finditer(self, text: str, /) -> Iterator[re.Match[str]]: ...


def _check_length(length: int) -> None:
    if length > MAX_TEXT:
        raise EvaluationError(f"a string of {length} characters: there may be {MAX_TEXT}")


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


@overload("<string>.charAt(int) -> string")
def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    # The index behind the last character gives an empty text, as in cel-go.
    return text[index : index + 1]


@overload("<string>.indexOf(string) -> int", "<string>.indexOf(string, int) -> int")
def _index_of(text: str, part: str, start: int = 0) -> int:
    # As in cel-go, even where the index is out of range.
    if part == "":
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start) if start < len(text) else -1


@overload("<string>.lastIndexOf(string) -> int", "<string>.lastIndexOf(string, int) -> int")
def _last_index_of(text: str, part: str, last: int | None = None) -> int:
    if part == "":
        return len(text) if last is None else last
    if last is None:
        return text.rfind(part)
    if last < 0:
        raise _out_of_range(last)
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


_LOWER: Final = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {c + 32: c for c in range(ord("A"), ord("Z") + 1)}


@overload("<string>.replace(string, string) -> string", "<string>.replace(string, string, int) -> string")
def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    times = text.count(old) if old else len(text) + 1
    _check_length(len(text) + (times if count < 0 else min(times, count)) * len(new))
    return text.replace(old, new, max(count, -1))


@overload("<string>.split(string) -> list(string)", "<string>.split(string, int) -> list(string)")
def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    characters = list(text)
    if 0 < count < len(characters):
        return [*characters[: count - 1], "".join(characters[count - 1 :])]
    return characters


@overload("<string>.substring(int) -> string", "<string>.substring(int, int) -> string")
def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
    elif start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


# What Go's unicode.IsSpace knows; Python's strip() would take a few control characters, too.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@overload("<list(string)>.join() -> string", "<list(string)>.join(string) -> string")
def _join(parts: list[Value], separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise EvaluationError(f"join: invalid input: {part}")
    _check_length(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


_OF_STRING: Final[dict[str, Callable[[str], str]]] = {
    "<string>.lowerAscii() -> string": lambda text: text.translate(_LOWER),
    "<string>.upperAscii() -> string": lambda text: text.translate(_UPPER),
    "<string>.trim() -> string": lambda text: text.strip(_SPACE),
    "strings.quote(string) -> string": lambda text: f'"{text.translate(_QUOTED)}"',
}
overloads(_OF_STRING)

# --- format

_CLAUSE: Final = re.compile(r"%(?:%|(?:\.([0-9]*))?(.?))", re.DOTALL)
_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 1000


def format_clauses(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the parts of a format: plain text, the letter of the clause after it, and its precision.

    The letter is empty at the end.

    Raises:
        EvaluationError: an unknown clause.
    """
    position, plain = 0, ""
    for match in _CLAUSE.finditer(text):
        plain += text[position : match.start()]
        position = match.end()
        if match[0] == "%%":
            plain += "%"
            continue
        letter = match[2]
        if not letter:
            raise EvaluationError("could not parse formatting clause: unexpected end of string")
        if letter not in "sdfebxXo":
            raise EvaluationError(
                f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
            )
        precision = int(match[1] or "0") if match[1] is not None else _DEFAULT_PRECISION
        if precision > _MAX_PRECISION:
            raise EvaluationError(f"could not parse formatting clause: precision {precision} is too large")
        yield plain, letter, precision
        plain = ""
    yield plain + text[position:], "", 0


@overload("<string>.format(list(dyn)) -> string")
def _format(text: str, arguments: list[Value]) -> str:
    parts = []
    for number, (plain, letter, precision) in enumerate(format_clauses(text)):
        parts.append(plain)
        if letter:
            if number >= len(arguments):
                raise EvaluationError(f"index {number} out of range")
            parts.append(_FORMATS[letter](arguments[number], precision))
    return "".join(parts)


def _wrong(what: str, value: Value) -> EvaluationError:
    return EvaluationError(f"error during formatting: {what}, was given {type_name(value)}")


def _format_string(value: Value, _: int = 0) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_quoted_member(v) for v in value)}]"
    if isinstance(value, Map):
        pairs = sorted((_quoted_member(k), _quoted_member(v)) for k, v in value.items())
        return "{" + ", ".join(f"{k}:{v}" for k, v in pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, (bool, int, float, str, bytes, Timestamp, Duration)):
        return string_of(value)
    raise _wrong(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps",
        value,
    )


def _quoted_member(value: Value) -> str:
    """Show a value inside a list or a map."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return f"b{json.dumps(string_of(value), ensure_ascii=False)}"
    if isinstance(value, float):
        text = _format_fixed(value, _DEFAULT_PRECISION)
        return f'"{text}"' if text.lstrip("+-").isalpha() else text
    if isinstance(value, TypeValue):
        return f"type({value.name})"
    return _format_string(value)


def _integer_clause(
    form: str, problem: str, types: tuple[type, ...] = (int, UInt)
) -> Callable[[Value, int], str]:
    """Return the clause that writes integers in Python's `form`; `problem` is the error about other values."""

    def written(value: Value, _: int) -> str:
        if type(value) in types:
            return f"{int(value):{form}}"
        raise _wrong(problem, value)

    return written


_INFINITE: Final = {"NaN": "NaN", "Infinity": "∞", "-Infinity": "-∞"}


def _format_fixed(value: Value, precision: int) -> str:
    return _format_double(value, f".{precision}f", "fixed-point")


def _format_double(value: Value, form: str, clause: str) -> str:
    if isinstance(value, str) and value in _INFINITE:
        return _INFINITE[value]
    if not isinstance(value, float):
        raise _wrong(f"{clause} clause can only be used on doubles", value)
    text = f"{value:{form}}"
    return {"nan": "NaN", "inf": "∞", "-inf": "-∞"}.get(text, text)


def _format_hex(value: Value, _: int) -> str:
    if isinstance(value, (str, bytes)):
        return (value.encode(errors="surrogatepass") if isinstance(value, str) else value).hex()
    if type(value) in (int, UInt):
        return f"{int(value):x}"
    raise _wrong("only integers, byte buffers, and strings can be formatted as hex", value)


_FORMATS: Final[dict[str, Callable[[Value, int], str]]] = {
    "s": _format_string,
    "d": _integer_clause("d", "decimal clause can only be used on integers"),
    "f": _format_fixed,
    "e": lambda value, precision: _format_double(value, f".{precision}e", "scientific"),
    "b": _integer_clause("b", "only integers and bools can be formatted as binary", (bool, int, UInt)),
    "x": _format_hex,
    "X": lambda value, precision: _format_hex(value, precision).upper(),
    "o": _integer_clause("o", "octal clause can only be used on integers"),
}


# --- Regular expressions


@functools.lru_cache(maxsize=256)
def compiled_pattern(pattern: str) -> "Pattern":
    """Compile a pattern.

    Raises:
        SelectorError: google-re2 isn't installed.
        EvaluationError: it is no pattern of RE2.
    """
    try:
        import re2  # type: ignore[import-untyped] # it has no types
    except ImportError:
        raise SelectorError(
            "selectors with regular expressions need google-re2; install it with: pip install google-re2"
        ) from None
    options = re2.Options()
    options.log_errors = False
    # No function gives groups, and to keep track of a thousand takes 25 times as long as to match.
    options.never_capture = True
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        shown = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise EvaluationError(f"error parsing regexp: {shown}") from None
    return compiled


@overload("matches(string, string) -> bool", "<string>.matches(string) -> bool")
def _matches(text: str, pattern: str) -> bool:
    return compiled_pattern(pattern).search(text) is not None


@overload("<string>.find(string) -> string")
def _find(text: str, pattern: str) -> str:
    match = compiled_pattern(pattern).search(text)
    return match[0] if match else ""


@overload("<string>.findAll(string) -> list(string)", "<string>.findAll(string, int) -> list(string)")
def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found: list[str] = []
    if count == 0:
        return found
    previous_end = -1
    for match in compiled_pattern(pattern).finditer(text):
        # Go takes no empty match right behind another one.
        if match.end() == match.start() == previous_end:
            continue
        previous_end = match.end()
        found.append(match[0])
        if len(found) == count:
            break
    return found
