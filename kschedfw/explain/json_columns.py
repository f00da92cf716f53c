"""Columns of numbers as JSON: readable if they are short, else packed."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Final, TypeAlias

import numpy as np

from kschedfw.framework.nodes.arrays import IntArray

JsonColumn: TypeAlias = int | list[int] | str
"""One number if all are equal, a list of numbers, or `<dtype>:<base64>` of little-endian numbers, such as `i1:AAEC`."""

MOST_READABLE: Final = 32
"""Longer columns are packed, which takes a hundredth of the time to write and read."""

_BITS: Final = {f"i{size}": 8 * size - 1 for size in (1, 2, 4, 8)}
"""The number of bits of the largest number of each type."""


def packed(values: IntArray) -> JsonColumn:
    """The JSON of a column, int64 of shape (n,)."""
    if not len(values):
        return []
    low, high = int(values[values.argmin()]), int(values[values.argmax()])
    if low == high:
        return low
    if len(values) <= MOST_READABLE:
        return [int(value) for value in values]
    dtype = next(each for each, bits in _BITS.items() if -(1 << bits) <= low and high < 1 << bits)
    return f"{dtype}:{b64encode(values.astype(f'<{dtype}').tobytes()).decode('ascii')}"


def unpacked(column: object, count: int) -> IntArray:
    """The column of `count` numbers, int64 of shape (count,).

    Raises:
        ValueError: it isn't a column of that many numbers.
    """
    match column:
        case int() if _is_number(column):
            return np.full(count, column, dtype=np.int64)
        case list() if all(map(_is_number, column)):
            values = np.array(column, dtype=np.int64)
        case str() if column.partition(":")[0] in _BITS:
            dtype, _, text = column.partition(":")
            values = np.frombuffer(b64decode(text, validate=True), dtype=f"<{dtype}").astype(np.int64)
        case _:
            raise ValueError(f"{column!r} is no column")
    if len(values) != count:
        raise ValueError(f"a column has {len(values)} numbers instead of {count}")
    return values


def _is_number(value: object) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63
