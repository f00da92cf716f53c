"""The scalars in manifests: strings, numbers, booleans, times, quantities.

A value of a wrong type is refused, never converted. Each function takes the value and the wanted type, as cattrs'
hooks do, and raises `FieldErrors` without a path; the caller adds the path.
"""

from __future__ import annotations

import base64
import functools
import math
import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from kschedfw.api.field_errors import FieldError, FieldErrors
from kschedfw.api.quantity import Quantity, QuantityError, parse_quantity

INT32: Final = range(-(1 << 31), 1 << 31)
_INT64: Final = range(-(1 << 63), 1 << 63)
# Beyond these a quantity has no int64 number of thousandths; nothing so large has fractions of a thousandth.
_FEWEST, _MOST = Quantity.parse("-9e15"), Quantity.parse("9e15")
# Kubernetes reads larger ones too, but adding two of very different size would take all memory, there as here.
_LEAST_SENSIBLE, _LARGEST_SENSIBLE = Quantity.parse("-1e100"), Quantity.parse("1e100")
ZERO: Final = Quantity.parse(0)

Duration: TypeAlias = Annotated[float, "duration"]
"""Seconds; in a manifest a text such as `1m30s`."""

Int32: TypeAlias = Annotated[int, "int32"]
"""An integer that Kubernetes keeps in 32 bits; its API server refuses others when it reads them."""

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# Possessive, so that a long wrong text takes linear time.
_PART: Final = re.compile(r"([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)")
# In seconds; Kubernetes counts nanoseconds in an int64.
_LONGEST_DURATION: Final = (1 << 63) / 1e9


def wrong(value: object, expected: str) -> FieldErrors:
    return FieldErrors([FieldError.invalid("", value, f"must be {expected}")])


def read_string(value: object, _type: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        raise wrong(value, "a string: put it in quotes")
    raise wrong(value, "a string")


def read_integer(value: object, _type: object) -> int:
    if isinstance(value, float) and value.is_integer():
        # YAML's 1.0 becomes JSON's 1 on the way to the API server.
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT64:
        return value
    raise wrong(value, "an integer")


def read_int32(value: object, _type: object) -> int:
    number = read_integer(value, int)
    if number in INT32:
        return number
    raise wrong(value, f"an integer of 32 bits, from {INT32.start} to {INT32.stop - 1}")


def read_boolean(value: object, _type: object) -> bool:
    if isinstance(value, bool):
        return value
    raise wrong(value, "true or false")


def read_number(value: object, _type: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise wrong(value, "a number")


def read_duration(value: object, _type: object) -> float:
    """Return the seconds of a text such as `1m30s`, to the nanosecond.

    A number has no unit, and is refused, as by Kubernetes.
    """
    if not isinstance(value, str):
        raise wrong(value, "a duration such as 30s or 1m30s")
    text = value[1:] if value[:1] in ("-", "+") else value
    parts, position = [], 0
    while part := _PART.match(text, position):
        parts.append(float(part[1]) * _UNITS[part[2]])
        position = part.end()
    if text != "0" and (not parts or position < len(text)):
        raise wrong(value, "a duration such as 30s or 1m30s")
    # Rounded, so that 1126ms and 1.126s are equal.
    seconds = round(math.fsum(parts), 9)
    if not seconds < _LONGEST_DURATION:
        raise wrong(value, "a duration of less than 293 years")
    return -seconds if value.startswith("-") else seconds


def read_bytes(value: object, _type: object) -> bytes:
    try:
        return base64.b64decode(read_string(value, str), validate=True)
    except ValueError:
        # The value isn't shown: it may be a secret.
        raise wrong("…", "data in base64") from None


def read_int_or_string(value: object, _type: object) -> int | str:
    if isinstance(value, str):
        return value
    return read_integer(value, int)


def read_enumeration(value: object, cls: type[StrEnum]) -> StrEnum:
    try:
        return cls(read_string(value, str))
    except ValueError:
        raise FieldErrors([FieldError.unsupported("", value, cls)]) from None


def read_time(value: object, _type: object) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, str):
        return _parse_time(value)
    raise wrong(value, "a time such as 2006-01-02T15:04:05Z")


@functools.lru_cache(maxsize=1 << 14)
def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise wrong(text, "a time such as 2006-01-02T15:04:05Z")
    return time.astimezone(UTC)


def read_quantity(value: object, _type: object) -> Quantity:
    if value is None:
        # Kubernetes reads a null amount as 0.
        return ZERO
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        try:
            amount = _amount(value)
        except QuantityError as error:
            # The text of the error begins with the value, which the message below has already.
            why = str(error).partition(": ")[2] or str(error)
            raise FieldErrors([FieldError.invalid("", value, f"{why}{_hint(value)}")]) from None
        return amount
    if isinstance(value, Quantity):
        return value
    raise wrong(value, 'a quantity, such as "500m" or "1Gi"')


@functools.lru_cache(maxsize=1 << 14)
def _amount(value: str | int | float) -> Quantity:
    """Return a quantity, rounded up to thousandths, as by the API server in resource lists."""
    quantity = parse_quantity(value)
    if _FEWEST < quantity < _MOST:
        rounded = Quantity.parse(f"{quantity.milli_value()}m")
        return quantity if rounded == quantity else rounded
    if not _LEAST_SENSIBLE < quantity < _LARGEST_SENSIBLE:
        raise wrong(value, "less than 1e100")
    return quantity


def _hint(value: object) -> str:
    text = str(value)
    tidy = "".join(text.split())
    for candidate in (tidy, tidy.removesuffix("B"), tidy.removesuffix("b"), tidy[:-1] + tidy[-1:].lower()):
        if candidate and candidate != text:
            try:
                parse_quantity(candidate)
            except QuantityError:
                continue
            return f' (perhaps "{candidate}" was meant)'
    return ""


def write_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
