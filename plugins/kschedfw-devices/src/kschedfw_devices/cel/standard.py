"""CEL's standard functions: operators, conversions, sizes, parts of times.

`==`, `&&`, `||`, `?:` and indexing are declared here for the checker, and evaluated by `evaluator`.
"""

import datetime
import math
import re
from collections.abc import Callable
from typing import Final
from zoneinfo import ZoneInfo

from kschedfw_devices.cel.functions import FUNCTIONS, overload, overloads
from kschedfw_devices.cel.types import read_signature
from kschedfw_devices.cel.values import (
    Duration,
    EvaluationError,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    duration,
    int64,
    timestamp,
    type_name,
    uint64,
)

_NANOS: Final = 10**9


def _declare(*signatures: str) -> None:
    for signature in signatures:
        made = read_signature(signature, None)
        FUNCTIONS.setdefault(made.function, []).append(made)


_declare(
    "_?_:_(bool, A, A) -> A",
    "_&&_(bool, bool) -> bool",
    "_||_(bool, bool) -> bool",
    "!_(bool) -> bool",
    "@not_strictly_false(bool) -> bool",
    "_==_(A, A) -> bool",
    "_!=_(A, A) -> bool",
    "_[_](list(A), int) -> A",
    "_[_](map(A, B), A) -> B",
    "_[_](optional(list(V)), int) -> optional(V)",
    "_[_](optional(map(K, V)), K) -> optional(V)",
    "_[?_](list(V), int) -> optional(V)",
    "_[?_](optional(list(V)), int) -> optional(V)",
    "_[?_](map(K, V), K) -> optional(V)",
    "_[?_](optional(map(K, V)), K) -> optional(V)",
    "@in(A, list(A)) -> bool",
    "@in(A, map(A, B)) -> bool",
    "-_(double) -> double",
    "-_(int) -> int",
    "cel.@mapInsert(map(K, V), K, V) -> map(K, V)",
    "cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)",
)
for _type in ("bytes", "double", "int", "string", "uint"):
    _declare(f"_+_({_type}, {_type}) -> {_type}")
_declare(
    "_+_(duration, duration) -> duration",
    "_+_(duration, timestamp) -> timestamp",
    "_+_(timestamp, duration) -> timestamp",
    "_+_(list(A), list(A)) -> list(A)",
)
for _type in ("double", "int", "uint"):
    _declare(*(f"_{_sign}_({_type}, {_type}) -> {_type}" for _sign in "-*/"))
_declare("_%_(int, int) -> int", "_%_(uint, uint) -> uint")
_declare(
    "_-_(duration, duration) -> duration",
    "_-_(timestamp, duration) -> timestamp",
    "_-_(timestamp, timestamp) -> duration",
)
for _sign in ("<", "<=", ">", ">="):
    for _type in ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"):
        _declare(f"_{_sign}_({_type}, {_type}) -> bool")
    for _pair in ("int, double", "int, uint", "uint, double", "uint, int", "double, int", "double, uint"):
        _declare(f"_{_sign}_({_pair}) -> bool")


# --- Sizes and strings


@overload(
    *(f"size({t}) -> int" for t in ("bytes", "list(A)", "map(A, B)", "string")),
    *(f"<{t}>.size() -> int" for t in ("bytes", "list(A)", "map(A, B)", "string")),
)
def _size(value: Value) -> int:
    return len(value)


_OF_STRING: Final[dict[str, Callable[[str, str], bool]]] = {
    "<string>.contains(string) -> bool": lambda text, part: part in text,
    "<string>.startsWith(string) -> bool": str.startswith,
    "<string>.endsWith(string) -> bool": str.endswith,
}
overloads(_OF_STRING)


# --- Conversions


def _failed(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


_OF_ANY: Final[dict[str, Callable[[Value], Value]]] = {
    "type(A) -> type(A)": lambda value: TypeValue(type_name(value)),
    "dyn(A) -> dyn": lambda value: value,
}
overloads(_OF_ANY)


@overload("bool(bool) -> bool", "bool(string) -> bool")
def _bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise _failed("string", "bool")


@overload("bytes(bytes) -> bytes", "bytes(string) -> bytes")
def _bytes(value: str | bytes) -> bytes:
    return value.encode(errors="surrogatepass") if isinstance(value, str) else value


_WHOLE: Final = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,20})")
"""A sign, zeros, and what may fit in 64 bits. Python reads at most 4,300 digits."""
_DIGITS: Final = r"[0-9]++(?:_[0-9]++)*+"
_HEX_DIGITS: Final = r"[0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+"
_DOUBLE: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
    rf"|(?P<hex>[+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS})"
    # ASCII letters only: ignoring case, Python takes the dotless i for an i.
    r"|(?P<name>(?ai:[+-]?inf|[+-]?infinity|nan))"
)
"""Texts that Go's `ParseFloat` takes."""


def _whole(text: str, target: str, numbers: range) -> int:
    """Return the number that the text is, if it is one of these. Raises EvaluationError."""
    match = _WHOLE.fullmatch(text)
    number = int(match[1] + (match[2] or "0")) if match else None
    if number is None or number not in numbers:
        raise _failed("string", target)
    return number


@overload(
    "double(double) -> double", "double(int) -> double", "double(string) -> double", "double(uint) -> double"
)
def _double(value: Value) -> float:
    if isinstance(value, str):
        match = _DOUBLE.fullmatch(value)
        if match is None:
            raise _failed("string", "double")
        text = value.replace("_", "")
        try:
            number = float.fromhex(text) if match["hex"] else float(text)
        except OverflowError:
            number = math.inf
        # A number that is too large is a range error to Go.
        if math.isinf(number) and not match["name"]:
            raise _failed("string", "double")
        return number
    return float(value)


@overload(
    "int(int) -> int",
    "int(double) -> int",
    "int(duration) -> int",
    "int(string) -> int",
    "int(timestamp) -> int",
    "int(uint) -> int",
)
def _int(value: Value) -> int:
    if isinstance(value, str):
        return _whole(value, "int", range(-(2**63), 2**63))
    if isinstance(value, Duration):
        return value.nanoseconds
    if isinstance(value, Timestamp):
        return value.nanoseconds // _NANOS
    # Both ends are excluded, as in cel-go's `doubleToInt64Checked`; NaN is in no range.
    if isinstance(value, float) and not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int64(int(value))


@overload("uint(uint) -> uint", "uint(double) -> uint", "uint(int) -> uint", "uint(string) -> uint")
def _uint(value: Value) -> UInt:
    if isinstance(value, str):
        # Go's `ParseUint` takes no sign, not even a plus.
        if value.startswith(("+", "-")):
            raise _failed("string", "uint")
        return UInt(_whole(value, "uint", range(2**64)))
    if isinstance(value, float) and not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return uint64(int(value))


@overload(
    *(
        f"string({t}) -> string"
        for t in ("string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint")
    )
)
def string_of(value: Value) -> str:
    """Convert as `string()` does."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case float():
            return double_text(value)
        case Duration():
            return f"{_fixed(value.nanoseconds)}s"
        case Timestamp():
            return _timestamp_text(value)
    return str(int(value))


def double_text(number: float) -> str:
    """Write a double as Go's `%g` does: the shortest digits that give the same number again."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    digits, _, exponent = f"{number!r}".partition("e")
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.lstrip("-").partition(".")
    power = int(exponent or 0) + len(whole)
    figures = (whole + fraction).lstrip("0")
    power -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0")
    if not figures:
        return sign + "0"
    if -4 <= power - 1 < 6:
        if power <= 0:
            return f"{sign}0.{'0' * -power}{figures}"
        point = figures[power:]
        return sign + figures[:power].ljust(power, "0") + (f".{point}" if point else "")
    mantissa = figures[0] + (f".{figures[1:]}" if len(figures) > 1 else "")
    return f"{sign}{mantissa}e{'-' if power <= 0 else '+'}{abs(power - 1):02}"


def _fixed(nanoseconds: int) -> str:
    """Write nanoseconds as seconds."""
    whole, rest = divmod(abs(nanoseconds), _NANOS)
    fraction = f"{rest:09}".rstrip("0")
    return ("-" if nanoseconds < 0 else "") + str(whole) + (f".{fraction}" if fraction else "")


def _timestamp_text(value: Timestamp) -> str:
    seconds, rest = divmod(value.nanoseconds, _NANOS)
    fraction = f"{rest:09}".rstrip("0")
    text = (_EPOCH + datetime.timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")
    return text + (f".{fraction}" if fraction else "") + "Z"


# --- Times

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


@overload(
    "timestamp(timestamp) -> timestamp", "timestamp(int) -> timestamp", "timestamp(string) -> timestamp"
)
def _timestamp(value: Value) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int):
        return timestamp(value * _NANOS)
    match = _RFC3339.fullmatch(value)
    if match is None:
        raise _failed("string", "timestamp")
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
    except ValueError:
        raise _failed("string", "timestamp") from None
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1)
    if match[8]:
        hours, minutes = int(match[9]), int(match[10])
        if hours > 24 or minutes > 60:
            raise _failed("string", "timestamp")
        seconds -= (hours * 3600 + minutes * 60) * (-1 if match[8] == "-" else 1)
    return timestamp(seconds * _NANOS + int((match[7] or "0")[:9].ljust(9, "0")))


_UNITS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": _NANOS}
_UNITS.update(m=60 * _NANOS, h=3600 * _NANOS)
_DURATION_PART: Final = re.compile(r"(?<![0-9.])([0-9]*+)(?:\.([0-9]*+))?(ns|us|µs|μs|ms|s|m|h)")
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:ns|us|µs|μs|ms|s|m|h))+)")
_ZONE: Final = re.compile(r"([+-]?)(\d+):(\d+)", re.ASCII)


@overload("duration(duration) -> duration", "duration(int) -> duration", "duration(string) -> duration")
def _duration(value: Value) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int):
        return duration(value)
    if len(value) > 256 or not _DURATION.fullmatch(value):
        raise _failed("string", "duration")
    total = 0
    for whole, fraction, unit in _DURATION_PART.findall(value):
        scale = _UNITS[unit]
        total += int(whole or 0) * scale
        if fraction:
            total += int(fraction) * scale // 10 ** len(fraction)
    if value.startswith("-"):
        total = -total
    if not -(2**63) <= total < 2**63:
        raise _failed("string", "duration")
    return Duration(total)


def _in_zone(value: Timestamp, zone: str) -> datetime.datetime:
    moment = _EPOCH + datetime.timedelta(seconds=value.nanoseconds // _NANOS)
    match = _ZONE.fullmatch(zone)
    try:
        if match is not None:
            minutes = int(match[2]) * 60 + int(match[3])
            offset = datetime.timedelta(minutes=-minutes if match[1] == "-" else minutes)
            return (moment + offset).replace(tzinfo=datetime.UTC)
        return moment if zone in ("", "UTC") else moment.astimezone(ZoneInfo(zone))
    except (ValueError, OSError, OverflowError, KeyError):
        raise EvaluationError(f"unknown time zone {zone}") from None


_PARTS_OF_TIME: Final[dict[str, Callable[[datetime.datetime], int]]] = {
    "getFullYear": lambda t: t.year,
    # CEL counts from 0, except in `getDate`, and the week begins with Sunday.
    "getMonth": lambda t: t.month - 1,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDate": lambda t: t.day,
    "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
}


def _declare_part(name: str, part: Callable[[datetime.datetime], int]) -> None:
    @overload(f"<timestamp>.{name}() -> int", f"<timestamp>.{name}(string) -> int")
    def _(value: Timestamp, zone: str = "UTC") -> int:
        return part(_in_zone(value, zone))


for _name, _part in _PARTS_OF_TIME.items():
    _declare_part(_name, _part)


@overload("<timestamp>.getMilliseconds() -> int", "<timestamp>.getMilliseconds(string) -> int")
def _milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    # For its error: an unknown zone is one here, too.
    _in_zone(value, zone)
    return value.nanoseconds % _NANOS // 10**6


def _truncated(value: Duration, unit: int) -> int:
    # Towards zero, as Go divides; `//` alone rounds down.
    count = abs(value.nanoseconds) // unit
    return count if value.nanoseconds >= 0 else -count


_PARTS_OF_DURATION: Final[dict[str, Callable[[Duration], int]]] = {
    "<duration>.getHours() -> int": lambda value: _truncated(value, 3600 * _NANOS),
    "<duration>.getMinutes() -> int": lambda value: _truncated(value, 60 * _NANOS),
    "<duration>.getSeconds() -> int": lambda value: _truncated(value, _NANOS),
    "<duration>.getMilliseconds() -> int": lambda value: _truncated(value, 10**6),
}
overloads(_PARTS_OF_DURATION)
