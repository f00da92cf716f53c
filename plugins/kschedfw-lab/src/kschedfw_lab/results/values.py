"""The types of values in results, and their form in the cells of a CSV file."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from numbers import Integral, Real
from typing import Final, TypeAlias

import msgspec

from kschedfw import KschedfwError
from kschedfw.api.reading import printable, shown

Value: TypeAlias = str | int | float | bool | None
"""A factor's value. None means that the factor isn't set."""

Number: TypeAlias = int | float
"""A metric's value: an int for a count, else a float."""

LARGEST_COUNT: Final = 1 << 53
"""The largest count: floats represent every integer up to it."""

_LARGEST_INT: Final = (1 << 63) - 1
_SCALAR: Final = msgspec.json.Decoder(Value)


class ResultsError(KschedfwError, ValueError):
    """Results can't be read or written. The message says where and why."""


def checked_value(name: str, value: object) -> Value:
    """Return the value of a factor, if results can hold it.

    Raises:
        ResultsError: it isn't a text, a number, a bool or None; or it isn't finite, has more than 64 bits, or isn't
            Unicode.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and -_LARGEST_INT <= value <= _LARGEST_INT:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    # Half of a surrogate pair can't be written as UTF-8.
    if isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value):
        return value
    raise ResultsError(
        f"factor {name}: {shown(value)}: expected a text, a finite number of at most 64 bits, a bool or None"
    )


def checked_number(metric: str, value: object) -> Number:
    """Return the value of a metric, if results can hold it. NumPy's numbers are converted to Python's.

    Raises:
        ResultsError: it isn't a finite number, or a count beyond 2^53.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        # Compared before anything else: an int of hundreds of digits is too large for a float.
        if abs(count := int(value)) <= LARGEST_COUNT:
            return count
    elif isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number):
            return number
    raise ResultsError(f"metric {metric}: {shown(value)}: expected a finite float, or an int up to 2^53")


def checked_name(what: str, name: str) -> str:
    """Return the name, if it can be that of a column, a metric or a run.

    Raises:
        ResultsError: it is empty, or has invisible characters.
    """
    if not name or not name.isprintable():
        raise ResultsError(f"{what} {shown(name)}: expected a name of visible characters")
    return name


def one_line(text: str, longest: int = 2000) -> str:
    """Return a message as one line of limited length, without control characters."""
    return printable(" ".join(text[: 2 * longest].split()), longest)


def of_one_type(values: Collection[Value]) -> list[Value]:
    """Convert the values of a column to one type. None stays None.

    Ints and floats together become floats. Other mixtures become texts: the CSV cells of the values, without quotes.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) <= 1:
        return list(values)
    if kinds == {int, float}:
        return [float(value) if isinstance(value, int) else value for value in values]
    return [value if value is None or isinstance(value, str) else _json(value) for value in values]


_FORMULA: Final = re.compile(r"\A'*+[=+\-@\t\r]")
"""The beginning of a cell that a spreadsheet may evaluate, after the apostrophes of `text_cell`."""


def cell(value: Value) -> str:
    """Format the value as a cell of a CSV file.

    None is an empty cell. A text that can't be mistaken for another value, or for a formula by a spreadsheet, stands
    for itself. Everything else is JSON.
    """
    if value is None:
        return ""
    if isinstance(value, str) and _is_plain(value):
        return value
    return _json(value)


def cell_value(text: str) -> Value:
    """Parse a cell of a CSV file; see `cell`."""
    if not text:
        return None
    try:
        value: Value = _SCALAR.decode(text)
    except msgspec.DecodeError:
        return text
    return value


def text_cell(text: str) -> str:
    """Format a text as a cell of a column that has only texts.

    A text that a spreadsheet would take for a formula gets an apostrophe, and so does one that has some before.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def cell_text(cell: str) -> str:
    """Parse a cell of a column that has only texts; see `text_cell`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _is_plain(text: str) -> bool:
    return (
        text.isprintable()
        and text == text.strip()
        and bool(text)
        and not _FORMULA.match(text)
        and cell_value(text) is text
    )


def _json(value: Value) -> str:
    return msgspec.json.encode(value).decode()
