"""The greatest sizes of values, the greatest costs of calls, and the sizes of their results, by function.

Sizes are those of literals, of the contents of `device`, and of results of functions. A value without bound counts as
2⁶⁴ − 1; all sums and products stop there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from kschedfw_devices.cel.call_costs import LIST_COST, PER_CHARACTER, PER_PATTERN_CHARACTER
from kschedfw_devices.cel.syntax import Call, Literal, SyntaxNode
from kschedfw_devices.cel.types import Overload

if TYPE_CHECKING:
    # It asks this module for the estimates of calls.
    from kschedfw_devices.cel.estimate import Estimator

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


def call_estimate(sizes: Estimator, node: Call, overload: Overload) -> tuple[int, Size | None]:
    """Return the greatest cost of one overload, without its arguments, and the size of its result if known."""
    by_name = _BY_NAME.get(node.function)
    if by_name is not None:
        return by_name(sizes, node)
    by_signature = _BY_SIGNATURE.get(overload.signature)
    return (1, None) if by_signature is None else by_signature(sizes, node)


_Estimate: TypeAlias = Callable[["Estimator", Call], tuple[int, Size | None]]


def _first_operand(sizes: Estimator, node: Call) -> Size:
    return sizes.size(node.operands[0])


def _traversal(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    size = _first_operand(sizes, node).most
    element = sizes.element(node.operands[0])
    if element is None:
        return scaled(size), None
    type, element_size = element
    each = added(1, scaled(element_size.most)) if type.name in ("string", "bytes") else 1
    return multiplied(size, each), None


def _read(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    return scaled(_first_operand(sizes, node).most), None


def _copied(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    size = _first_operand(sizes, node)
    return scaled(size.most), size


def _replace(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    size, old, new = (sizes.size(operand) for operand in node.operands[:3])
    count, kept = 0, size.most
    if old.least == 0:
        count = added(size.most, 1)
    elif new.most > old.least:
        count, kept = math.ceil(float(size.most) / float(old.least)), 0
    least_count, least_kept = 0, size.least
    if old.most == 0:
        least_count = added(size.least, 1)
    elif old.most > new.least:
        least_count, least_kept = math.ceil(float(size.least) / float(old.most)), 0
    least = added(multiplied(least_count, new.least), least_kept)
    most = added(multiplied(min(count, MOST), new.most), kept)
    return scaled(size.most, 2 * PER_CHARACTER), Size(least, most)


def _split(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    size = _first_operand(sizes, node).most
    limit = node.arguments[1] if len(node.arguments) > 1 else None
    # Kubernetes converts a literal limit to uint64, so that -1 is the most.
    parts = limit.value % 2**64 if isinstance(limit, Literal) and type(limit.value) is int else size
    return scaled(size, 2 * PER_CHARACTER), Size(0, parts)


def _join(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    count = _first_operand(sizes, node)
    element = sizes.element(node.operands[0])
    size = Size(0, 0)
    if element is not None:
        size = Size(multiplied(count.least, element[1].least), multiplied(count.most, element[1].most))
    if node.arguments:
        separator = sizes.size(node.arguments[0])
        size = size.plus(
            Size(
                multiplied(separator.least, max(count.least - 1, 0)),
                multiplied(separator.most, max(count.most - 1, 0)),
            )
        )
    return scaled(size.most), size


def _pattern(sizes: Estimator, node: Call) -> int:
    text, pattern = sizes.size(node.operands[0]).most, sizes.size(node.operands[1]).most
    return multiplied(scaled(added(text, 1)), scaled(pattern, PER_PATTERN_CHARACTER))


def _found(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    return _pattern(sizes, node), Size(0, _first_operand(sizes, node).most)


# Of the patterns of named formats.
_LONGEST_PATTERN: Final = 128
_ADDRESS_BYTES: Final = 16


def _validate(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    text = sizes.size(node.arguments[0]).most
    return scaled(scaled(text), _LONGEST_PATTERN * PER_PATTERN_CHARACTER), None


def _containment(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    cost = scaled(2 * _ADDRESS_BYTES)
    if node.function == "containsCIDR":
        cost += scaled(_ADDRESS_BYTES) + 1
    argument = node.arguments[0]
    if argument.type is None or argument.type.name not in ("net.IP", "net.CIDR"):
        cost = added(cost, scaled(sizes.size(argument).most))
    return cost, None


def _allocating(factor: float, size: int, result: Size) -> tuple[int, Size | None]:
    return added(scaled(size, factor), LIST_COST + 1), result


def _literal_int(node: SyntaxNode, default: int) -> int:
    if isinstance(node, Literal) and type(node.value) is int:
        return max(node.value, 0)
    return default


def _slice(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    start = _literal_int(node.arguments[0], 0)
    # As an uint64, of which an end before the start makes a number near the most.
    length = (_literal_int(node.arguments[1], _first_operand(sizes, node).most) - start) % 2**64
    return _allocating(1, length, Size(length, length))


def _range(_: Estimator, node: Call) -> tuple[int, Size | None]:
    length = _literal_int(node.arguments[0], MOST)
    return _allocating(1, length, Size(length, length))


def _reverse(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    size = _first_operand(sizes, node)
    return _allocating(1, size.most, size)


def _flatten(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    size = _first_operand(sizes, node)
    depth = _literal_int(node.arguments[0], MOST) if node.arguments else 1
    return _allocating(float(depth), size.most, size)


def _compared(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    """Estimate `distinct` and the sorts, which compare each element with each."""
    keys = node.operands[-1]
    size = sizes.size(keys)
    element = sizes.element(keys)
    of_text = node.function != "distinct" and element is not None and element[0].name in ("string", "bytes")
    square = Size(multiplied(size.least, size.least), multiplied(size.most, size.most))
    return _allocating(2 + PER_CHARACTER if of_text else 2, square.most, square)


def _sets(factor: int) -> _Estimate:
    def estimate(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
        a, b = (sizes.size(argument).most for argument in node.arguments)
        return added(scaled(multiplied(a, b), factor), 1), None

    return estimate


def _ordered_texts(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    return scaled(min(sizes.size(operand).most for operand in node.operands)), None


def _concatenated(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    a, b = (sizes.size(operand) for operand in node.operands)
    return scaled(a.plus(b).most), a.plus(b)


def _appended(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    left, right = node.operands
    entries = sizes.entries(left)
    sizes.keep(node, None, entries and entries.union(sizes.entries(right)))
    return 1, sizes.size(left).plus(sizes.size(right))


def _affix(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    return scaled(sizes.size(node.arguments[0]).most), None


def _contains(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
    text, part = (sizes.size(operand).most for operand in node.operands)
    return multiplied(scaled(text), scaled(part)), None


def _resized(least: Callable[[int], int], most: Callable[[int], int]) -> _Estimate:
    def estimate(sizes: Estimator, node: Call) -> tuple[int, Size | None]:
        size = sizes.size(node.arguments[0])
        return scaled(size.most), Size(min(least(size.least), MOST), min(most(size.most), MOST))

    return estimate


_BY_NAME: Final[dict[str, _Estimate]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _copied),
    **dict.fromkeys(
        ("isIP", "isCIDR", "cidr", "quantity", "isQuantity", "semver", "isSemver", "format"), _read
    ),
    "ip.isCanonical": lambda sizes, node: (scaled(_first_operand(sizes, node).most, 2 * PER_CHARACTER), None),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _found,
    "findAll": _found,
    "validate": _validate,
    "containsIP": _containment,
    "containsCIDR": _containment,
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _compared,
    "sort": _compared,
    "@sortByAssociatedKeys": _compared,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "strings.quote": _resized(lambda n: n + 2, lambda n: 2 * n + 2),
}

_BY_SIGNATURE: Final[dict[str, _Estimate]] = {
    **{
        f"_{sign}_({t}, {t}) -> bool": _ordered_texts
        for sign in ("<", "<=", ">", ">=")
        for t in ("string", "bytes")
    },
    "_+_(string, string) -> string": _concatenated,
    "_+_(bytes, bytes) -> bytes": _concatenated,
    "_+_(list(A), list(A)) -> list(A)": _appended,
    "@in(A, list(A)) -> bool": lambda sizes, node: (sizes.size(node.arguments[1]).most, None),
    "<string>.startsWith(string) -> bool": _affix,
    "<string>.endsWith(string) -> bool": _affix,
    "<string>.matches(string) -> bool": lambda sizes, node: (_pattern(sizes, node), None),
    "<string>.contains(string) -> bool": _contains,
    "ip(string) -> ip": _read,
    "bytes(string) -> bytes": _resized(lambda n: n, lambda n: 4 * n),
    "string(bytes) -> string": _resized(lambda n: n // 4, lambda n: n),
}
