"""The greatest sizes of values: literals, the contents of `device`, results of functions.

A value without bound counts as 2⁶⁴ − 1; all sums and products stop there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import attrs

from kschedfw.cel.call_costs import PER_CHARACTER

MOST: Final = 2**64 - 1


def added(a: int, b: int) -> int:
    return min(a + b, MOST)


def multiplied(a: int, b: int) -> int:
    return min(a * b, MOST)


def scaled(size: int, factor: float = PER_CHARACTER) -> int:
    return min(math.ceil(float(size) * factor), MOST)


@attrs.frozen
class Size:
    least: int
    most: int

    def union(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: Size) -> Size:
        return Size(added(self.least, other.least), added(self.most, other.most))


UNKNOWN: Final = Size(0, MOST)


@attrs.frozen
class Entries:
    """The sizes of the keys (of a list: indices) and of the values of a container."""

    keys: Size
    values: Size

    def union(self, other: Entries | None) -> Entries | None:
        return other and Entries(self.keys.union(other.keys), self.values.union(other.values))


@attrs.frozen
class Shape:
    """The shape of a part of `device`: its greatest size, and the shapes in it."""

    most: int
    fields: Mapping[str, Shape] = attrs.field(factory=dict)
    keys: Shape | None = None
    values: Shape | None = None
    any_field: bool = False
    """Fields of any name have the shape of `values`."""


# The limits of resource.k8s.io/v1: characters of domains, identifiers, driver names and values; entries of the maps.
_DOMAIN, _IDENTIFIER, _DRIVER, _VALUE, _ENTRIES = 63, 32, 63, 64, 32


def _by_domain(values: Shape, *, any_field: bool) -> Shape:
    inner = Shape(_ENTRIES, keys=Shape(_IDENTIFIER), values=values, any_field=any_field)
    return Shape(_ENTRIES, keys=Shape(_DOMAIN), values=inner)


DEVICE: Final = Shape(
    0,
    fields={
        "driver": Shape(_DRIVER),
        "allowMultipleAllocations": Shape(1),
        "attributes": _by_domain(Shape(_VALUE), any_field=True),
        "capacity": _by_domain(Shape(0), any_field=False),
    },
)
SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


@attrs.frozen
class Variable:
    shape: Shape | None
    size: Size | None
    entries: Entries | None
