"""Columns of numbers and texts, as the page reads them from JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

Column: TypeAlias = int | list[int]
"""One number per row; a single number if it is the same in all rows."""

NONE = -1
"""The value in place of a row or a code where there is none."""


def column(values: Iterable[int]) -> Column:
    """Return the column of these numbers; at least one, unless it is to be an empty list."""
    listed = list(values)
    return listed[0] if listed and listed.count(listed[0]) == len(listed) else listed


class Coded(msgspec.Struct, frozen=True):
    """A column of texts, of which many are equal: `codes` are indices into `values`, or NONE."""

    values: list[str]
    codes: Column

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Coded:
        codes: dict[str, int] = {}
        numbers = [NONE if text is None else codes.setdefault(text, len(codes)) for text in texts]
        return cls(list(codes), column(numbers))
